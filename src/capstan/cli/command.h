#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
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
  std::function<int(const Arguments& arguments)> run;
};

// Runs a command and returns its exit code. Prints an exception as one line that begins with the program's
// name, and with --json also as a JSON object.
int run_command(const Command& command, const Arguments& arguments, const std::string& program = "capstan");

// The whole of a program that has some of the commands; `capstan` executes it.
int run_one_of(std::initializer_list<Command> commands, int argc, char** argv);

// Prints that there is no such command, with the nearest of `names`. Returns the exit code.
int unknown_command(const std::string& word, std::span<const std::string_view> names,
                    const std::string& program);

// Opens the standard streams that are closed: a file must not take the number of one, because messages would
// be written into it. Call it first.
void open_standard_files();

// Ends the process with kInterrupted, without waiting for its threads.
[[noreturn]] void end_at_once(bool json, const std::string& program);

}  // namespace capstan::cli
