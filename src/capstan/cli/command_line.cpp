#include "capstan/cli/command_line.h"

#include <algorithm>
#include <set>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "capstan/base/text.h"

namespace capstan::cli {
namespace {

using config::Field;
using config::Given;
using config::Setting;
using Typed = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kHelp = "-h,--help";

// A program may be one command.
std::string full_name(const std::string& program, const std::string& command) {
  return command.empty() ? program : program + " " + command;
}

// Help text, 80 columns wide, with the hint and the default of each value.
class HelpFormatter final : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::string program) : program_(std::move(program)) { column_width(28); }
  std::string make_help(const CLI::App* app, std::string program, CLI::AppFormatMode) const override {
    auto out = make_description(app);
    if (!out.ends_with("\n\n")) out += "\n";
    out += make_usage(app, program);
    for (const auto& group : app->get_groups()) {
      if (group.empty()) continue;
      out += make_group(group, false,
                        app->get_options([&](const CLI::Option* o) { return o->get_group() == group; }));
    }
    return out;
  }
  std::string make_usage(const CLI::App* app, std::string) const override {
    return fmt::format("Usage: {} [FLAGS]\n", full_name(program_, app->get_name()));
  }
  std::string make_option(const CLI::Option* option, bool) const override {
    auto out = "  " + make_option_name(option, false) + make_option_opts(option);
    const auto indent = get_column_width();
    out += out.size() < indent ? std::string(indent - out.size(), ' ') : "\n" + std::string(indent, ' ');
    return out + wrapped(make_option_desc(option), indent, indent) + "\n";
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    const bool has_value = option->get_items_expected_max() > 0 && !option->get_positional();
    return has_value ? " " + option->get_option_text() : "";
  }

 private:
  const std::string program_;
};

std::string hint_of(const Setting& setting) {
  if (!setting.hint.empty()) return std::string(setting.hint);
  const auto* action = std::get_if<config::Action>(&setting.value);
  if (action || std::holds_alternative<std::string*>(setting.value) ||
      std::holds_alternative<std::filesystem::path*>(setting.value))
    return std::holds_alternative<config::WholeRange>(setting.limits) ? "N" : "TEXT";
  return std::holds_alternative<double*>(setting.value) ||
                 std::holds_alternative<std::optional<double>*>(setting.value)
             ? "X"
             : "N";
}

CLI::Option* add_to(CLI::App& app, const Setting& setting) {
  const auto name = fmt::format("{}{}{}{}", setting.positional ? "" : "--", setting.name,
                                setting.also.empty() ? "" : ",", setting.also);
  std::string help(setting.help);
  CLI::Option* option = nullptr;
  if (is_switch(setting)) {
    option = app.add_flag(name);
  } else {
    option = app.add_option(name, [](const CLI::results_t&) { return true; });
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)->option_text(hint_of(setting));
    // A default that is no valid value means "none" and is not shown.
    if (const auto fallback = text_of(setting.value);
        setting.shows_default && !fallback.empty() && assign(setting, fallback).empty())
      help += " [" + fallback + "]";
  }
  return option->description(help)->group(setting.hidden ? "" : std::string(setting.group));
}

// CLI11's application, and its option for each flag.
struct Parser {
  CLI::App app;
  std::vector<CLI::Option*> options;

  Parser(const std::string& program, const std::string& command, const std::string& description,
         const std::vector<Field>& flags)
      : app(description, command) {
    app.set_help_flag();
    app.allow_extras();
    app.formatter(std::make_shared<HelpFormatter>(program));
    for (const auto& flag : flags) options.push_back(add_to(app, flag.setting));
    app.add_flag(kHelp)->description("Print this help");
  }
};

// At any position, even if other arguments are wrong.
bool asks_for_help(const Arguments& arguments) {
  return std::ranges::any_of(arguments, [](const auto& word) {
    return word == "--help" || word == "-h" || word.starts_with("--help=");
  });
}

