#include "capstan/version.h"

#include "capstan/wire/messages.h"

namespace capstan {

const char* library_version() noexcept {
  return CAPSTAN_VERSION;
}

std::uint16_t protocol_version() noexcept {
  return wire::kProtocol;
}

}  // namespace capstan
