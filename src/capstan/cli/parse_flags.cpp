#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <system_error>

#include <fmt/format.h>
#include <sys/stat.h>
#include <toml++/toml.h>

#include "capstan/base/spelling.h"
#include "capstan/base/user_error.h"
#include "capstan/cli/flags.h"
#include "capstan/cli/output.h"

namespace capstan::cli {
namespace {

// One flag that is given.
struct Given {
  CLI::Option* option;
  std::string text;   // of the value; "true" for a switch
  std::string place;  // "file.toml:3"; empty on the command line
};

// Flags that set the same: one on the command line overrides the other in the file.
struct Conflict {
  std::string_view flag, other;
};
constexpr Conflict kConflicts[] = {
    {"strategy", "num-aggregate"},
    {"strategy", "staleness-damping"},
    {"num-aggregate", "strategy"},
    {"num-aggregate", "staleness-damping"},
    {"staleness-damping", "num-aggregate"},
    {"device", "enable-gpu"},
    {"enable-gpu", "device"},
};

// Whatever a user typed, the message is one line.
[[noreturn]] void fail(std::string message) {
  std::ranges::replace_if(
      message, [](unsigned char c) { return std::iscntrl(c) != 0; }, ' ');
  throw UserError(message);
}

// Without dashes; that of what needs no flag is in capitals.
std::string name(const CLI::Option& option) {
  return option.get_lnames().empty() ? option.get_name(true) : option.get_lnames().front();
}

bool is_switch(const CLI::Option& option) {
  return option.get_items_expected_max() == 0;
}

// UINT, FLOAT, TEXT …, without what checks add.
std::string kind(const CLI::Option& option) {
  const auto type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

// Decimal, or hexadecimal behind 0x; zeros in front do not make it octal.
std::optional<std::uint64_t> whole_number(std::string_view text) {
  const bool hexadecimal = text.starts_with("0x");
  if (hexadecimal) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, hexadecimal ? 16 : 10);
  return error == std::errc() && rest == end ? std::optional(value) : std::nullopt;
}

std::optional<double> finite_number(const std::string& text) {
  if (text.empty() || std::isspace(static_cast<unsigned char>(text.front()))) return std::nullopt;
  char* rest = nullptr;
  const double value = std::strtod(text.c_str(), &rest);
  return rest == text.c_str() + text.size() && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string suggestion(const CLI::App& app, const std::string& word) {
  std::vector<std::string_view> names;
  for (const auto* option : app.get_options())
    for (const auto& known : option->get_lnames()) names.push_back(known);
  return nearest(word, names);
}

[[noreturn]] void unknown(const CLI::App& app, const std::string& word) {
  const auto start = word.find_first_not_of('-');
  if (start == 0 || start == std::string::npos)
    fail(fmt::format("unexpected argument \"{}\" (see capstan {} --help)", word, app.get_name()));
  const auto flag = word.substr(0, word.find('='));
  const auto near = suggestion(app, flag.substr(std::min(start, flag.size())));
  fail(fmt::format("unknown flag {}{} (see capstan {} --help)", flag,
                   near.empty() ? "" : fmt::format(", did you mean --{}?", near), app.get_name()));
}

// "--batch_size=3" → the option --batch-size.
CLI::Option* find_flag(CLI::App& app, std::string flag) {
  if (flag.starts_with("--")) std::ranges::replace(flag, '_', '-');
  return app.get_option_no_throw(flag);
}

// What a command takes without a flag; null for none.
CLI::Option* positional(CLI::App& app) {
  for (auto* option : app.get_options())
    if (option->get_positional()) return option;
  return nullptr;
}

// "-vq" → -v and -q, where both are switches of the command.
std::vector<Given> read_letters(CLI::App& app, const std::string& word) {
  std::vector<Given> out;
  for (std::size_t i = 1; i < word.size(); ++i) {
    auto* option = app.get_option_no_throw({'-', word[i]});
    if (!option || !is_switch(*option) || option == app.get_help_ptr()) unknown(app, word);
    out.push_back({option, "true", ""});
  }
  return out;
}

// Wherever it stands, and whatever is wrong beside it.
bool asks_for_help(const Arguments& arguments) {
  return std::ranges::any_of(arguments, [](const auto& word) {
    return word == "--help" || word == "-h" || word.starts_with("--help=");
  });
}

std::vector<Given> read_arguments(CLI::App& app, const Arguments& arguments) {
  std::vector<Given> out;
  for (auto word = arguments.begin(); word != arguments.end(); ++word) {
    if (auto* place = positional(app); place && !word->starts_with("-")) {
      if (std::ranges::any_of(out, [&](const Given& given) { return given.option == place; }))
        unknown(app, *word);
      out.push_back({place, *word, ""});
      continue;
    }
    const auto equals = word->find('=');
    auto* option = find_flag(app, word->substr(0, equals));
    if (!option) {
      if (word->size() < 3 || (*word)[0] != '-') unknown(app, *word);
      const auto letters = read_letters(app, *word);
      out.insert(out.end(), letters.begin(), letters.end());
      continue;
    }
    std::string text = "true";
    if (equals != std::string::npos) {
      text = word->substr(equals + 1);
    } else if (!is_switch(*option)) {
      if (word + 1 == arguments.end() || (word + 1)->starts_with("--"))
        fail(fmt::format("--{} needs a value", name(*option)));
      text = *++word;
    }
    if (text.empty()) fail(fmt::format("--{}: is empty", name(*option)));
    out.push_back({option, text, ""});
  }
  return out;
}

// Only of a regular file: others may never end.
std::string file_contents(const std::string& file) {
  struct stat facts {};
  if (::stat(file.c_str(), &facts) != 0)
    fail(fmt::format("{}: cannot be read: {}", file, std::generic_category().message(errno)));
  if (!S_ISREG(facts.st_mode)) fail(fmt::format("{}: cannot be read: not a regular file", file));
  std::ifstream in(file, std::ios::binary);
  if (!in) fail(fmt::format("{}: cannot be read: {}", file, std::generic_category().message(errno)));
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string value_text(const toml::node& node, const std::string& where) {
  if (const auto v = node.value_exact<std::string>()) return *v;
  if (const auto v = node.value_exact<bool>()) return *v ? "true" : "false";
  if (const auto v = node.value_exact<std::int64_t>()) return fmt::format("{}", *v);
  if (const auto v = node.value_exact<double>()) return fmt::format("{}", *v);
  fail(fmt::format("{}: a value must be a text, a number, true or false", where));
}

// The file's keys in the order of its lines; an empty value means the default.
std::vector<Given> read_config(CLI::App& app, const std::string& file) {
  toml::table table;
  try {
    table = toml::parse(file_contents(file), file);
  } catch (const toml::parse_error& error) {
    fail(fmt::format("{}:{}: {}", file, error.source().begin.line, error.description()));
  }
  std::vector<std::pair<std::string, const toml::node*>> entries;
  for (const auto& [key, node] : table) entries.emplace_back(key.str(), &node);
  std::ranges::stable_sort(entries, {}, [](const auto& e) { return e.second->source().begin.line; });

  std::vector<Given> out;
  for (auto& [key, node] : entries) {
    std::ranges::replace(key, '_', '-');
    const auto place = fmt::format("{}:{}", file, node->source().begin.line);
    auto* option = app.get_option_no_throw("--" + key);
    if (key == "config") fail(fmt::format("{}: a configuration file cannot name another", place));
    if (!option || key == "help") {
      const auto near = suggestion(app, key);
      fail(fmt::format("{}: {}: unknown key{}", place, key,
                       near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
    }
    const auto text = value_text(*node, fmt::format("{}: {}", place, key));
    if (!text.empty()) out.push_back({option, text, place});
  }
  return out;
}

bool is_off(const Given& given) {
  bool on = true;
  return is_switch(*given.option) && CLI::detail::lexical_cast(given.text, on) && !on;
}

// Drops what the command line overrides under another name. Without damping, any strategy is right.
void drop_rivals(std::vector<Given>& from_file, const std::vector<Given>& typed) {
  for (const auto& [flag, other] : kConflicts) {
    const bool overrides = std::ranges::any_of(typed, [&](const Given& g) {
      return name(*g.option) == flag && !(flag == "staleness-damping" && is_off(g));
    });
    if (overrides) std::erase_if(from_file, [&](const Given& g) { return name(*g.option) == other; });
  }
}

[[noreturn]] void wrong_value(const Given& given, const std::string& reason) {
  if (given.place.empty()) fail(fmt::format("--{} {}: {}", name(*given.option), given.text, reason));
  fail(fmt::format("{}: {}: {}, not \"{}\"", given.place, name(*given.option), reason, given.text));
}

void apply(const Given& given) {
  auto& option = *given.option;
  const auto whole = kind(option) == "UINT" ? whole_number(given.text) : std::nullopt;
  try {
    option.add_result(whole ? fmt::format("{}", *whole) : given.text);
    option.run_callback();
  } catch (const CLI::ValidationError& error) {
    wrong_value(given, std::string(error.what()).substr(option.get_name().size() + 2));  // behind "--name: "
  } catch (const CLI::ParseError&) {
    wrong_value(given, is_switch(option) ? "should be true or false"
                       : whole           ? "should be a smaller number"
                                         : "cannot be read as " + kind(option));
  } catch (const UserError& error) {
    if (given.place.empty()) throw;
    fail(fmt::format("{}: {}", given.place, error.what()));
  }
}

// Help as people read it, 80 columns wide: the kind of a value and its default, without the parser's own
// terms.
class HelpFormatter final : public CLI::Formatter {
 public:
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
    return fmt::format("Usage: capstan {} [FLAGS]\n", app->get_name());
  }
  std::string make_option(const CLI::Option* option, bool) const override {
    auto out = "  " + make_option_name(option, false) + make_option_opts(option);
    const auto indent = get_column_width();
    out += out.size() < indent ? std::string(indent - out.size(), ' ') : "\n" + std::string(indent, ' ');
    return out + wrapped(make_option_desc(option), indent, indent) + "\n";
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    if (is_switch(*option) || option->get_positional()) return "";
    if (!option->get_option_text().empty()) return " " + option->get_option_text();
    const auto type = kind(*option);
    return type == "UINT" ? " N" : type == "FLOAT" ? " X" : " " + type;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const auto fallback = option->get_default_str();
    return option->get_description() + (fallback.empty() ? "" : fmt::format(" [{}]", fallback));
  }
};

}  // namespace

CLI::Validator number_in(double low, double high) {
  const auto check = [=](const std::string& text) {
    const auto value = finite_number(text);
    return value && *value >= low && *value <= high
               ? std::string()
               : fmt::format("should be a number from {} to {}", low, high);
  };
  return {check, ""};
}

CLI::Validator whole_number_in(std::uint64_t low, std::uint64_t high) {
  const auto check = [=](const std::string& text) {
    const auto value = whole_number(text);
    return value && *value >= low && *value <= high
               ? std::string()
               : fmt::format("should be a whole number from {} to {}", low, high);
  };
  return {check, ""};
}

CLI::Validator one_of(std::vector<std::string> words) {
  const auto check = [words = std::move(words)](const std::string& text) {
    if (std::ranges::find(words, text) != words.end()) return std::string();
    return fmt::format("should be {} or {}", fmt::join(words.begin(), words.end() - 1, ", "), words.back());
  };
  return {check, ""};
}

bool parse_flags(CLI::App& app, const Arguments& arguments) {
  std::string file;
  auto* config = app.add_option("--config", file, "TOML file of flags; flags on the command line win");
  config->type_name("FILE");
  app.set_help_flag("--help,-h", "Print this help");
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->column_width(28);
  for (auto* option : app.get_options()) {  // behind a command's own checks, which say more
    if (kind(*option) == "UINT") option->check(whole_number_in(0, kMostWhole));
    if (kind(*option) == "FLOAT") {
      option->check([](const std::string& text) {
        return finite_number(text) ? std::string() : std::string("should be a number");
      });
    }
  }

  if (asks_for_help(arguments)) {
    fmt::print("{}", app.help());
    return false;
  }
  const auto typed = read_arguments(app, arguments);
  for (const auto& given : typed)
    if (given.option == config) file = given.text;
  std::vector<Given> all = file.empty() ? std::vector<Given>{} : read_config(app, file);
  drop_rivals(all, typed);
  all.insert(all.end(), typed.begin(), typed.end());
  for (auto* option : app.get_options()) {  // in this order: --staleness-damping looks at --strategy
    const auto last =
        std::find_if(all.rbegin(), all.rend(), [&](const Given& g) { return g.option == option; });
    if (last != all.rend()) {
      apply(*last);
    } else if (option->get_required()) {
      fail(fmt::format("{}{} is required (see capstan {} --help)", option->get_positional() ? "" : "--",
                       name(*option), app.get_name()));
    }
  }
  return true;
}

}  // namespace capstan::cli
