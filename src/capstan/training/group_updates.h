#pragma once

#include "capstan/base/row_tensors.h"
#include "capstan/store/dense_shard.h"

namespace capstan::training {

// Updates of a whole model in this process, group by group. Immutable.
class GroupUpdates {
 public:
  GroupUpdates(const FlatLayout& layout, const ParameterGroups& groups);

  struct Gradient {
    const float* values = nullptr;
    float factor = 1;
    double rate = 1;  // multiplies the learning rate
  };
  // Updates the groups of one phase. `rows` are those of each row tensor that have a gradient.
  void apply(store::DenseShard& shard, std::uint32_t phase, const optimizer::UpdateIndex& index,
             const Gradient& gradient, const RowLists& rows) const;

 private:
  const ParameterGroups groups_;
  const ShardRows rows_;
};

}  // namespace capstan::training
