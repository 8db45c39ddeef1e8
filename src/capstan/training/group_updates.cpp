#include "capstan/training/group_updates.h"

namespace capstan::training {

GroupUpdates::GroupUpdates(const FlatLayout& layout, const ParameterGroups& groups)
    : groups_(groups), rows_(layout, groups, {0, layout.size()}) {}

void GroupUpdates::apply(store::DenseShard& shard, std::uint32_t phase, const optimizer::UpdateIndex& index,
                         const Gradient& gradient, const RowLists& rows) const {
  const optimizer::Contribution whole[] = {{gradient.values, gradient.factor}};
  for (std::uint32_t group = 0; group < groups_.size(); ++group) {
    if (groups_[group].phase != phase) continue;
    if (groups_[group].is_rows) {
      const auto& part = *rows_.of_group(group);
      const auto& list = rows[part.tensor];
      const optimizer::RowContribution some[] = {{gradient.values, gradient.factor, list}};
      shard.apply_rows(part, list, index, some, gradient.rate);
      continue;
    }
    for (std::size_t chunk = 0; chunk < shard.chunks(group); ++chunk)
      shard.apply_chunk(chunk, index, whole, {}, {.rate = gradient.rate}, group);
  }
}

}  // namespace capstan::training
