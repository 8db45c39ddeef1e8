#pragma once

#include <map>
#include <string>
#include <vector>

#include "capstan/lab/configuration_file.h"
#include "capstan/lab/options.h"
#include "capstan/lab/registry.h"

namespace capstan::lab {

using Names = std::vector<std::string>;

bool contains(const Names& names, const std::string& name);
// The names, then those keys of the table that are not among them.
template <class Table>
Names with_keys(Names names, const Table& table) {
  for (const auto& [name, make] : table)
    if (!contains(names, name)) names.push_back(name);
  return names;
}
// The entries of a configuration file; an empty path has none.
Names entries(const std::filesystem::path& file, Kind kind);

// A plan while it is resolved, and where each of its options comes from, for messages. Not thread-safe.
class PlanDraft {
 public:
  // Sets the given options. Throws UserError for a value that is not valid.
  PlanDraft(const Layers& layers, const Registry& registry);
  PlanDraft(const PlanDraft&) = delete;
  PlanDraft& operator=(const PlanDraft&) = delete;

  const Registry& registry;
  Choices choices;
  Plan& plan = choices.plan;
  std::vector<std::string> notes;
  bool uses_strategy = false;  // the trainer is a strategy's
  bool has_own_loss = false;   // the model is a network or a task

  bool is_given(const std::string& option) const { return given_.contains(option); }
  // On CUDA devices or not.
  std::uint32_t servers() const { return plan.servers + choices.cuda_servers; }

  // The functions below name an option with its value and its place.
  [[noreturn]] void fail(const std::string& option, const std::string& what);
  // For a name that is not among the known ones: with the nearest one.
  [[noreturn]] void fail_unknown(const std::string& option, const std::string& kind, const Names& known,
                                 const std::string& name);
  void note(const std::string& option, const std::string& what);

 private:
  std::string where(const std::string& option);

  std::map<std::string, GivenOption> given_;
};

// Throws UserError for an entry of a file whose class is unknown.
void check_class(const Entry& entry, const Names& known);

}  // namespace capstan::lab
