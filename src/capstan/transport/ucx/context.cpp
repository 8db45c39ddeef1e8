#include "capstan/transport/ucx/context.h"

#include <algorithm>
#include <utility>

#include <poll.h>
#include <sched.h>

#include "capstan/base/check.h"
#include "capstan/transport/ucx/address.h"
#include "capstan/transport/ucx/ucx_core.h"
#include "capstan/transport/ucx/ucx_listener.h"
#include "capstan/user_error.h"

namespace capstan::transport::ucx {
namespace {

constexpr int kProgressPerTurn = 32;
constexpr Duration kGoodbye = std::chrono::seconds(1);

}  // namespace

std::unique_ptr<Context> Context::open(EventLoop& loop) {
  return std::make_unique<ContextImpl>(loop);
}

ContextImpl::ContextImpl(EventLoop& event_loop)
    : loop_(event_loop), context_(open_context()), worker_(open_worker(context_.get())) {
  ucp_am_handler_param_t handler{};
  handler.field_mask =
      UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
  handler.id = kMessageId;
  handler.cb = &ContextImpl::on_message;
  handler.arg = this;
  ucp_worker_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  ucs_status_t status = ucp_worker_set_am_recv_handler(worker(), &handler);
  if (status == UCS_OK) status = ucp_worker_query(worker(), &attributes);
  if (status == UCS_OK) status = ucp_worker_get_efd(worker(), &event_fd_);
  if (status != UCS_OK) throw UserError("UCX cannot start: " + reason(status));
  max_header_bytes_ = attributes.max_am_header;
  loop_.add_poller(this, event_fd_);
}

ContextImpl::~ContextImpl() {
  for (const auto& [handle, endpoint] : endpoints_)
    CAPSTAN_CHECK(endpoint->core == nullptr, "a UCX context outlives its connections");
  // Sends the last frames of connections that were closed just now. No connection is left, so the recorded
  // events only close endpoints.
  wait_until([this] {
    run_callbacks();
    return std::all_of(endpoints_.begin(), endpoints_.end(),
                       [](const auto& e) { return e.second->is_closing; });
  });
  std::vector<Endpoint*> left;
  for (const auto& [handle, endpoint] : endpoints_) left.push_back(endpoint.get());
  for (auto* endpoint : left) close_now(*endpoint);
  wait_until([this] {
    run_callbacks();
    return endpoints_.empty() && free_transfers_.size() == transfers_.size();
  });
  loop_.remove_poller(this, event_fd_);
}

std::unique_ptr<Listener> ContextImpl::listen(const std::string& address, Accept accept) {
  return std::make_unique<UcxListener>(*this, address, std::move(accept));
}

Result<std::unique_ptr<Connection>> ContextImpl::connect(const std::string& text) {
  const auto where = parse(text);
  if (!where) return where.status();
  const auto address = resolve(*where);
  if (!address) return address.status();

  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&address->storage);
  params.sockaddr.addrlen = address->size;
  ucs_status_t status = UCS_OK;
  Endpoint* endpoint = open_endpoint(params, status);
  if (endpoint == nullptr) return to_status(status, text, false);
  return Core::make_connection(std::make_shared<UcxCore>(*this, *endpoint, text));
}

bool ContextImpl::progress() {
  bool worked = false;
  for (int i = 0; i < kProgressPerTurn && ucp_worker_progress(worker()) != 0; ++i) worked = true;
  return run_callbacks() || worked;
}

bool ContextImpl::arm() {
  return callbacks_.empty() && ucp_worker_arm(worker()) == UCS_OK;
}

bool ContextImpl::run_callbacks() {
  if (callbacks_.empty()) return false;
  const auto callbacks = std::exchange(callbacks_, {});
  for (const auto& item : callbacks) item();
  return true;
}

Endpoint* ContextImpl::open_endpoint(ucp_ep_params_t& params, ucs_status_t& status) {
  auto endpoint = std::make_unique<Endpoint>();
  endpoint->context = this;
  params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = &ContextImpl::on_error;
  params.err_handler.arg = endpoint.get();
  status = ucp_ep_create(worker(), &params, &endpoint->handle);
  if (status != UCS_OK) return nullptr;
  auto* raw = endpoint.get();
  endpoints_[raw->handle] = std::move(endpoint);
  return raw;
}

