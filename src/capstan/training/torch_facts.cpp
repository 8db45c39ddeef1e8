#include "capstan/training/torch_facts.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <torch/version.h>

#include "capstan/base/time.h"
#include "capstan/training/threads.h"

namespace capstan::training {
namespace {

// The file that a BLAS symbol comes from identifies the BLAS library.
std::string blas_library() {
  void* symbol = ::dlsym(RTLD_DEFAULT, "sgemm_");
  Dl_info info{};
  if (!symbol || ::dladdr(symbol, &info) == 0 || !info.dli_fname) return "unknown";
  std::error_code error;
  const auto real = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::string(info.dli_fname) : real.string();
}

// The best of five: the first also loads code and wakes the core up.
double measure_gflops() {
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

std::string Blas::text() const {
  if (!openblas) return library;
  std::istringstream words(openblas->config);
  std::string name, version;
  words >> name >> version;
  return fmt::format("{} {} for {}", name, version, openblas->core);
}

bool Blas::is_reference() const {
  return library.find("openblas") == std::string::npos && library.find("mkl") == std::string::npos;
}

bool Blas::obeys_threads() const {
  return library.find("pthread") == std::string::npos;
}

Blas loaded_blas() {
  Blas blas{blas_library()};
  auto* config = reinterpret_cast<char* (*)()>(::dlsym(RTLD_DEFAULT, "openblas_get_config"));
  auto* core = reinterpret_cast<char* (*)()>(::dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  if (config && core) blas.openblas = {config(), core()};
  return blas;
}

TorchFacts measure_torch() {
  configure_torch(1);
  return {TORCH_VERSION, loaded_blas(), measure_gflops()};
}

Json TorchFacts::json() const {
  return {{"libtorch", libtorch},
          {"blas", blas.text()},
          {"reference_blas", blas.is_reference()},
          {"obeys_threads", blas.obeys_threads()},
          {"gflops", gflops}};
}

}  // namespace capstan::training
