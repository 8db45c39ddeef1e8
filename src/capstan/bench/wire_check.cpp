#include "capstan/bench/wire_check.h"

#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "capstan/bench/scalar_reference.h"

namespace capstan::bench {

std::string check_weights(std::span<const WorkerObservation> workers, const optimizer::Options& optimizer) {
  std::map<std::uint64_t, std::vector<double>> pushes;  // version → gradients that became part of it
  for (std::uint32_t w = 0; w < workers.size(); ++w) {
    for (std::uint64_t i = 0; i < workers[w].applied.size(); ++i)
      pushes[workers[w].applied[i]].push_back(wire_gradient(w, i));
  }
  ScalarReference reference(optimizer);
  std::vector<double> right = {reference.weight()};  // by version
  for (const auto& [version, gradients] : pushes) {
    if (version != right.size())
      return fmt::format("version {} contains no push, or a push was dropped", right.size());
    const double sum = std::accumulate(gradients.begin(), gradients.end(), 0.0);
    reference.step(sum / static_cast<double>(gradients.size()));
    right.push_back(reference.weight());
  }
  for (std::size_t w = 0; w < workers.size(); ++w) {
    const auto& seen = workers[w];
    if (seen.unlike > 0)
      return fmt::format("worker {} has {} weights that differ from the first, {}, where all must be equal",
                         w, seen.unlike, seen.weight);
    if (seen.version >= right.size())
      return fmt::format("worker {} has version {}, which no push made", w, seen.version);
    const double expected = right[seen.version];
    if (!(std::abs(seen.weight - expected) <= 1e-4 * std::max(1.0, std::abs(expected)))) {
      return fmt::format("worker {} has weight {} at version {}; the reference is {}", w, seen.weight,
                         seen.version, expected);
    }
  }
  return {};
}

}  // namespace capstan::bench
