#include <algorithm>
#include <cctype>
#include <ctime>
#include <fstream>
#include <functional>
#include <sstream>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <signal.h>

#include "capstan/base/user_error.h"
#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/output.h"
#include "capstan/cli/signals.h"
#include "capstan/launch/child.h"
#include "capstan/launch/compute_environment.h"
#include "capstan/metrics/run_folder.h"
#include "capstan/report/comparison.h"
#include "capstan/report/page.h"

namespace capstan::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kLookInterval = std::chrono::milliseconds(100);
constexpr auto kEndPatience = std::chrono::seconds(30);

struct Flags {
  std::string strategies = "single,sync,async";
  std::optional<double> target_accuracy;
  std::filesystem::path train_dir;
  bool json = false;
};

// Flags of `train` that cannot be meant here, and what to do instead.
struct Refused {
  std::string_view flag, instead;
};
constexpr Refused kRefused[] = {
    {"strategy", "name several with --strategies"},
    {"num-aggregate", "name batch:K in --strategies"},
    {"staleness-damping", "name async:damped in --strategies"},
    {"max-steps", "an update is not as many samples in each strategy: use --epochs"},
    {"dry-run", "capstan train has it"},
    {"rank", "all processes are started here"},
    {"world-size", "all processes are started here"},
};

// "--batch_size=3" → "batch-size"; empty for what is no flag.
std::string flag_name(const std::string& word) {
  if (!word.starts_with("--")) return "";
  auto name = word.substr(2, word.find('=') == std::string::npos ? word.npos : word.find('=') - 2);
  std::ranges::replace(name, '_', '-');
  return name;
}

// What is meant for this command, and what `train` is to understand.
struct SplitArguments {
  Arguments own, train;
};
SplitArguments split(const CommandLine& line, const Arguments& arguments) {
  SplitArguments out;
  for (auto word = arguments.begin(); word != arguments.end(); ++word) {
    const auto name = flag_name(*word);
    for (const auto& [flag, instead] : kRefused)
      if (name == flag) throw UserError(fmt::format("compare does not take --{}: {}", flag, instead));
    const auto* option = name.empty() ? nullptr : line.find(name);
    if (!option && *word != "-h" && name != "help") {
      out.train.push_back(*word);
      continue;
    }
    out.own.push_back(*word);
    const bool takes_next = option && !is_switch(*option) && word->find('=') == word->npos;
    if (takes_next && word + 1 != arguments.end()) out.own.push_back(*++word);
  }
  return out;
}

// "sync,async"; where one of them has groups, and so commas of its own: "sync;default=sync,fc*=async".
std::vector<std::string> split_strategies(const std::string& text) {
  const bool has_groups = text.find_first_of("=;") != std::string::npos;
  const char between = has_groups ? ';' : ',';
  std::vector<std::string> out;
  std::istringstream words(text + between);
  for (std::string name; std::getline(words, name, between);) {
    std::istringstream parts(name);
    for (std::string part; has_groups && std::getline(parts, part, ',');) {
      if (name.find(',') != std::string::npos && part.find('=') == std::string::npos)
        throw UserError(
            fmt::format("--strategies {}: where one has groups, semicolons stand between them: "
                        "\"sync;default=sync,fc*=async\"",
                        text));
    }
    if (name.empty()) throw UserError(fmt::format("--strategies {}: a name is empty", text));
    if (std::ranges::find(out, name) != out.end())
      throw UserError(fmt::format("--strategies {}: {} is named twice", text, name));
    out.push_back(name);
  }
  return out;
}

// Globs may hold anything, and differ in nothing but that.
std::string folder_name(std::string strategy, std::size_t index) {
  const bool has_groups = strategy.find('=') != std::string::npos;
  const auto fits = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_';
  };
  std::ranges::replace_if(strategy, std::not_fn(fits), '-');
  return has_groups ? fmt::format("{}-{}", index + 1, strategy) : strategy;
}

// One `capstan train`, as a process.
class Training {
 public:
  Training(const Arguments& flags, const Arguments& more, const std::filesystem::path& error_log)
      : child_({arguments(flags, more), {}, error_log, true}) {}