void ContextImpl::close_politely(Endpoint& endpoint) {
  endpoint.core = nullptr;
  endpoint.goodbye_timer =
      loop_.call_at(SteadyClock::now() + kGoodbye, [this, &endpoint] { close_now(endpoint); });
}

void ContextImpl::close_now(Endpoint& endpoint) {
  if (endpoint.is_closing) return;
  loop_.cancel(endpoint.goodbye_timer);
  endpoint.core = nullptr;
  endpoint.is_closing = true;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  param.cb.send = &ContextImpl::on_endpoint_closed;
  param.user_data = &endpoint;
  const ucs_status_ptr_t request = ucp_ep_close_nbx(endpoint.handle, &param);
  if (!UCS_PTR_IS_PTR(request)) forget(&endpoint);
}

void ContextImpl::on_endpoint_closed(void* request, ucs_status_t, void* user_data) {
  auto* endpoint = static_cast<Endpoint*>(user_data);
  ucp_request_free(request);
  endpoint->context->forget(endpoint);
}

void ContextImpl::forget(Endpoint* endpoint) {
  const auto found = endpoints_.find(endpoint->handle);
  if (found != endpoints_.end() && found->second.get() == endpoint) endpoints_.erase(found);
}

bool ContextImpl::wait_until(const std::function<bool()>& done) {
  const TimePoint deadline = SteadyClock::now() + kGoodbye;
  while (!done()) {
    if (SteadyClock::now() >= deadline) return false;
    if (ucp_worker_progress(worker()) != 0) continue;
    if (ucp_worker_arm(worker()) != UCS_OK) {
      ::sched_yield();
      continue;
    }
    pollfd sleeper{event_fd_, POLLIN, 0};
    ::poll(&sleeper, 1, 1);  // short: `done` may depend on more than the worker's events
  }
  return true;
}

Transfer* ContextImpl::take_transfer() {
  if (free_transfers_.empty()) {
    transfers_.push_back(std::make_unique<Transfer>());
    free_transfers_.push_back(transfers_.back().get());
  }
  Transfer* transfer = free_transfers_.back();
  free_transfers_.pop_back();
  return transfer;
}

void ContextImpl::give_back(Transfer* transfer) {
  transfer->core.reset();
  transfer->sent = nullptr;
  transfer->data = {};
  transfer->has_payload = false;
  free_transfers_.push_back(transfer);
}

ucs_status_t ContextImpl::on_message(void* arg, const void* header, size_t header_bytes, void* data,
                                     size_t data_bytes, const ucp_am_recv_param_t* param) {
  auto* self = static_cast<ContextImpl*>(arg);
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) == 0) return UCS_OK;
  const auto found = self->endpoints_.find(param->reply_ep);
  if (found == self->endpoints_.end()) return UCS_OK;
  Endpoint& endpoint = *found->second;
  const Bytes head(static_cast<const std::byte*>(header), header_bytes);
  const bool is_announced = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  if (endpoint.core != nullptr) return endpoint.core->on_arrival(head, data, data_bytes, is_announced);
  // Closed on this side: the only message still expected is the peer's goodbye.
  if (!endpoint.is_closing && is_goodbye(head))
    on_error(&endpoint, endpoint.handle, UCS_ERR_CONNECTION_RESET);
  return UCS_OK;
}

void ContextImpl::on_error(void* arg, ucp_ep_h handle, ucs_status_t status) {
  auto* endpoint = static_cast<Endpoint*>(arg);
  ContextImpl* self = endpoint->context;
  if (endpoint->core != nullptr) return endpoint->core->on_lost(status);
  endpoint->is_lost = true;
  self->later([self, handle] {
    // The endpoint may have been closed since, and another may have its handle.
    const auto found = self->endpoints_.find(handle);
    if (found != self->endpoints_.end() && found->second->is_lost) self->close_now(*found->second);
  });
}

}  // namespace capstan::transport::ucx
