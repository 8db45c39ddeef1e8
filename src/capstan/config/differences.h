#pragma once

#include <string>
#include <vector>

#include "capstan/config/fields.h"

namespace capstan::config {

// A field that two configurations of a run do not have in common.
struct Difference {
  std::string name;
  std::string before, now;  // values as a flag takes them; empty for none
  OnResume rule = OnResume::kSameJob;
  bool given = false;  // now, by a flag or a configuration file

  bool may_differ() const { return rule != OnResume::kMustMatch; }
};

// What a run that goes on would change, in the order of the table. A derived field counts where at least one
// side gives it, and is compared by its effective value; where neither does, whatever follows from other
// fields is no difference. Fields that are not part of the job (train-dir, resume) are left out. Throws
// UserError where a configuration cannot be resolved.
std::vector<Difference> differences(const JobConfig& before, const JobConfig& now);

}  // namespace capstan::config
