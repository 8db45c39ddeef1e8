#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "capstan/lab/options.h"
#include "capstan/report/lab.h"

// Experiments: TOML files with options of `capstan bench ps`.
//
//   description = "rpc_hook with both servers"
//   ddp_hook = "rpc_hook"
//   trainers = [1, 2, 4]
//   server = ["AverageParameterServer", "AverageBatchParameterServer"]
//
// A key is the name of an option, with dashes or underscores. Options with several values make one
// configuration for each combination.
namespace capstan::lab {

// One configuration of an experiment.
struct Case {
  std::string name;  // "scaling [trainers=2, server=AverageParameterServer]"
  std::vector<GivenOption> given;
  report::LabOptions axis;  // the options with several values
};

struct Experiment {
  std::string name, description;

  // An option, and its value or values.
  struct Choice {
    std::string option;  // its setting's name
    std::vector<std::string> values;
    bool varies = false;  // is an array in the file
    std::string place;    // "scaling.toml:3"
  };
  std::vector<Choice> choices;

  // All combinations, the last option varies fastest. Options in `overridden` do not count: the command line
  // has another value for them.
  std::vector<Case> cases(const std::set<std::string>& overridden = {}) const;
};

// Paths in the file are relative to its folder. Throws UserError with file and line: for an unknown key with
// the nearest known one, for a key that appears twice, under any of its names, and for a value of a wrong
// type.
Experiment read_experiment(const std::filesystem::path& file);

// The experiments in the folders experiments/ (shipped_files.h), sorted by name; one in an earlier folder
// hides one of the same name in a later one. Throws UserError for a file that is wrong.
std::vector<Experiment> all_experiments();
// Their names and descriptions, one line each.
std::string experiments_text();

// The experiment of this name, or in the file of this path, which ends in .toml. Throws UserError; for an
// unknown name, with the nearest known one.
Experiment find_experiment(const std::string& name);

}  // namespace capstan::lab
