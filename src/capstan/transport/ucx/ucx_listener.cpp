#include "capstan/transport/ucx/ucx_listener.h"

#include <utility>

#include "capstan/transport/ucx/ucx_core.h"
#include "capstan/user_error.h"

namespace capstan::transport::ucx {

UcxListener::UcxListener(ContextImpl& context, const std::string& address, Accept accept)
    : context_(context), accept_(std::make_shared<Accept>(std::move(accept))) {
  const auto where = parse(address);
  if (!where) throw UserError(where.status().message());
  where_ = *where;
  const auto resolved = resolve(where_);
  if (!resolved) throw UserError(resolved.status().message());

  ucp_listener_params_t params{};
  params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
  params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&resolved->storage);
  params.sockaddr.addrlen = resolved->size;
  params.conn_handler.cb = &UcxListener::on_request;
  params.conn_handler.arg = this;
  ucp_listener_h handle = nullptr;
  const ucs_status_t status = ucp_listener_create(context_.worker(), &params, &handle);
  if (status == UCS_ERR_BUSY) {
    throw UserError("port " + std::to_string(where_.port) + " of " + where_.host +
                    " is in use; choose another, or 0 for any free one");
  }
  if (status != UCS_OK) {
    throw UserError("cannot listen on " + address + ": " + reason(status) +
                    "; the address must belong to this host");
  }
  handle_.reset(handle);

  ucp_listener_attr_t attributes{};
  attributes.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
  if (ucp_listener_query(handle, &attributes) == UCS_OK) where_.port = port_of({attributes.sockaddr, 0});
}

UcxListener::~UcxListener() {
  for (auto* request : requests_) ucp_listener_reject(handle_.get(), request);
}

void UcxListener::on_request(ucp_conn_request_h request, void* arg) {
  auto* self = static_cast<UcxListener*>(arg);
  self->requests_.push_back(request);
  if (self->requests_.size() > 1) return;
  self->context_.later([self, alive = std::weak_ptr<Accept>(self->accept_)] {
    if (!alive.expired()) self->accept_all();
  });
}

void UcxListener::accept_all() {
  const std::weak_ptr<Accept> alive = accept_;
  const auto requests = std::exchange(requests_, {});
  for (auto* request : requests) {
    if (alive.expired()) return;
    accept_one(request);
  }
}

void UcxListener::accept_one(ucp_conn_request_h request) {
  ucp_conn_request_attr_t attributes{};
  attributes.field_mask = UCP_CONN_REQUEST_ATTR_FIELD_CLIENT_ADDR;
  std::string peer = "unknown";
  if (ucp_conn_request_query(request, &attributes) == UCS_OK)
    peer = to_string(Address{attributes.client_address, 0});

  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
  params.conn_request = request;
  ucs_status_t status = UCS_OK;
  Endpoint* endpoint = context_.open_endpoint(params, status);
  if (endpoint == nullptr) return;  // the client has closed already; UCX has released the request
  const auto accept = accept_;      // the call may destroy this listener
  (*accept)(Core::make_connection(std::make_shared<UcxCore>(context_, *endpoint, std::move(peer))));
}

}  // namespace capstan::transport::ucx
