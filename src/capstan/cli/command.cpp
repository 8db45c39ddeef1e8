#include "capstan/cli/command.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include <fmt/format.h>

#include "capstan/base/json.h"
#include "capstan/base/user_error.h"
#include "capstan/cli/output.h"

namespace capstan::cli {
namespace {

int fail(const Arguments& arguments, int code, const std::string& message) {
  say("capstan: " + message);
  if (std::ranges::find(arguments, "--json") != arguments.end()) {
    std::puts(json_line(Json{{"ok", false}, {"error", message}}).c_str());
  }
  return code;
}

}  // namespace

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
  } catch (const std::exception& error) {
    return fail(arguments, kFailed, error.what());
  }
}

}  // namespace capstan::cli
