#include "capstan/cli/command.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "capstan/base/json.h"
#include "capstan/base/user_error.h"
#include "capstan/config/given.h"

namespace capstan::cli {
namespace {

// From the flag or, if it is not given, from the file of --config.
bool wants_json(const Arguments& arguments) {
  const std::string flag = "--json";
  const auto last = std::find_if(arguments.rbegin(), arguments.rend(), [&](const auto& word) {
    return word == flag || word.starts_with(flag + "=");
  });
  if (last != arguments.rend() && *last == flag) return true;
  const auto text = last != arguments.rend() ? last->substr(flag.size() + 1)
                                             : config::find_in_file(value_of(arguments, "config"), "json");
  bool json = false;
  return config::assign({.name = {}, .value = &json}, text).empty() && json;
}

int fail(const Arguments& arguments, int code, const std::string& message) {
  say("capstan: " + message);
  if (wants_json(arguments)) {
    std::puts(json_line(Json{{"ok", false}, {"error", message}}).c_str());
  }
  return code;
}

}  // namespace

void say(const std::string& line) {
  std::fputs((line + "\n").c_str(), stderr);
}

std::string value_of(const Arguments& arguments, const std::string& name) {
  std::string value;
  for (auto word = arguments.begin(); word != arguments.end(); ++word) {
    const auto equals = word->find('=');
    auto flag = word->substr(0, equals);
    std::ranges::replace(flag, '_', '-');
    if (flag != "--" + name) continue;
    if (equals != std::string::npos)
      value = word->substr(equals + 1);
    else if (word + 1 != arguments.end())
      value = *++word;
  }
  return value;
}

int run_command(const Command& command, const Arguments& arguments) {
  try {
    const int code = command.run(arguments);
    if (std::fflush(stdout) == 0) return code;
    say(fmt::format("capstan: cannot write the result: {}", std::strerror(errno)));
    return code == kSuccess ? kFailed : code;
  } catch (const UserError& error) {
    return fail(arguments, kWrongUsage, error.what());
  } catch (const Failure& error) {
    return fail(arguments, error.code(), error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(arguments, kWrongUsage,
                fmt::format("{}: {}", error.path1().string(), error.code().message()));
  } catch (const std::exception& error) {
    return fail(arguments, kFailed, error.what());
  }
}

int run_one_of(std::initializer_list<Command> commands, int argc, char** argv) {
  for (const auto& command : commands) {
    if (argc > 1 && std::string_view(argv[1]) == command.name)
      return run_command(command, Arguments(argv + 2, argv + argc));
  }
  say("this program is a part of capstan: run capstan --help");
  return kWrongUsage;
}

void end_at_once(bool json) {
  say("capstan: interrupted");
  if (json) std::puts(json_line(Json{{"ok", false}, {"error", "interrupted"}}).c_str());
  std::fflush(stdout);
  ::_exit(kInterrupted);
}

}  // namespace capstan::cli
