#include "capstan/cli/command.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "capstan/base/json.h"
#include "capstan/base/spelling.h"
#include "capstan/base/text.h"
#include "capstan/config/given.h"
#include "capstan/user_error.h"

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

// Errors may quote a peer or a file.
int fail(const std::string& program, const Arguments& arguments, int code, const std::string& error) {
  const auto message = printable(error);
  say(program + ": " + message);
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

int run_command(const Command& command, const Arguments& arguments, const std::string& program) {
  (void)std::signal(SIGXFSZ, SIG_IGN);  // a file that is too large is an error of write, as a full disk
  try {
    const int code = command.run(arguments);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
    say(fmt::format("{}: cannot write the result: {}", program, std::strerror(errno)));
    return code == kSuccess ? kFailed : code;
  } catch (const UserError& error) {
    return fail(program, arguments, kWrongUsage, error.what());
  } catch (const Failure& error) {
    return fail(program, arguments, error.code(), error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(program, arguments, kWrongUsage,
                fmt::format("{}: {}", error.path1().string(), error.code().message()));
  } catch (const std::exception& error) {
    return fail(program, arguments, kFailed, error.what());
  } catch (...) {  // of a plug-in
    return fail(program, arguments, kFailed, "an exception of an unknown type");
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

int unknown_command(const std::string& word, std::span<const std::string_view> names,
                    const std::string& program) {
  const auto near = nearest(word, names);
  say(fmt::format("{0}: unknown command \"{1}\"{2} (see {0} --help)", program, word,
                  near.empty() ? "" : fmt::format(", did you mean {}?", near)));
  return kWrongUsage;
}

void open_standard_files() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", O_RDWR);
}

void end_at_once(bool json, const std::string& program) {
  say(program + ": interrupted");
  if (json) std::puts(json_line(Json{{"ok", false}, {"error", "interrupted"}}).c_str());
  std::fflush(stdout);
  ::_exit(kInterrupted);
}

}  // namespace capstan::cli