// "--batch_size=a_b" → "--batch-size=a_b".
std::string with_dashes(std::string word) {
  if (!word.starts_with("--")) return word;
  const auto end = word.begin() + static_cast<std::ptrdiff_t>(std::min(word.find('='), word.size()));
  std::replace(word.begin(), end, '_', '-');
  return word;
}

[[noreturn]] void fail_unknown(const std::string& help, const std::vector<Field>& flags,
                               const std::string& word) {
  const auto start = word.find_first_not_of('-');
  if (start == 0 || start == std::string::npos || word[start] == '=')
    config::fail(fmt::format("unexpected argument \"{}\" (see {})", word, help));
  const auto flag = word.substr(0, word.find('='));
  const auto near = config::suggestion(flags, flag.substr(start));
  config::fail(fmt::format("unknown flag {}{} (see {})", flag,
                           near.empty() ? "" : fmt::format(", did you mean --{}?", near), help));
}

// `help` is the command that prints the help. `words` gets the arguments without a name, if it is not null.
Typed read_arguments(const std::string& help, const std::vector<Field>& flags, const Arguments& arguments,
                     Arguments* unknown, Arguments* words_without_name) {
  Parser parser("", "", "", flags);
  Arguments words;
  for (const auto& word : arguments) words.push_back(with_dashes(word));
  // CLI11 would take the next word for the value.
  for (const auto& word : words) {
    if (word.starts_with("--") && word.find('=') == word.size() - 1 &&
        parser.app.get_option_no_throw(word.substr(0, word.size() - 1)))
      config::fail(fmt::format("{}: is empty", word.substr(0, word.size() - 1)));
  }
  std::ranges::reverse(words);  // CLI11 expects them in reverse
  try {
    parser.app.parse(std::move(words));
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string text = error.what();
    config::fail(fmt::format("{} needs a value", text.substr(0, text.find(':'))));
  }
  Typed out;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    if (parser.options[i]->results().empty()) continue;
    const auto& text = parser.options[i]->results().back();
    const auto name = flags[i].name();
    if (text.empty()) config::fail(fmt::format("--{}: is empty", name));
    if (text.starts_with("--")) config::fail(fmt::format("--{} needs a value", name));
    out.emplace_back(name, text);
  }
  auto rest = parser.app.remaining();
  if (words_without_name) {
    const auto [first, last] =
        std::ranges::stable_partition(rest, [](const auto& word) { return word.starts_with("-"); });
    words_without_name->assign(first, last);
    rest.erase(first, last);
  }
  if (unknown)
    *unknown = rest;
  else if (!rest.empty())
    fail_unknown(help, flags, rest.front());
  return out;
}

}  // namespace

CommandLine::CommandLine(std::string command, std::string description, const job::Program& program)
    : command_(std::move(command)), description_(std::move(description)), program_(program) {}

Setting& CommandLine::flag(std::string_view name, config::Value value, std::string_view help,
                           config::Limits limits, std::string_view hint) {
  std::erase_if(flags_, [&](const Field& flag) { return flag.name() == name; });
  flags_.push_back({.setting = {.name = name,
                                .value = std::move(value),
                                .limits = std::move(limits),
                                .help = help,
                                .group = group_,
                                .hint = hint}});
  return flags_.back().setting;
}

void CommandLine::add(std::vector<Setting> settings) {
  for (auto& setting : settings) flags_.push_back({.setting = std::move(setting)});
}

Setting& CommandLine::positional(std::string_view name, config::Value value, std::string_view help) {
  auto& setting = flag(name, std::move(value), help);
  setting.positional = true;
  return setting;
}

void CommandLine::positionals(std::string_view name, Arguments* words, std::string_view help) {
  words_ = words;
  words_field_ = {.setting = {.name = name,
                              .value = config::Action{[](const std::string&) {}},
                              .help = help,
                              .group = group_,
                              .positional = true}};
}

