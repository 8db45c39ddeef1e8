#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include <sys/wait.h>

#include "capstan/base/text.h"

namespace capstan::testing {

struct ShellResult {
  int code = -1;
  std::string output;  // of standard output and standard error
};

// Runs a command of the shell to its end.
inline ShellResult shell(const std::string& command) {
  ShellResult result;
  FILE* pipe = ::popen(("(" + command + ") 2>&1").c_str(), "r");
  if (!pipe) return result;
  char part[4096];
  for (std::size_t n; (n = std::fread(part, 1, sizeof part, pipe)) > 0;) result.output.append(part, n);
  const int status = ::pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

// The same for a list of words.
inline ShellResult shell(const std::vector<std::string>& words) {
  std::string command;
  for (const auto& word : words) command += shell_word(word) + " ";
  return shell(command);
}

}  // namespace capstan::testing
