#include "capstan/optimizer/spec.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capstan/base/parameter_groups.h"
#include "capstan/base/spelling.h"
#include "capstan/base/text.h"
#include "capstan/user_error.h"

namespace capstan::optimizer {
namespace {

void read(const std::string& name, const std::string& text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw UserError(fmt::format("option {}: \"{}\" is not a number", name, text));
}

void read(const std::string& name, const std::string& text, bool& value) {
  if (text != "true" && text != "false")
    throw UserError(fmt::format("option {}: \"{}\" must be true or false", name, text));
  value = text == "true";
}

[[noreturn]] void reject_name(const std::string& name, Kind kind) {
  std::vector<std::string_view> known;
  std::uint32_t owners = 0;
  Options any;
  visit_options(
      [&](const OptionInfo& option, auto&) {
        if (option.belongs_to(kind)) known.push_back(option.name);
        if (option.name == name) owners = option.owners;
      },
      any);
  if (owners != 0)
    throw UserError(fmt::format("{} is an option of {}, not of optimizer {}", name, names_of(owners),
                                optimizer::name(kind)));
  const auto meant = nearest(name, known);
  throw UserError(
      fmt::format("unknown option \"{}\" of optimizer {}{}; known are {}", name, optimizer::name(kind),
                  meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant), fmt::join(known, ", ")));
}

// "lr=0.001"
void set_option(const std::string& text, Options& options) {
  const auto equals = text.find('=');
  if (equals == std::string::npos)
    throw UserError(fmt::format("option \"{}\" must be NAME=VALUE, such as lr=0.001", text));
  const auto name = text.substr(0, equals), value = text.substr(equals + 1);
  bool found = false;
  visit_options(
      [&](const OptionInfo& option, auto& member) {
        if (option.name != name || !option.belongs_to(options.kind)) return;
        read(name, value, member);
        found = true;
      },
      options);
  if (!found) reject_name(name, options.kind);
}

// "adam:lr=0.001:beta1=0.5"
Options parse_one(const std::string& text, const std::function<Options(Kind)>& base) {
  const auto parts = split(text, ':');
  auto options = base(parse_kind(parts[0]));
  for (std::size_t i = 1; i < parts.size(); ++i) set_option(parts[i], options);
  validate(options);
  return options;
}

// "fc*=adam:lr=0.001"
Spec::Group parse_group(const std::string& text, const std::function<Options(Kind)>& base) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UserError(
        fmt::format("--optimizer: group \"{}\" must be GLOB=OPTIMIZER, such as fc*=adam:lr=0.001", text));
  const auto glob = text.substr(0, equals);
  try {
    return {glob, parse_one(text.substr(equals + 1), base)};
  } catch (const UserError& error) {
    throw UserError(fmt::format("--optimizer: group {}: {}", glob, error.what()));
  }
}

// What a row tensor's optimizer must not have, as "momentum"; empty if it is possible.
std::string obstacle(const Options& o) {
  switch (o.kind) {
    case Kind::kSgd:
      if (o.momentum != 0) return "sgd with momentum";
      return o.weight_decay != 0 ? "sgd with weight decay" : "";
    case Kind::kAdagrad:
      return o.weight_decay != 0 ? "adagrad with weight decay" : "";
    case Kind::kSparseAdam:
      return "";
    default:
      return std::string(name(o.kind));
  }
}

Spec parse_groups(const std::string& text, const std::function<Options(Kind)>& base) {
  std::vector<Spec::Group> groups;
  for (const auto& part : split(text, ',')) {
    auto group = parse_group(part, base);
    if (std::ranges::find(groups, group.glob, &Spec::Group::glob) != groups.end())
      throw UserError(fmt::format("--optimizer: group {} is given twice", group.glob));
    groups.push_back(std::move(group));
  }
  const auto first = std::ranges::find(groups, kDefaultGroup, &Spec::Group::glob);
  if (first == groups.end())
    throw UserError(fmt::format(
        "--optimizer {}: groups need a default for all other tensors, such as default=sgd", text));
  Spec spec(first->options);
  groups.erase(first);
  spec.groups = std::move(groups);
  return spec;
}

}  // namespace

std::vector<std::string> Spec::globs() const {
  std::vector<std::string> globs;
  for (const auto& group : groups) globs.push_back(group.glob);
  return globs;
}

std::string Spec::kinds() const {
  if (groups.empty()) return std::string(name(first.kind));
  auto text = fmt::format("{}={}", kDefaultGroup, name(first.kind));
  for (const auto& group : groups) text += fmt::format(",{}={}", group.glob, name(group.options.kind));
  return text;
}

Spec parse_spec(const std::string& text, const std::function<Options(Kind)>& base) {
  const auto head = text.substr(0, text.find(':'));
  const bool has_groups = text.find(',') != std::string::npos || head.find('=') != std::string::npos;
  return has_groups ? parse_groups(text, base) : Spec(parse_one(text, base));
}

void check_rows(const Spec& spec, const FlatLayout& layout, const ParameterGroups& groups) {
  for (std::size_t t = 0; t < groups.of_tensors().size(); ++t) {
    const auto& group = groups[groups.of_tensors()[t]];
    const auto& options = spec[group.optimizer];
    const auto& tensor = layout.tensors()[t].name;
    if (!group.is_rows && options.kind == Kind::kSparseAdam)
      throw UserError(
          fmt::format("--optimizer: sparse-adam is for tensors with sparse gradients; {} has dense ones: "
                      "give it another, "
                      "as in default=adam,GLOB=sparse-adam",
                      tensor));
    if (const auto wrong = group.is_rows ? obstacle(options) : ""; !wrong.empty())
      throw UserError(fmt::format(
          "--optimizer: {} has sparse gradients, which {} cannot use; possible are sgd without momentum and "
          "weight decay (sgd:momentum=0), adagrad without weight decay, and sparse-adam",
          tensor, wrong));
  }
}

OptimizerSet::OptimizerSet(const Spec& spec, const Schedule& schedule) : spec_(spec) {
  for (std::size_t entry = 0; entry < spec.size(); ++entry) {
    const auto& optimizer = all_.emplace_back(spec[entry], schedule);
    auto& indices = state_of_.emplace_back();
    for (const auto& name : optimizer.state_names()) {
      const auto found = std::ranges::find(state_names_, name);
      indices.push_back(static_cast<std::size_t>(found - state_names_.begin()));
      if (found == state_names_.end()) state_names_.push_back(name);
    }
  }
}

}  // namespace capstan::optimizer
