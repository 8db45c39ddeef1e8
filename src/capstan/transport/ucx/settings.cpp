#include "capstan/transport/ucx/settings.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <mutex>

#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>

#include "capstan/user_error.h"

namespace capstan::transport::ucx {
namespace {

struct Setting {
  const char* name;
  const char* value;
};

// An environment variable UCX_<name> takes precedence.
constexpr std::array kSettings{
    // All transports of the host except shared memory: a client that is killed in the middle of a message
    // leaves a hole in the receiver's shared queue, which stalls other clients.
    Setting{"TLS", "^sm"},
    // Lanes only over the device of the connection; otherwise UCX stripes one message over lo and eth0.
    // NET_DEVICES cannot do this for a server on 0.0.0.0, whose device is not known beforehand.
    Setting{"CM_USE_ALL_DEVICES", "n"},
};

void check(ucs_status_t status, const char* doing) {
  if (status != UCS_OK)
    throw UserError("UCX cannot start: " + std::string(doing) + " failed: " + reason(status));
}

// Settings that only the environment or UCX's global options can change. By default UCX catches crash signals
// and logs errors that need no action by the user (a killed peer).
void prepare_process() {
  static std::once_flag once;
  std::call_once(once, [] {
    ::setenv("UCX_TCP_CM_REUSEADDR", "y", 0);  // a restarted server can bind its port at once
    if (std::getenv("UCX_LOG_LEVEL") == nullptr) ucs_global_opts_set_value("LOG_LEVEL", "fatal");
    if (std::getenv("UCX_ERROR_SIGNALS") != nullptr || std::getenv("UCX_HANDLE_ERRORS") != nullptr) return;
    for (const int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) ucs_debug_disable_signal(signal);
  });
}

}  // namespace

std::string reason(ucs_status_t status) {
  return ucs_status_string(status);
}

ContextHandle open_context() {
  prepare_process();
  ucp_config_t* config = nullptr;
  check(ucp_config_read(nullptr, nullptr, &config), "reading its configuration");
  const std::unique_ptr<ucp_config_t, void (*)(ucp_config_t*)> owner(config, ucp_config_release);
  for (const auto& setting : kSettings) {
    if (std::getenv((std::string("UCX_") + setting.name).c_str()) != nullptr) continue;
    check(ucp_config_modify(config, setting.name, setting.value), setting.name);
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.name = "capstan";
  ucp_context_h context = nullptr;
  check(ucp_init(&params, config, &context), "opening a context");
  return {context, ucp_cleanup};
}

WorkerHandle open_worker(ucp_context* context) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;  // two threads of a client drive its loop in turn
  ucp_worker_h worker = nullptr;
  check(ucp_worker_create(context, &params, &worker), "opening a worker");
  return {worker, ucp_worker_destroy};
}

Status to_status(ucs_status_t status, const std::string& peer, bool was_connected) {
  if (was_connected) {
    switch (status) {
      case UCS_ERR_CONNECTION_RESET:
      case UCS_ERR_ENDPOINT_TIMEOUT:
      case UCS_ERR_NOT_CONNECTED:
      case UCS_ERR_CANCELED:
        return Status::closed(peer + " closed the connection");
      default:
        return Status::closed("lost the connection to " + peer + ": " + reason(status));
    }
  }
  switch (status) {
    case UCS_ERR_REJECTED:
      return Status::unavailable("the server at " + peer + " is closing and refused the connection");
    case UCS_ERR_TIMED_OUT:
    case UCS_ERR_ENDPOINT_TIMEOUT:
      return Status::unavailable("no answer from " + peer + "; is the host up and the port open?");
    default:
      return Status::unavailable("cannot connect to " + peer + " (" + reason(status) +
                                 "); does a server listen there?");
  }
}

}  // namespace capstan::transport::ucx
