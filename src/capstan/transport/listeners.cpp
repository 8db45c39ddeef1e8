#include "capstan/transport/listeners.h"

#include <cstdint>
#include <cstdlib>

#include "capstan/base/check.h"
#include "capstan/transport/local/local.h"

namespace capstan::transport {
namespace {

std::uint16_t port_of(const std::string& address) {
  return static_cast<std::uint16_t>(std::atoi(address.substr(address.rfind(':') + 1).c_str()));
}

}  // namespace

Listeners::Listeners(EventLoop& loop, const Options& options, const Accept& accept) {
  CAPSTAN_CHECK(options.local || options.remote, "a server has at least one listener");
  auto port = port_of(options.address);
  if (options.remote) {
    ucx_ = ucx::Context::open(loop);
    remote_ = ucx_->listen(options.address, accept);
    address_ = remote_->address();
    port = port_of(address_);
  }
  if (!options.local) return;
  local_ = local::listen(loop, port, accept);
  if (!remote_)
    address_ = options.address.substr(0, options.address.rfind(':') + 1) +
               std::to_string(port_of(local_->address()));
}

}  // namespace capstan::transport