  // Its result, or what it says went wrong. An interrupt ends it, and is passed on.
  Json wait(Interrupts& interrupts) {
    int passed_on = 0;
    std::optional<TimePoint> deadline;
    std::string output;
    while (!child_.poll()) {
      if (const auto line = child_.read_line(SteadyClock::now() + kLookInterval)) output = *line;
      (void)child_.wait(SteadyClock::now() + std::chrono::milliseconds(5));
      if (interrupts.count() > passed_on) {
        passed_on = interrupts.count();
        child_.signal(SIGTERM);  // children ignore the terminal's own interrupt
        if (!deadline) deadline = SteadyClock::now() + kEndPatience;
      }
      if (deadline && SteadyClock::now() > *deadline) child_.signal(SIGKILL);
    }
    while (const auto line = child_.read_line(SteadyClock::now() + kLookInterval)) output = *line;
    const auto exit = child_.poll();
    code = exit->code;
    auto result = Json::parse(output, nullptr, false);
    if (result.is_object()) return result;
    return {{"ok", false}, {"error", fmt::format("it ended without a result ({})", exit->text())}};
  }

  int code = 0;

 private:
  static Arguments arguments(const Arguments& flags, const Arguments& more) {
    Arguments out = {launch::program("capstan-torch"), "train", "--json"};
    out.insert(out.end(), flags.begin(), flags.end());
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }

  launch::Child child_;
};

// A key of a configuration as `train --dry-run` prints it.
std::string setting(const std::string& toml, const std::string& key) {
  const auto at = ("\n" + toml).find("\n" + key + " = '");
  if (at == std::string::npos) return "job";
  const auto begin = at + key.size() + 4;
  return toml.substr(begin, toml.find('\'', begin) - begin);
}

// Wrong flags end here, before anything has run. Returns the job's name.
std::string rehearse(const std::vector<std::string>& strategies, const Arguments& train,
                     Interrupts& interrupts) {
  std::string name;
  for (const auto& strategy : strategies) {
    Training rehearsal(train, {"--strategy=" + strategy, "--dry-run"}, "/dev/null");
    const auto result = rehearsal.wait(interrupts);
    if (interrupts.count() > 0) throw Failure(kInterrupted, "interrupted before anything has run");
    if (!result.value("ok", false)) {
      const auto error = result.value("error", std::string("capstan train does not start"));
      if (rehearsal.code == kWrongUsage) throw UserError(error);
      throw Failure(kFailed, error);
    }
    const auto toml = result.value("config", std::string());
    name = fmt::format("compare-{}-{}", setting(toml, "network"), setting(toml, "dataset"));
  }
  return name;
}

// A JSON number; what is not finite is null there.
double number(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : 0;
}

report::Run run_one(const std::string& strategy, const Arguments& train, const std::filesystem::path& folder,
                    Interrupts& interrupts) {
  report::Run run;
  run.strategy = strategy;
  run.run_dir = folder.string();
  Training training(train, {"--strategy=" + strategy, "--train-dir=" + run.run_dir}, {});
  const auto result = training.wait(interrupts);
  run.has_result = result.contains("test_accuracy");  // also where it was interrupted
  if (!run.has_result) run.problem = "failed: " + result.value("error", std::string("without a reason"));
  if (interrupts.count() > 0) run.problem = "interrupted";
  run.seconds = number(result, "seconds");
  run.samples_per_second = number(result, "samples_per_second");
  run.test_accuracy = number(result, "test_accuracy");
  run.test_loss = number(result, "test_loss");
  run.staleness_mean = number(result, "staleness_mean");
  run.staleness_max = static_cast<std::uint64_t>(number(result, "staleness_max"));
  run.steps = static_cast<std::uint64_t>(number(result, "steps"));
  run.epochs = number(result, "epochs");
  run.points = report::read_points(folder / "metrics.jsonl");
  run.settings = report::read_settings(folder / "config.toml");
  return run;
}

report::Settings read_versions(const std::filesystem::path& file) {
  std::ifstream in(file);
  const auto json = Json::parse(in, nullptr, false);
  report::Settings out;
  if (!json.is_object()) return out;
  for (const auto& [key, value] : json.items())
    out.emplace_back(key, value.is_string() ? value.get<std::string>() : value.dump());
  return out;
}

Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

Json json_of(const report::Comparison& comparison, const report::Run& run) {
  auto evaluations = Json::array();
  for (const auto& p : run.points)
    evaluations.push_back({{"seconds", p.seconds},
                           {"samples", p.samples},
                           {"test_accuracy", p.accuracy},
                           {"test_loss", p.loss}});
  Json out{{"strategy", run.strategy}, {"ok", run.problem.empty()}};
  if (!run.problem.empty()) out["error"] = run.problem;
  if (run.has_result) {
    out["seconds"] = run.seconds;
    out["samples_per_second"] = run.samples_per_second;
    out["speedup"] = or_null(report::speedup(comparison, run));
    out["test_accuracy"] = run.test_accuracy;
    out["test_loss"] = run.test_loss;
    out["seconds_to_target"] = or_null(report::seconds_to_target(comparison, run));
    out["staleness_mean"] = run.staleness_mean;
    out["staleness_max"] = run.staleness_max;
    out["steps"] = run.steps;
    out["epochs"] = run.epochs;
  }
  out["run_dir"] = run.run_dir;
  out["evaluations"] = std::move(evaluations);
  return out;
}

