#pragma once

#include <memory>
#include <string>

#include <ucp/api/ucp.h>

#include "capstan/status.h"

// UCX's settings, owning handles, and messages for its errors.
namespace capstan::transport::ucx {

using ContextHandle = std::unique_ptr<ucp_context, void (*)(ucp_context*)>;
using WorkerHandle = std::unique_ptr<ucp_worker, void (*)(ucp_worker*)>;
using ListenerHandle = std::unique_ptr<ucp_listener, void (*)(ucp_listener*)>;

// Throw UserError if UCX cannot start.
ContextHandle open_context();
WorkerHandle open_worker(ucp_context* context);

std::string reason(ucs_status_t status);

// Why a connection to `peer` ended. `was_connected`: at least one message of the peer has arrived.
Status to_status(ucs_status_t status, const std::string& peer, bool was_connected);

}  // namespace capstan::transport::ucx
