#include <fmt/format.h>

#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/launch/host_check.h"

namespace capstan::cli {

int run_doctor(const Arguments& arguments) {
  bool json = false;
  CommandLine line("doctor", "Checks whether this machine can train: what is missing, and how to fix it.");
  line.flag("json", &json, "Print one JSON object");
  if (!line.parse(arguments)) return kSuccess;

  const auto check = launch::check_host();
  fmt::print("{}", json ? json_line(check.json()) + "\n" : check.text());
  return check.good() ? kSuccess : kFailed;
}

}  // namespace capstan::cli
