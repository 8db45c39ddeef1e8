// What libtorch is here: one JSON line for `capstan doctor`.

#include <filesystem>
#include <sstream>

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "capstan/base/json.h"
#include "capstan/base/time.h"
#include "capstan/cli/commands.h"
#include "capstan/training/threads.h"

namespace capstan::cli {
namespace {

// The file that a BLAS symbol comes from says whose BLAS it is.
std::string blas_library() {
  void* symbol = ::dlsym(RTLD_DEFAULT, "sgemm_");
  Dl_info info{};
  if (!symbol || ::dladdr(symbol, &info) == 0 || !info.dli_fname) return "unknown";
  std::error_code error;
  const auto real = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::string(info.dli_fname) : real.string();
}

std::string blas_description(const std::string& library) {
  auto* config = reinterpret_cast<char* (*)()>(::dlsym(RTLD_DEFAULT, "openblas_get_config"));
  auto* core = reinterpret_cast<char* (*)()>(::dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  if (!config || !core) return library;
  std::istringstream words(config());
  std::string name, version;
  words >> name >> version;
  return fmt::format("{} {} for {}", name, version, core());
}

double gflops() {
  constexpr int kSize = 512;
  const auto a = at::ones({kSize, kSize}), b = at::ones({kSize, kSize});
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const auto begin = SteadyClock::now();
    const auto c = at::mm(a, b);
    best = std::max(best, 2.0 * kSize * kSize * kSize / seconds(SteadyClock::now() - begin) / 1e9);
  }
  return best;
}

}  // namespace

int run_describe(const Arguments&) {
  training::configure_torch(1);
  const auto library = blas_library();
  const bool openblas = library.find("openblas") != std::string::npos;
  fmt::print("{}\n", Json{{"libtorch", TORCH_VERSION},
                          {"blas", blas_description(library)},
                          {"reference_blas", !openblas && library.find("mkl") == std::string::npos},
                          {"obeys_threads", library.find("pthread") == std::string::npos},
                          {"gflops", gflops()}}
                         .dump());
  return kSuccess;
}

}  // namespace capstan::cli
