#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "capstan/base/failure.h"

namespace capstan::cli {

using Arguments = std::vector<std::string>;

// The value of a flag that is given as --name VALUE or --name=VALUE; of several the last, empty for none.
std::string value_of(const Arguments& arguments, const std::string& name);

// Prints a line on standard error. Write errors are ignored.
void say(const std::string& line);

// `run` gets the arguments after the command's name.
struct Command {
  const char* name;
  int (*run)(const Arguments& arguments);
};

// Runs a command and returns its exit code. Prints an exception as one line, and with --json also as a JSON
// object.
int run_command(const Command& command, const Arguments& arguments);

// The whole of a program that has some of the commands; `capstan` executes it.
int run_one_of(std::initializer_list<Command> commands, int argc, char** argv);

// Ends the process with kInterrupted, without waiting for its threads.
[[noreturn]] void end_at_once(bool json);

}  // namespace capstan::cli
