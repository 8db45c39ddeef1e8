#include "capstan/lab/plan_draft.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capstan/base/spelling.h"
#include "capstan/config/given.h"

namespace capstan::lab {
namespace {

std::string nearest_of(const Names& known, const std::string& word) {
  return nearest(word, std::vector<std::string_view>(known.begin(), known.end()));
}

}  // namespace

bool contains(const Names& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

Names entries(const std::filesystem::path& file, Kind kind) {
  return file.empty() ? Names() : ConfigurationFile(file, kind).names();
}

PlanDraft::PlanDraft(const Layers& layers, const Registry& all) : registry(all) {
  std::vector<config::Field> fields;
  for (auto& setting : settings(choices)) fields.push_back({.setting = std::move(setting)});
  std::vector<std::vector<config::Given>> values;
  for (const auto& layer : layers) {
    auto& out = values.emplace_back();
    for (const auto& option : layer) {
      given_[option.name] = option;
      out.push_back({config::find(fields, option.name), option.text, option.place});
    }
  }
  config::apply(fields, values);
}

// "--trainer DdpTrianer", "x.toml:3: trainer DdpTrianer".
std::string PlanDraft::where(const std::string& option) {
  const auto found = given_.find(option);
  if (found != given_.end() && !found->second.place.empty())
    return fmt::format("{}: {} {}", found->second.place, option, found->second.text);
  const auto all = settings(choices);
  return fmt::format("--{} {}", option, config::text_of(find_setting(all, option)->value));
}

void PlanDraft::fail(const std::string& option, const std::string& what) {
  config::fail(fmt::format("{}: {}", where(option), what));
}

void PlanDraft::note(const std::string& option, const std::string& what) {
  notes.push_back(fmt::format("{}: {}", where(option), what));
}

void PlanDraft::fail_unknown(const std::string& option, const std::string& kind, const Names& known,
                             const std::string& name) {
  const auto near = nearest_of(known, name);
  fail(option,
       fmt::format("unknown {}{}; known: {}", kind,
                   near.empty() ? "" : fmt::format(", did you mean {}?", near), fmt::join(known, ", ")));
}

void check_class(const Entry& entry, const Names& known) {
  if (contains(known, entry.class_name)) return;
  const auto near = nearest_of(known, entry.class_name);
  config::fail(fmt::format("{}: unknown class {}{}", entry.values.place(), entry.class_name,
                           near.empty() ? fmt::format("; known: {}", fmt::join(known, ", "))
                                        : fmt::format(", did you mean {}?", near)));
}

}  // namespace capstan::lab
