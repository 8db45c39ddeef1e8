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

// One UCX endpoint, from its creation until UCX has forgotten it. Owned by the context, because it outlives
// its connection: it says goodbye first.
struct Endpoint {
  ContextImpl* context = nullptr;
  ucp_ep_h handle = nullptr;
  UcxCore* core = nullptr;  // null: the connection is closed on this side
  bool is_lost = false;     // UCX says so
  bool is_closing = false;  // UCX was told to forget it
  EventLoop::TimerId goodbye_timer = 0;
};

// One message under way to UCX. The header must live until UCX is done with it. Reused.
struct Transfer {
  std::shared_ptr<UcxCore> core;
  std::vector<std::byte> header;
  std::vector<std::byte> data;  // of a frame too long for a header
  bool has_payload = false;
  Sent sent;
};

inline constexpr unsigned kMessageId = 1;  // of the one active message that we use

// UCX calls back from within its progress; there only notes are taken. The handlers of connections are
// called afterwards, so they may do anything, even close and wait. Owned by the loop's thread.
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

  // Runs `news` soon, outside of UCX.
  void later(std::function<void()> news) { news_.push_back(std::move(news)); }

  // Fills in error handling and creates. Null with the reason if UCX refuses.
  Endpoint* open_endpoint(ucp_ep_params_t& params, ucs_status_t& status);
  // The connection is gone, and its goodbye is on its way: closes when the peer answers, or after a second.
  void close_politely(Endpoint& endpoint);
  // Cancels all that is under way on it, and forgets it.
  void close_now(Endpoint& endpoint);
  // Drives UCX until `done`, for a second at most.
  bool wait_until(const std::function<bool()>& done);

  Transfer* take_transfer();
  void give_back(Transfer* transfer);

 private:
  static ucs_status_t on_message(void* arg, const void* header, size_t header_bytes, void* data,
                                 size_t data_bytes, const ucp_am_recv_param_t* param);
  static void on_error(void* arg, ucp_ep_h handle, ucs_status_t status);
  static void on_endpoint_closed(void* request, ucs_status_t status, void* user_data);
  bool run_news();
  void forget(Endpoint* endpoint);

  EventLoop& loop_;
  ContextHandle context_;
  WorkerHandle worker_;
  int event_fd_ = -1;  // the worker's
  std::size_t max_header_bytes_ = 0;
  std::unordered_map<ucp_ep_h, std::unique_ptr<Endpoint>> endpoints_;
  std::vector<std::function<void()>> news_;
  std::vector<std::unique_ptr<Transfer>> transfers_;  // all
  std::vector<Transfer*> free_transfers_;
};

}  // namespace capstan::transport::ucx
