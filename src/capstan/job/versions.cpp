#include "capstan/job/versions.h"

#include <fmt/format.h>
#include <torch/version.h>
#include <ucp/api/ucp_version.h>

#include "capstan/base/cores.h"
#include "capstan/base/json.h"
#include "capstan/version.h"
#include "capstan/wire/messages.h"

namespace capstan::job {

std::string versions() {
  return Json{{"capstan", CAPSTAN_VERSION},
              {"libtorch", TORCH_VERSION},
              {"ucx", fmt::format("{}.{}", UCP_API_MAJOR, UCP_API_MINOR)},
              {"compiler", __VERSION__},
              {"protocol", wire::kProtocol},
              {"cores", usable_cores()}}
             .dump(2) +
         "\n";
}

}  // namespace capstan::job
