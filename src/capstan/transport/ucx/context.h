#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <ucp/api/ucp.h>

#include "capstan/transport/ucx/settings.h"
#include "capstan/transport/ucx/ucx.h"

namespace capstan::transport::ucx {

class ContextImpl;
class UcxCore;

// One UCX endpoint, from its creation until UCX has closed it. Owned by the context, because it outlives its
// connection: it sends a goodbye first.
struct Endpoint {
  ContextImpl* context = nullptr;
  ucp_ep_h handle = nullptr;
  UcxCore* core = nullptr;  // null: the connection is closed on this side
  bool is_lost = false;     // UCX reported an error
  bool is_closing = false;  // UCX was asked to close it
  EventLoop::TimerId goodbye_timer = 0;
};

// One message that UCX is sending; the header must exist until UCX has completed it. Reused.
struct Transfer {
  std::shared_ptr<UcxCore> core;
  std::vector<std::byte> header;
  std::vector<std::byte> data;  // of a frame too long for a header
  bool has_payload = false;
  Sent sent;
};

inline constexpr unsigned kMessageId = 1;  // id of the only active message in use

// UCX's callbacks, which run within its progress call, only record events. The handlers of connections are
// called afterwards, so they may do anything, including close and wait. Owned by the loop's thread.
class ContextImpl final : public Context, public Poller {
 public:
  explicit ContextImpl(EventLoop& loop);
  ContextImpl(const ContextImpl&) = delete;
  ContextImpl& operator=(const ContextImpl&) = delete;
  ~ContextImpl() override;

  std::unique_ptr<Listener> listen(const std::string& address, Accept accept) override;
  Result<std::unique_ptr<Connection>> connect(const std::string& address) override;

  bool progress() override;
  bool arm() override;

  EventLoop& loop() const { return loop_; }
  ucp_worker_h worker() const { return worker_.get(); }
  std::size_t max_header_bytes() const { return max_header_bytes_; }

  // Runs `callback` soon, outside of UCX's progress call.
  void later(std::function<void()> callback) { callbacks_.push_back(std::move(callback)); }

  // Adds error handling to `params` and creates the endpoint. Null and a `status` if UCX fails.
  Endpoint* open_endpoint(ucp_ep_params_t& params, ucs_status_t& status);
  // The connection is closed and its goodbye is being sent: closes the endpoint when the peer answers, or
  // after a second.
  void close_politely(Endpoint& endpoint);
  // Cancels all its transfers and closes it.
  void close_now(Endpoint& endpoint);
  // Drives UCX until `done` returns true, at most for a second.
  bool wait_until(const std::function<bool()>& done);

  Transfer* take_transfer();
  void give_back(Transfer* transfer);

 private:
  static ucs_status_t on_message(void* arg, const void* header, size_t header_bytes, void* data,
                                 size_t data_bytes, const ucp_am_recv_param_t* param);
  static void on_error(void* arg, ucp_ep_h handle, ucs_status_t status);
  static void on_endpoint_closed(void* request, ucs_status_t status, void* user_data);
  bool run_callbacks();
  void forget(Endpoint* endpoint);

  EventLoop& loop_;
  ContextHandle context_;
  WorkerHandle worker_;
  int event_fd_ = -1;  // the worker's
  std::size_t max_header_bytes_ = 0;
  std::unordered_map<ucp_ep_h, std::unique_ptr<Endpoint>> endpoints_;
  std::vector<std::function<void()>> callbacks_;
  std::vector<std::unique_ptr<Transfer>> transfers_;  // all
  std::vector<Transfer*> free_transfers_;
};

}  // namespace capstan::transport::ucx
