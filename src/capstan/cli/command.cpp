#include "capstan/cli/command.h"

#include <algorithm>
#include <cstdio>
#include <exception>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "capstan/base/user_error.h"

namespace capstan::cli {
namespace {

int fail(const Arguments& arguments, int code, const std::string& message) {
  fmt::print(stderr, "capstan: {}\n", message);
  if (std::ranges::find(arguments, "--json") != arguments.end()) {
    fmt::print("{}\n", nlohmann::json{{"ok", false}, {"error", message}}.dump());
  }
  return code;
}

}  // namespace

int run_command(const Command& command, const Arguments& arguments) {
  try {
    return command.run(arguments);
  } catch (const UserError& error) {
    return fail(arguments, kWrongUsage, error.what());
  } catch (const Failure& error) {
    return fail(arguments, error.code(), error.what());
  } catch (const std::exception& error) {
    return fail(arguments, kFailed, error.what());
  }
}

}  // namespace capstan::cli
