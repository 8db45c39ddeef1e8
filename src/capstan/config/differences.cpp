#include "capstan/config/differences.h"

namespace capstan::config {

std::vector<Difference> differences(const JobConfig& before, const JobConfig& now) {
  auto own_before = before, own_now = now, all_before = before.resolved(), all_now = now.resolved();
  const auto given_before = fields(own_before), given_now = fields(own_now),
             values_before = fields(all_before), values_now = fields(all_now);
  std::vector<Difference> out;
  for (std::size_t i = 0; i < given_now.size(); ++i) {
    const auto& field = given_now[i];
    if (!field.is_kept() || (is_unset(given_before[i]) && is_unset(field))) continue;
    auto old_value = text_of(values_before[i].setting.value), value = text_of(values_now[i].setting.value);
    if (old_value == value) continue;
    auto rule = field.on_resume;
    if (field.must_match && field.must_match(old_value) == field.must_match(value)) rule = OnResume::kSameJob;
    out.push_back({std::string(field.name()), std::move(old_value), std::move(value), rule,
                   now.given.contains(field.name())});
  }
  return out;
}

}  // namespace capstan::config
