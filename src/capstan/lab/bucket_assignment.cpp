#include "capstan/lab/bucket_assignment.h"

namespace capstan::lab {

std::vector<AssignedBucket> assign_buckets(const NamedTensors& parameters, const BucketSizes& sizes) {
  std::vector<AssignedBucket> buckets;
  AssignedBucket open;
  bool is_first = true;
  const auto close = [&] {
    if (open.parts.empty()) return;
    buckets.push_back(std::exchange(open, {}));
    is_first = false;
  };
  for (auto i = parameters.size(); i-- > 0;) {
    const auto& tensor = parameters[i].tensor;
    const auto elements = static_cast<std::uint64_t>(tensor.numel());
    if (parameters[i].sparse) {
      // Its gradient is not there before those of the bucket that is open.
      close();
      buckets.push_back({{{i, 0, elements}}, elements, static_cast<std::uint64_t>(tensor.size(1))});
      continue;
    }
    open.parts.push_back({i, open.elements, elements});
    open.elements += elements;
    if (open.elements * sizeof(float) >= (is_first ? sizes.first : sizes.others)) close();
  }
  close();
  return buckets;
}

}  // namespace capstan::lab
