#include "capstan/lab/experiment.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include "capstan/base/spelling.h"
#include "capstan/base/text.h"
#include "capstan/config/given.h"
#include "capstan/lab/shipped_files.h"

namespace capstan::lab {
namespace {

namespace fs = std::filesystem;
using config::fail;
using config::Setting;

constexpr std::size_t kMostCases = 256;

// What the value of an option is in TOML.
enum class Type { kText, kWhole, kNumber, kBoolean };

Type type_of(const config::Value& value) {
  if (std::holds_alternative<bool*>(value)) return Type::kBoolean;
  if (std::holds_alternative<double*>(value)) return Type::kNumber;
  if (std::holds_alternative<std::string*>(value) || std::holds_alternative<fs::path*>(value))
    return Type::kText;
  return Type::kWhole;
}

std::string text_of(const toml::node& node, Type type, const std::string& where) {
  const auto whole = node.value_exact<std::int64_t>();
  switch (type) {
    case Type::kText:
      if (const auto text = node.value_exact<std::string>(); text && !text->empty()) return *text;
      fail(where + " should be a text");
    case Type::kBoolean:
      if (const auto on = node.value_exact<bool>()) return *on ? "true" : "false";
      fail(where + " should be true or false");
    case Type::kNumber:
      if (const auto number = node.value_exact<double>()) return fmt::format("{}", *number);
      if (whole) return fmt::format("{}", *whole);
      fail(where + " should be a number");
    case Type::kWhole:
      if (whole) return fmt::format("{}", *whole);
      fail(where + " should be a whole number");
  }
  return {};
}

toml::table parse(const fs::path& file) {
  if (!fs::is_regular_file(file)) fail(file.string() + ": cannot be read");  // opening a pipe would wait
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (!in) fail(file.string() + ": cannot be read");
  text << in.rdbuf();
  try {
    return toml::parse(text.str(), file.string());
  } catch (const toml::parse_error& error) {
    fail(fmt::format("{}:{}: {}", file.string(), error.source().begin.line, error.description()));
  }
}

// One key of a file.
class Reader {
 public:
  explicit Reader(const fs::path& file) : folder_(file.parent_path()), file_(file.string()) {}

  void read(const std::string& key, const toml::node& node, Experiment& out) {
    const auto place = fmt::format("{}:{}", file_, node.source().begin.line);
    if (key == "description") {
      out.description = text_of(node, Type::kText, place + ": description");
      return;
    }
    const auto* setting = find_setting(settings_, key);
    if (!setting) fail_unknown(key, place);
    const std::string name(setting->name);
    if (const auto [first, is_new] = seen_.emplace(name, key); !is_new)
      fail(fmt::format("{}: {} is the same option as {}, which the file has already", place, key,
                       first->second));
    const auto where = fmt::format("{}: {}", place, key);
    const auto* list = node.as_array();
    Experiment::Choice choice{name, {}, list != nullptr, place};
    if (!list) choice.values.push_back(value(*setting, node, where));
    if (list && list->empty()) fail(where + " should have a value");
    if (list)
      for (const auto& item : *list) add(choice.values, value(*setting, item, where), where);
    out.choices.push_back(std::move(choice));
  }

