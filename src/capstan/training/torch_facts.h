#pragma once

#include <optional>
#include <string>

#include "capstan/base/json.h"

namespace capstan::training {

// The BLAS library in use. A value.
struct Blas {
  // What OpenBLAS reports: openblas_get_config() and openblas_get_corename().
  struct OpenBlas {
    std::string config, core;
  };

  std::string library;  // the file that sgemm_ comes from; "unknown" if that cannot be found
  std::optional<OpenBlas> openblas = std::nullopt;

  std::string text() const;    // "OpenBLAS 0.3.21 for SkylakeX", or the library
  bool is_reference() const;   // neither OpenBLAS nor MKL: slow
  bool obeys_threads() const;  // an OpenBLAS with its own threads ignores OpenMP's number of threads
};

// The one that this process has loaded.
Blas loaded_blas();

// Properties of the loaded libtorch. A value.
struct TorchFacts {
  std::string libtorch;  // version
  Blas blas;
  double gflops = 0;  // 1e9 operations a second, of a product of two matrices on one thread

  Json json() const;
};

// Measures for some milliseconds. Sets libtorch to one thread, as configure_torch() does.
TorchFacts measure_torch();

}  // namespace capstan::training
