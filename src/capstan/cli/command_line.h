#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capstan/cli/command.h"
#include "capstan/config/given.h"
#include "capstan/job/program.h"

namespace capstan::cli {

// The flags of one command: its own, and fields of a job. Dashes and underscores in names are equivalent;
// flags override `--config file.toml`; of two equal flags the last counts. Not thread-safe; values and job
// must outlive it.
class CommandLine {
 public:
  // `command` is the text after the program's name in the usage line; empty if the program is one command.
  // `program` must outlive this object.
  CommandLine(std::string command, std::string description,
              const job::Program& program = job::capstan_program());

  // Adds a flag of the command's own; it hides a field of the job with the same name.
  config::Setting& flag(std::string_view name, config::Value value, std::string_view help,
                        config::Limits limits = {}, std::string_view hint = {});
  // Adds settings of another table as flags.
  void add(std::vector<config::Setting> settings);
  // An argument that is given without its name.
  config::Setting& positional(std::string_view name, config::Value value, std::string_view help);
  // All arguments that are given without a name, at least one, for a command that takes several. `words` must
  // outlive this object.
  void positionals(std::string_view name, Arguments* words, std::string_view help);
  // The heading of the flags that follow, in the help.
  void group(std::string_view heading) { group_ = heading; }
  // Adds the fields of a job that `command` has as flags. Configuration files may also set the other fields,
  // so that a command can read the file of a whole job. A program with a task of its own has no flags for
  // networks, and its own defaults.
  void add(config::JobConfig& job, config::Commands command);
  // Replaces the help text of a field.
  void describe(std::string_view name, std::string_view help);
  // A configuration file that all others and the flags override; an empty path means none.
  void read_first(std::filesystem::path file) { first_file_ = std::move(file); }

  // Sets the values. Prints the help and returns false for --help. Throws UserError: with the nearest known
  // name for an unknown flag or key, with the valid values for a wrong value, and with the line of the file.
  // With `unknown`, unknown arguments are not an error: they are added to it in their order. --config is one
  // of them.
  bool parse(const Arguments& arguments, Arguments* unknown = nullptr);

  // What parse() has read, in the order of layers: files, then the command line.
  struct GivenValue {
    std::string name, text, place;  // place: "run.toml:3"; empty on the command line
  };
  const std::vector<GivenValue>& given() const { return given_; }

  std::string help() const;

 private:
  using Typed = std::vector<std::pair<std::string, std::string>>;  // names and values on the command line

  std::vector<config::Field> flags(bool with_config = true) const;
  // The given values in layers; each layer overrides the ones before it.
  std::vector<std::vector<config::Given>> read_layers(const std::vector<config::Field>& all,
                                                      const Typed& typed) const;

  std::string help_command() const;
  void take_defaults(config::JobConfig& job) const;

  const std::string command_, description_;
  const job::Program& program_;
  std::string_view group_ = "Options";
  std::vector<config::Field> flags_, only_in_files_;
  std::optional<config::Field> words_field_;  // for the help
  Arguments* words_ = nullptr;
  config::JobConfig* job_ = nullptr;
  std::filesystem::path first_file_;
  std::vector<GivenValue> given_;
};

}  // namespace capstan::cli
