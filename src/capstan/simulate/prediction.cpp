#include "capstan/simulate/prediction.h"

#include <cmath>
#include <numeric>

namespace capstan::simulate {

const char* name(TimeCategory what) {
  switch (what) {
    case TimeCategory::kCompute:
      return "compute";
    case TimeCategory::kCores:
      return "cores";
    case TimeCategory::kOwnLink:
      return "own_link";
    case TimeCategory::kServerLink:
      return "server_link";
    case TimeCategory::kUpdate:
      return "update";
    case TimeCategory::kOthers:
      return "others";
    case TimeCategory::kDown:
      return "down";
    case TimeCategory::kCount:
      break;
  }
  return "";
}

std::uint64_t quantile(const Histogram& histogram, double part) {
  const auto total = std::accumulate(histogram.begin(), histogram.end(), std::uint64_t{0});
  const auto enough = static_cast<std::uint64_t>(std::ceil(part * static_cast<double>(total)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < histogram.size(); ++i) {
    seen += histogram[i];
    if (seen >= enough && seen > 0) return i;
  }
  return 0;
}

}  // namespace capstan::simulate