void CommandLine::add(config::JobConfig& job, config::Commands command) {
  job_ = &job;
  if (program_.has_own_task()) take_defaults(job);
  for (auto& field : config::fields(job)) {
    const bool is_flag = (field.commands & command) != 0 && !config::find(flags_, field.name()) &&
                         !(program_.has_own_task() && config::is_for_networks(field));
    if (command == config::kWork && field.is_shared()) {
      field.setting.group = "Job (set by the server; a different value is refused)";
      field.setting.shows_default = false;
    }
    (is_flag ? flags_ : only_in_files_).push_back(std::move(field));
  }
  if (!program_.has_own_task()) return;
  describe("dataset", "Name of the data, for the program's own task");
  describe("data-dir", "Folder with data, for the program's own task");
  describe("loader-threads",
           "Threads per worker that prepare batches, if the task uses them (0: cores ÷ workers)");
}

void CommandLine::take_defaults(config::JobConfig& job) const {
  job.program = job.network = program_.name;
  job.dataset = "default";
  auto fields = config::fields(job);
  std::erase_if(fields, config::is_for_networks);
  std::vector<Given> given;
  for (const auto& [name, text] : program_.defaults) {
    const auto* field = config::find(fields, name);
    if (!field) {
      const auto near = config::suggestion(fields, name);
      config::fail(fmt::format("RunOptions::defaults: unknown flag {}{}", name,
                               near.empty() ? "" : fmt::format(", did you mean {}?", near)));
    }
    given.push_back({field, text, "RunOptions::defaults"});
  }
  config::apply(fields, {given});
}

void CommandLine::describe(std::string_view name, std::string_view help) {
  const auto flag = std::ranges::find(flags_, name, &Field::name);
  if (flag != flags_.end()) flag->setting.help = help;
}

std::vector<Field> CommandLine::flags(bool with_config) const {
  auto out = flags_;
  if (!with_config) return out;
  out.push_back({.setting = {.name = "config",
                             .value = config::Action{[](const std::string&) {}},
                             .help = "TOML file with flags; the command line overrides it",
                             .hint = "FILE"}});
  return out;
}

std::string CommandLine::help() const {
  auto all = flags();
  if (words_field_) all.insert(all.begin(), *words_field_);
  return Parser(program_.name, command_, description_, all).app.help();
}

std::string CommandLine::help_command() const {
  return full_name(program_.name, command_) + " --help";
}

bool CommandLine::parse(const Arguments& arguments, Arguments* unknown) {
  if (asks_for_help(arguments)) {
    fmt::print("{}", help());
    return false;
  }
  auto all = flags(!unknown);
  const auto typed = read_arguments(help_command(), all, arguments, unknown, words_);
  if (words_field_ && words_->empty())
    config::fail(fmt::format("{} is required (see {})", words_field_->name(), help_command()));
  // Last: a command's own flag takes precedence over a field of the job.
  all.insert(all.end(), only_in_files_.begin(), only_in_files_.end());
  const auto layers = read_layers(all, typed);
  auto with_defaults = layers;
  with_defaults.insert(with_defaults.begin(), config::task_defaults(all, layers));
  config::apply(all, with_defaults);

  std::set<const Field*> given;
  for (const auto& layer : layers) {
    for (const auto& g : layer) {
      given.insert(g.field);
      given_.push_back({std::string(g.field->name()), g.text, g.place});
    }
  }
  for (const auto& field : all) {
    if (field.setting.required && !given.contains(&field))
      config::fail(fmt::format("{}{} is required (see {})", field.setting.positional ? "" : "--",
                               field.name(), help_command()));
    if (field.commands != config::kNoCommand && given.contains(&field)) job_->given.emplace(field.target());
  }
  return true;
}

std::vector<std::vector<Given>> CommandLine::read_layers(const std::vector<Field>& all,
                                                         const Typed& typed) const {
  std::vector<std::vector<Given>> layers;
  std::string file;
  for (const auto& [name, text] : typed)
    if (name == "config") file = text;
  if (!first_file_.empty()) layers.push_back(config::read_file(first_file_, all));
  if (!file.empty()) layers.push_back(config::read_file(file, all));
  auto& last = layers.emplace_back();
  for (const auto& [name, text] : typed) last.push_back({config::find(all, name), text, ""});
  return layers;
}

}  // namespace capstan::cli
