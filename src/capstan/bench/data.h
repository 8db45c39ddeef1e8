#pragma once

#include <cstdint>
#include <functional>

#include <nlohmann/json_fwd.hpp>

#include "capstan/data/dataset.h"

namespace capstan::bench {

struct DataOptions {
  data::DatasetOptions dataset;
  unsigned threads = 1;
  std::uint64_t batch = 32;
  std::uint64_t epochs = 0;  // 0: enough for about three seconds
};

// Measures the rendering of training images as in a worker's loader. Throws UserError for a wrong dataset;
// Failure once `cancelled` returns true.
nlohmann::json run_data(const DataOptions& options, const std::function<bool()>& cancelled);

}  // namespace capstan::bench
