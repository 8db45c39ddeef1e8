#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "capstan/cli/command.h"
#include "capstan/config/given.h"

namespace capstan::cli {

// The flags of one command: those of its own, and the fields of a job that it has. Dashes and underscores in
// names are the same, `--config file.toml` is read first and flags override it, the last of two equal flags
// wins. Not thread-safe; what it refers to must outlive it.
class CommandLine {
 public:
  // `command` is what follows `capstan`, as the help shows it.
  CommandLine(std::string command, std::string description);

  // A flag of the command's own; it hides a field of the job that has the same name.
  void add(config::Setting setting);
  // The fields of a job that `command` has. Configuration files may name the others, too: so a command reads
  // the file of a whole job.
  void add(config::JobConfig& job, config::Commands command);
  // Replaces the help of a field.
  void describe(std::string_view name, std::string_view help);
  // Where the flag `name` is given, `file` says which configuration file comes with it; it is read first of
  // all. An empty path means none.
  void read_file_of(std::string_view name, std::function<std::filesystem::path(const std::string&)> file);

  // Sets the values. Returns false where --help was asked for, and printed. Throws UserError: unknown flags
  // and keys name the nearest right spelling, wrong values say what would be right, and both name the line
  // where they come from a file.
  bool parse(const Arguments& arguments);

  std::string help() const;
  // The flag of this name; null for none.
  const config::Setting* find(std::string_view name) const;

 private:
  using Typed = std::vector<std::pair<std::string, std::string>>;  // names and values on the command line

  std::vector<config::Field> flags() const;  // with --config
  // What is given, from what is overridden to what overrides.
  std::vector<std::vector<config::Given>> read_layers(const std::vector<config::Field>& all,
                                                      const Typed& typed) const;

  const std::string command_, description_;
  std::vector<config::Field> flags_, only_in_files_;
  config::JobConfig* job_ = nullptr;
  std::vector<std::pair<std::string_view, std::function<std::filesystem::path(const std::string&)>>> files_;
};

}  // namespace capstan::cli
