#include "capstan/config/given.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>
#include <toml++/toml.h>

#include "capstan/base/spelling.h"
#include "capstan/config/tasks.h"
#include "capstan/config/toml_file.h"
#include "capstan/user_error.h"

namespace capstan::config {
namespace {

// Regular files only: others may be endless.
std::string contents(const std::string& file) {
  struct stat facts {};
  if (::stat(file.c_str(), &facts) != 0)
    fail(fmt::format("{}: cannot be read: {}", file, std::generic_category().message(errno)));
  if (!S_ISREG(facts.st_mode)) fail(fmt::format("{}: cannot be read: not a regular file", file));
  std::ifstream in(file, std::ios::binary);
  if (!in) fail(fmt::format("{}: cannot be read: {}", file, std::generic_category().message(errno)));
  return {std::istreambuf_iterator<char>(in), {}};
}

toml::table parse(const std::string& text, const std::string& name) {
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    fail(fmt::format("{}:{}: {}", name, error.source().begin.line, error.description()));
  }
}

std::string text_of(const toml::node& node, const std::string& where) {
  if (const auto v = node.value_exact<std::string>()) return *v;
  if (const auto v = node.value_exact<bool>()) return *v ? "true" : "false";
  if (const auto v = node.value_exact<std::int64_t>()) return fmt::format("{}", *v);
  if (const auto v = node.value_exact<double>()) return fmt::format("{}", *v);
  fail(fmt::format("{}: a value must be a string, a number, true or false", where));
}

const Field& known(std::span<const Field> fields, const std::string& key, const std::string& place) {
  if (key == "config") fail(fmt::format("{}: a configuration file cannot include another", place));
  if (const auto* field = find(fields, key)) return *field;
  const auto near = suggestion(fields, key);
  fail(fmt::format("{}: {}: unknown key{}", place, key,
                   near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
}

bool is_off(const Given& given) {
  bool on = true;
  return is_switch(given.field->setting) && assign({.name = {}, .value = &on}, given.text).empty() && !on;
}

// True if `later` replaces `earlier`. A switch that is off has no effect, and a switch that adjusts a field
// needs the field's earlier value.
bool overrides(const Given& later, const Given& earlier) {
  if (later.field == earlier.field) return true;
  if (later.field->target() != earlier.field->target()) return false;
  const bool same_field = earlier.field->name() == earlier.field->target();
  return !(later.field->adjusts && (same_field || is_off(later)));
}

void set(const Given& given) {
  const auto name = given.field->name();
  std::string wrong;
  try {
    wrong = assign(given.field->setting, given.text);
  } catch (const UserError& error) {
    if (given.place.empty()) throw;
    fail(fmt::format("{}: {}", given.place, error.what()));
  }
  if (wrong.empty()) return;
  if (given.place.empty()) fail(fmt::format("--{} {}: {}", name, given.text, wrong));
  fail(fmt::format("{}: {}: {}, not \"{}\"", given.place, name, wrong, given.text));
}

}  // namespace

void fail(std::string message) {
  std::ranges::replace_if(
      message, [](unsigned char c) { return std::iscntrl(c) != 0; }, ' ');
  throw UserError(message);
}

const Field* find(std::span<const Field> fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &Field::name);
  return found == fields.end() ? nullptr : &*found;
}

std::string suggestion(std::span<const Field> fields, std::string_view word) {
  std::vector<std::string_view> names;
  for (const auto& field : fields)
    if (!field.setting.positional) names.push_back(field.name());
  return nearest(word, names);
}

std::vector<Given> read_file(const std::filesystem::path& file, std::span<const Field> fields) {
  return read_text(contents(file.string()), file.string(), fields);
}

std::vector<Given> read_text(const std::string& text, const std::string& name,
                             std::span<const Field> fields) {
  const auto table = parse(text, name);
  std::vector<std::pair<std::string, const toml::node*>> entries;
  for (const auto& [key, node] : table)
    if (key != kDerivedTable || !node.is_table()) entries.emplace_back(key.str(), &node);
  std::ranges::stable_sort(entries, {}, [](const auto& e) { return e.second->source().begin.line; });

  std::vector<Given> out;
  for (auto& [key, node] : entries) {
    std::ranges::replace(key, '_', '-');
    const auto place = fmt::format("{}:{}", name, node->source().begin.line);
    const auto& field = known(fields, key, place);
    auto value = text_of(*node, fmt::format("{}: {}", place, key));
    if (!value.empty()) out.push_back({&field, std::move(value), place});
  }
  return out;
}

std::string find_in_file(const std::filesystem::path& file, std::string_view key) {
  try {
    const auto table = parse(contents(file.string()), file.string());
    const auto* node = table.get(key);
    return node ? text_of(*node, file.string()) : "";
  } catch (const UserError&) {
    return "";
  }
}

std::vector<Given> task_defaults(std::span<const Field> fields,
                                 const std::vector<std::vector<Given>>& layers) {
  std::string task;
  for (const auto& layer : layers)
    for (const auto& given : layer)
      if (given.field->name() == "task") task = given.text;
  if (task.empty()) return {};
  const auto& entry = find_task(task);
  return read_text(fmt::format("network = '{}'\n{}", entry.network, entry.defaults),
                   "the defaults of task " + task, fields);
}

void apply(std::span<const Field> fields, std::vector<std::vector<Given>> layers) {
  std::vector<Given> all;
  for (const auto& layer : layers) {
    std::erase_if(all, [&](const Given& earlier) {
      return std::ranges::any_of(layer, [&](const Given& later) { return overrides(later, earlier); });
    });
    all.insert(all.end(), layer.begin(), layer.end());
  }
  for (const auto& field : fields) {  // in this order: --staleness-damping reads --strategy
    const auto last =
        std::find_if(all.rbegin(), all.rend(), [&](const Given& g) { return g.field == &field; });
    if (last != all.rend()) set(*last);
  }
}

}  // namespace capstan::config
