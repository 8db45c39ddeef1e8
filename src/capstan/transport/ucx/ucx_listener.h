#pragma once

#include <memory>
#include <string>
#include <vector>

#include "capstan/transport/ucx/address.h"
#include "capstan/transport/ucx/context.h"

namespace capstan::transport::ucx {

// Owned by the loop's thread; not thread-safe.
class UcxListener final : public Listener {
 public:
  UcxListener(ContextImpl& context, const std::string& address, Accept accept);
  UcxListener(const UcxListener&) = delete;
  UcxListener& operator=(const UcxListener&) = delete;
  ~UcxListener() override;

  std::string address() const override { return to_string(where_); }

 private:
  static void on_request(ucp_conn_request_h request, void* arg);
  void accept_all();
  void accept_one(ucp_conn_request_h request);

  ContextImpl& context_;
  HostAndPort where_;
  std::shared_ptr<Accept> accept_;  // its use count also shows whether the listener still exists
  ListenerHandle handle_{nullptr, ucp_listener_destroy};
  std::vector<ucp_conn_request_h> requests_;
};

}  // namespace capstan::transport::ucx
