#pragma once

#include <string>
#include <vector>

#include "capstan/config/fields.h"

namespace capstan::config {

// A field whose value differs between two configurations of a run.
struct Difference {
  std::string name;
  std::string before, now;  // values as a flag takes them; empty for none
  OnResume rule = OnResume::kSameJob;
  bool given = false;  // the new value is set by a flag or a configuration file

  bool may_differ() const { return rule != OnResume::kMustMatch; }
};

// What a resumed run would change, in the order of the table. A derived field counts if at least one side
// gives it, and is compared by its effective value. Fields that are not part of the job (train-dir, resume)
// are left out. Throws UserError if a configuration cannot be resolved.
std::vector<Difference> differences(const JobConfig& before, const JobConfig& now);

}  // namespace capstan::config
