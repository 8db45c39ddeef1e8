#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "capstan/cli/command.h"
#include "capstan/config/job_config.h"

namespace capstan::cli {

// Parses a command's arguments: dashes and underscores in flag names are the same, `--config file.toml` is
// read first and flags override it, the last of two equal flags wins. Unknown flags and keys are UserErrors
// that name the nearest right spelling, wrong values are ones that say what would be right; both name the
// line where they come from a file. Returns false where --help was asked for, and printed.
bool parse_flags(CLI::App& app, const Arguments& arguments);

// What a flag's value may be; for CLI::Option::check. Without one, a number must be finite and a whole number
// at least 0.
CLI::Validator number_in(double low, double high);
CLI::Validator whole_number_in(std::uint64_t low, std::uint64_t high);
CLI::Validator one_of(std::vector<std::string> words);

// The most that a configuration file can hold.
inline constexpr std::uint64_t kMostWhole = INT64_MAX;

// Groups of flags that several commands share.
void add_model_flags(CLI::App& app, config::JobConfig& config);     // network, dataset, batch size …
void add_data_flags(CLI::App& app, config::JobConfig& config);      // the dataset's part of them
void add_strategy_flags(CLI::App& app, config::JobConfig& config);  // strategy, workers, servers, max steps
void add_optimizer_flags(CLI::App& app, config::OptimizerConfig& config);
void add_transport_flags(CLI::App& app, config::JobConfig& config);   // transport, token file
void add_checkpoint_flags(CLI::App& app, config::JobConfig& config);  // how often, how many, where from
void add_listen_flags(CLI::App& app, config::JobConfig& config);      // listen, join timeout

}  // namespace capstan::cli