// The first thing that did not end well; empty where all did.
std::string first_problem(const report::Comparison& comparison) {
  for (const auto& run : comparison.runs)
    if (!run.problem.empty()) return fmt::format("{}: {}", run.strategy, run.problem);
  return "";
}

}  // namespace

int run_compare(const Arguments& arguments) {
  Flags flags;
  CommandLine line("compare",
                   "Trains the same job under several strategies, one after the other, and shows\n"
                   "them side by side: a table, and a page with plots that needs no network.\n\n"
                   "  capstan compare --strategies single,sync,async --workers 2\n"
                   "  capstan compare --strategies sync,batch:2 --workers 4 --target-accuracy 0.97\n\n"
                   "Every other flag is one of capstan train, for all runs. Each run passes over the\n"
                   "same samples as often, with the same seed. --batch-size is per worker: an update\n"
                   "of sync is made of one batch of each worker, one of single (a process with all\n"
                   "cores) or async of one batch. Speed-up compares samples/s with those of single.\n"
                   "Its clock, and allreduce's, stand still while they evaluate; the others evaluate\n"
                   "as they train.\n");
  line.add({.name = "strategies",
            .value = &flags.strategies,
            .help = "Any, as capstan train --strategy help lists them; with semicolons between where one has "
                    "groups"});
  line.add({.name = "target-accuracy",
            .value = &flags.target_accuracy,
            .limits = config::NumberRange{0, 1},
            .help = "Also tell when the test accuracy was first that high, 0 to 1"});
  line.add({.name = "train-dir",
            .value = &flags.train_dir,
            .help = "Folder of the runs (default: runs/<time>-compare-<network>-<dataset>)"});
  line.add({.name = "json",
            .value = &flags.json,
            .help = "Print the result as one JSON object on standard output"});
  const auto divided = split(line, arguments);
  if (!line.parse(divided.own)) return kSuccess;
  const auto strategies = split_strategies(flags.strategies);

  launch::prepare_compute_environment();
  Interrupts interrupts;
  const auto name = rehearse(strategies, divided.train, interrupts);
  metrics::RunFolder folder(flags.train_dir, name);
  report::Comparison comparison;
  comparison.target_accuracy = flags.target_accuracy;
  comparison.when = fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(std::time(nullptr)));
  for (std::size_t i = 0; i < strategies.size(); ++i) {
    if (interrupts.count() > 0) {
      report::Run missing;
      missing.strategy = strategies[i];
      missing.problem = "not run";
      comparison.runs.push_back(std::move(missing));
      continue;
    }
    say(fmt::format("{} of {}: {}", i + 1, strategies.size(), strategies[i]));
    const auto own_folder = folder_name(strategies[i], i);
    auto run = run_one(strategies[i], divided.train, folder.path() / own_folder, interrupts);
    if (!run.has_result) say(fmt::format("{} {}", run.strategy, run.problem));
    if (comparison.versions.empty())
      comparison.versions = read_versions(folder.path() / own_folder / "versions.json");
    comparison.runs.push_back(std::move(run));
    folder.append(json_line(json_of(comparison, comparison.runs.back())));
  }
  folder.write("compare.html", report::page(comparison));

  const bool interrupted = interrupts.count() > 0;
  const auto problem = first_problem(comparison);
  const auto page = (folder.path() / "compare.html").string();
  if (flags.json) {
    Json result{{"ok", problem.empty()}};
    if (!problem.empty()) result["error"] = problem;
    result["target_accuracy"] = or_null(comparison.target_accuracy);
    result["runs"] = Json::array();
    for (const auto& run : comparison.runs) result["runs"].push_back(json_of(comparison, run));
    result["run_dir"] = folder.path().string();
    result["page"] = page;
    fmt::print("{}\n", json_line(result));
  } else {
    fmt::print("{}{}\n", report::text(report::table(comparison)), page);
  }
  return interrupted ? kInterrupted : problem.empty() ? kSuccess : kFailed;
}

}  // namespace capstan::cli
