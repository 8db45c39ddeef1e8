#pragma once

#include <optional>
#include <string>

#include "capstan/base/json.h"

namespace capstan::training {

// Which BLAS multiplies matrices here. A value.
struct Blas {
  // What OpenBLAS says of itself: openblas_get_config() and openblas_get_corename().
  struct OpenBlas {
    std::string config, core;
  };

  std::string library;  // the file that sgemm_ comes from; "unknown" where that cannot be found
  std::optional<OpenBlas> openblas = std::nullopt;

  std::string text() const;    // "OpenBLAS 0.3.21 for SkylakeX", or the library
  bool is_reference() const;   // neither OpenBLAS nor MKL: slow
  bool obeys_threads() const;  // OpenBLAS with threads of its own does not obey OpenMP's number of threads
};

// The one that this process has loaded.
Blas loaded_blas();

// What libtorch is here. A value.
struct TorchFacts {
  std::string libtorch;  // version
  Blas blas;
  double gflops = 0;  // 1e9 operations a second, of a product of two matrices on one thread

  Json json() const;
};

// Measures for some milliseconds. Sets libtorch to one thread, as configure_torch() does.
TorchFacts measure_torch();

}  // namespace capstan::training