 private:
  [[noreturn]] void fail_unknown(const std::string& key, const std::string& place) const {
    std::vector<std::string_view> names = {"description"};
    for (const auto& setting : settings_) names.push_back(setting.name);
    auto word = key;
    std::ranges::replace(word, '_', '-');
    const auto near = nearest(word, names);
    fail(fmt::format("{}: {}: unknown key{}", place, key,
                     near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
  }

  std::string value(const Setting& setting, const toml::node& node, const std::string& where) {
    auto text = text_of(node, type_of(setting.value), where);
    if (std::holds_alternative<fs::path*>(setting.value)) text = (folder_ / text).string();
    if (const auto wrong = config::assign(setting, text); !wrong.empty())
      fail(fmt::format("{}: {}, not {}", where, wrong, text));
    return text;
  }

  static void add(std::vector<std::string>& values, std::string text, const std::string& where) {
    if (std::ranges::find(values, text) != values.end()) fail(fmt::format("{} has {} twice", where, text));
    values.push_back(std::move(text));
  }

  const fs::path folder_;
  const std::string file_;
  Choices choices_;
  const std::vector<Setting> settings_ = settings(choices_);
  std::map<std::string, std::string> seen_;  // by option: the key
};

// The counts have the names that reports use.
std::string axis_name(const std::string& option) {
  if (option == "ntrainer") return "trainers";
  if (option == "nserver") return "servers";
  auto name = option;
  std::ranges::replace(name, '-', '_');
  return name;
}

report::LabValue axis_value(const Experiment::Choice& choice, const std::string& text) {
  Choices choices;
  const auto all = settings(choices);
  switch (type_of(find_setting(all, choice.option)->value)) {
    case Type::kWhole:
      return static_cast<std::int64_t>(std::stoll(text));
    case Type::kNumber:
      return std::stod(text);
    case Type::kBoolean:
      return text == "true";
    case Type::kText:
      return text;
  }
  return nullptr;
}

// Every case with each value of the choice.
std::vector<Case> product(const std::vector<Case>& cases, const Experiment::Choice& choice) {
  std::vector<Case> out;
  for (const auto& before : cases) {
    for (const auto& value : choice.values) {
      auto& next = out.emplace_back(before);
      next.given.push_back({choice.option, value, choice.place});
      if (choice.varies) next.axis.emplace_back(axis_name(choice.option), axis_value(choice, value));
    }
  }
  return out;
}

std::string case_name(const std::string& experiment, const report::LabOptions& axis) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : axis) parts.push_back(fmt::format("{}={}", name, report::text_of(value)));
  return parts.empty() ? experiment : fmt::format("{} [{}]", experiment, fmt::join(parts, ", "));
}

}  // namespace

std::vector<Case> Experiment::cases(const std::set<std::string>& overridden) const {
  std::vector<Case> out(1);
  for (const auto& choice : choices) {
    if (overridden.contains(choice.option)) continue;
    if (out.size() * choice.values.size() > kMostCases)
      fail(fmt::format("{}: {} makes more than {} configurations", choice.place, choice.option, kMostCases));
    out = product(out, choice);
  }
  for (auto& each : out) each.name = case_name(name, each.axis);
  return out;
}

Experiment read_experiment(const fs::path& file) {
  const auto table = parse(file);
  std::vector<std::pair<std::string, const toml::node*>> lines;
  for (const auto& [key, node] : table) lines.emplace_back(key.str(), &node);
  std::ranges::stable_sort(lines, {}, [](const auto& line) { return line.second->source().begin.line; });
  Experiment out{file.stem().string(), {}, {}};
  Reader reader(file);
  for (const auto& [key, node] : lines) reader.read(key, *node, out);
  return out;
}

std::vector<Experiment> all_experiments() {
  std::map<std::string, fs::path> files;
  for (const auto& folder : shipped_folders("experiments"))
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() == ".toml") files.emplace(entry.path().stem().string(), entry.path());
  std::vector<Experiment> out;
  for (const auto& [name, file] : files) out.push_back(read_experiment(file));
  return out;
}

std::string experiments_text() {
  constexpr std::size_t kIndent = 28;
  std::string out;
  for (const auto& experiment : all_experiments()) {
    const auto name = experiment.name.size() + 2 > kIndent
                          ? experiment.name + "\n" + std::string(kIndent, ' ')
                          : fmt::format("{:<{}}", experiment.name, kIndent);
    out += name + wrapped(experiment.description, kIndent, kIndent) + "\n";
  }
  return out;
}

Experiment find_experiment(const std::string& name) {
  if (name.ends_with(".toml")) return read_experiment(fs::absolute(name));
  if (const auto file = find_shipped("experiments", name + ".toml"); !file.empty())
    return read_experiment(file);
  std::vector<std::string> names;
  for (const auto& experiment : all_experiments()) names.push_back(experiment.name);
  const auto near = nearest(name, std::vector<std::string_view>(names.begin(), names.end()));
  fail(fmt::format("--experiment {}: unknown{}; --experiment list shows all, and a path ends in .toml", name,
                   near.empty() ? "" : fmt::format(", did you mean {}?", near)));
}

}  // namespace capstan::lab
