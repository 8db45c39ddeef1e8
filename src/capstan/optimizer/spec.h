#pragma once

#include <functional>
#include <string>
#include <vector>

#include "capstan/base/parameter_groups.h"
#include "capstan/optimizer/optimizer.h"

namespace capstan::optimizer {

// The optimizers of one job: the default, and those of groups of tensors.
struct Spec {
  struct Group {
    std::string glob;  // of tensor names
    Options options;
  };

  Options first;              // entry 0, the default
  std::vector<Group> groups;  // entries 1 and up, base/parameter_groups.h

  Spec(const Options& of_all = {}) : first(of_all) {}

  std::size_t size() const { return groups.size() + 1; }
  const Options& operator[](std::size_t entry) const {
    return entry == 0 ? first : groups[entry - 1].options;
  }
  std::vector<std::string> globs() const;
  // Without options: "sgd", "default=sgd,fc*=adam".
  std::string kinds() const;
};

// Reads "adam", "adam:lr=0.001:beta1=0.5" and "default=sgd,fc*=adam:lr=0.001": options are named as the
// flags. An option that is not set has the value of base(kind). Throws UserError.
Spec parse_spec(const std::string& text, const std::function<Options(Kind)>& base);

// Throws UserError if an optimizer cannot update the tensors of its groups: row tensors need one that leaves
// rows without a gradient unchanged, and sparse-adam needs row tensors. `groups` are those of the layout.
void check_rows(const Spec& spec, const FlatLayout& layout, const ParameterGroups& groups);

// The optimizers of a spec, with one schedule and one set of state arrays: each entry uses the arrays of its
// own names, on its own elements. Immutable.
class OptimizerSet {
 public:
  // Throws what validate() throws.
  OptimizerSet(const Spec& spec, const Schedule& schedule);

  const Spec& spec() const { return spec_; }
  std::size_t size() const { return all_.size(); }
  const Optimizer& operator[](std::size_t entry) const { return all_[entry]; }
  // The names of all arrays, those of the default first.
  const std::vector<std::string>& state_names() const { return state_names_; }
  // The arrays of one entry, as indices of state_names().
  const std::vector<std::size_t>& state_of(std::size_t entry) const { return state_of_[entry]; }
  // Of the default.
  double learning_rate(Version before) const { return all_[0].learning_rate(before); }

 private:
  Spec spec_;
  std::vector<Optimizer> all_;
  std::vector<std::string> state_names_;
  std::vector<std::vector<std::size_t>> state_of_;
};

}  // namespace capstan::optimizer
