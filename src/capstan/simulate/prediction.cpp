#include "capstan/simulate/prediction.h"

#include <cmath>
#include <numeric>

namespace capstan::simulate {

const char* name(Spent what) {
  switch (what) {
    case Spent::kCompute:
      return "compute";
    case Spent::kCores:
      return "cores";
    case Spent::kOwnLink:
      return "own_link";
    case Spent::kServerLink:
      return "server_link";
    case Spent::kUpdate:
      return "update";
    case Spent::kOthers:
      return "others";
    case Spent::kDown:
      return "down";
    case Spent::kCount:
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
