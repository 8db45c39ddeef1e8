#include "capstan/job/comparison.h"

#include <algorithm>
#include <cctype>
#include <ctime>
#include <fstream>
#include <limits>
#include <sstream>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <signal.h>

#include "capstan/base/failure.h"
#include "capstan/base/text.h"
#include "capstan/launch/child.h"
#include "capstan/metrics/evaluation.h"
#include "capstan/metrics/run_folder.h"
#include "capstan/report/page.h"
#include "capstan/user_error.h"

namespace capstan::job {
namespace {

using Json = nlohmann::ordered_json;

constexpr auto kPollInterval = std::chrono::milliseconds(100);
constexpr auto kExitTimeout = std::chrono::seconds(30);

// Names of groups are globs: replaced characters may make two strategies equal, so the index is added.
std::string folder_name(std::string strategy, std::size_t index) {
  const bool has_groups = strategy.find('=') != std::string::npos;
  const auto fits = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '.' || c == '_';
  };
  std::ranges::replace_if(strategy, std::not_fn(fits), '-');
  return has_groups ? fmt::format("{}-{}", index + 1, strategy) : strategy;
}

// The run's result or error.
Json result_of(const TrainingOutcome& outcome) {
  auto result = Json::parse(outcome.output, nullptr, false);
  if (result.is_object()) return result;
  return {{"ok", false}, {"error", fmt::format("ended without a result ({})", outcome.end)}};
}

std::vector<std::string> with(std::vector<std::string> flags, std::vector<std::string> more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

// A key of a configuration as `train --dry-run` prints it.
std::string setting(const std::string& toml, const std::string& key) {
  const auto at = ("\n" + toml).find("\n" + key + " = '");
  if (at == std::string::npos) return "job";
  const auto begin = at + key.size() + 4;
  return toml.substr(begin, toml.find('\'', begin) - begin);
}

// The task's metrics as results and dry runs describe them (metrics::to_json).
std::vector<Metric> metrics_of(const Json& result) {
  std::vector<Metric> metrics;
  for (const auto& m : result.value("metrics", Json::array()))
    metrics.push_back(
        {m.value("name", std::string()),
         m.value("better", std::string()) == "higher" ? Metric::Better::kHigher : Metric::Better::kLower,
         Metric::Of::kMean, m.value("percent", false)});
  return metrics;
}

void check_target(const ComparisonOptions& options, const std::vector<Metric>& metrics) {
  if (!options.target || metrics.empty() || !metrics.front().percent) return;
  if (*options.target >= 0 && *options.target <= 1) return;
  throw UserError(fmt::format("--target {}: test {} is from 0 to 1", *options.target, metrics.front().name));
}

// What the trainings have in common.
struct CommonJob {
  std::string name;
  std::vector<Metric> metrics;
};

// Detects wrong flags before the first run.
CommonJob check_flags(const ComparisonOptions& options, const RunTraining& run, StopToken& stop) {
  CommonJob job;
  for (const auto& strategy : options.strategies) {
    const auto outcome = run(with(options.train_flags, {"--strategy=" + strategy, "--dry-run"}), true);
    const auto result = result_of(outcome);
    if (stop.requests() > 0) throw Failure(kInterrupted, "interrupted before the first run");
    if (!result.value("ok", false)) {
      const auto error = result.value("error", std::string("capstan train does not start"));
      if (outcome.code == kWrongUsage) throw UserError(error);
      throw Failure(kFailed, error);
    }
    const auto toml = result.value("config", std::string());
    job.name = fmt::format("compare-{}-{}", setting(toml, "network"), setting(toml, "dataset"));
    job.metrics = metrics_of(result);
  }
  check_target(options, job.metrics);
  return job;
}

// A JSON number; null stands for a number that is not finite. 0 if there is none.
double number(const Json& json, const std::string& key) {
  const auto found = json.find(key);
  if (found == json.end()) return 0;
  return found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

report::Run run_one(const std::string& strategy, const std::filesystem::path& folder,
                    const ComparisonOptions& options, const std::vector<Metric>& metrics,
                    const RunTraining& train, StopToken& stop) {
  report::Run run;
  run.strategy = strategy;
  run.run_dir = folder.string();
  const auto result = result_of(
      train(with(options.train_flags, {"--strategy=" + strategy, "--train-dir=" + run.run_dir}), false));
  run.has_result = result.contains("steps");  // an interrupted run has one too
  if (!result.value("ok", false))
    run.problem = "failed: " + result.value("error", std::string("no error message"));
  if (stop.requests() > 0) run.problem = "interrupted";
  run.seconds = number(result, "seconds");
  run.samples_per_second = number(result, "samples_per_second");
  for (const auto& metric : metrics) run.values.push_back(number(result, metrics::key_of(metric)));
  run.staleness_mean = number(result, "staleness_mean");
  run.staleness_max = static_cast<std::uint64_t>(number(result, "staleness_max"));
  run.steps = static_cast<std::uint64_t>(number(result, "steps"));
  run.epochs = number(result, "epochs");
  run.points = report::read_points(folder / "metrics.jsonl", metrics);
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
  const auto add_values = [&](Json& to, const std::vector<double>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) to[metrics::key_of(comparison.metrics[i])] = values[i];
  };
  for (const auto& p : run.points) {
    Json point{{"seconds", p.seconds}, {"samples", p.samples}};
    add_values(point, p.values);
    evaluations.push_back(std::move(point));
  }
  Json out{{"strategy", run.strategy}, {"ok", run.problem.empty()}};
  if (!run.problem.empty()) out["error"] = run.problem;
  if (run.has_result) {
    out["seconds"] = run.seconds;
    out["samples_per_second"] = run.samples_per_second;
    out["speedup"] = or_null(report::speedup(comparison, run));
    add_values(out, run.values);
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

}  // namespace

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
            fmt::format("--strategies {}: use semicolons between strategies if one has groups: "
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

RunTraining training_process(StopToken& stop) {
  return [&stop](const std::vector<std::string>& flags, bool quiet) {
    const std::vector<std::string> program = {capstan_program().trainer, "train", "--json"};
    launch::Child child({with(program, flags), {}, quiet ? "/dev/null" : "", true});
    int passed_on = 0;
    std::optional<TimePoint> deadline;
    TrainingOutcome outcome;
    while (!child.poll()) {
      if (const auto line = child.read_line(SteadyClock::now() + kPollInterval)) outcome.output = *line;
      (void)child.wait(SteadyClock::now() + std::chrono::milliseconds(5));
      if (stop.requests() > passed_on) {
        passed_on = stop.requests();
        child.signal(launch::kStopSignal);
        if (!deadline) deadline = SteadyClock::now() + kExitTimeout;
      }
      if (deadline && SteadyClock::now() > *deadline) child.signal(SIGKILL);
    }
    while (const auto line = child.read_line(SteadyClock::now() + kPollInterval)) outcome.output = *line;
    outcome.code = child.poll()->code;
    outcome.end = child.poll()->text();
    return outcome;
  };
}

ComparisonResult compare(const ComparisonOptions& options, const RunTraining& run, Environment environment) {
  auto& stop = environment.stop;
  const auto job = check_flags(options, run, stop);
  metrics::RunFolder folder(options.folder, job.name);
  ComparisonResult result;
  auto& comparison = result.comparison;
  comparison.metrics = job.metrics;
  comparison.target = options.target;
  comparison.when = fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(std::time(nullptr)));
  for (std::size_t i = 0; i < options.strategies.size(); ++i) {
    const auto& strategy = options.strategies[i];
    if (stop.requests() > 0) {
      auto& missing = comparison.runs.emplace_back();
      missing.strategy = strategy;
      missing.problem = "not run";
      continue;
    }
    environment.events.message(fmt::format("{} of {}: {}", i + 1, options.strategies.size(), strategy));
    const auto own_folder = folder.path() / folder_name(strategy, i);
    comparison.runs.push_back(run_one(strategy, own_folder, options, job.metrics, run, stop));
    const auto& last = comparison.runs.back();
    if (!last.problem.empty()) environment.events.message(fmt::format("{} {}", strategy, last.problem));
    if (comparison.versions.empty()) comparison.versions = read_versions(own_folder / "versions.json");
    folder.append(json_line(json_of(comparison, last)));
  }
  folder.write("compare.html", report::page(comparison));
  result.folder = folder.path();
  result.page = folder.path() / "compare.html";
  result.interrupted = stop.requests() > 0;
  return result;
}

std::string ComparisonResult::problem() const {
  for (const auto& run : comparison.runs)
    if (!run.problem.empty()) return fmt::format("{}: {}", run.strategy, run.problem);
  return "";
}

std::string ComparisonResult::json() const {
  Json json{{"ok", problem().empty()}};
  if (!problem().empty()) json["error"] = problem();
  json["metric"] = report::metric_of(comparison).name;
  json["target"] = or_null(comparison.target);
  json["runs"] = Json::array();
  for (const auto& run : comparison.runs) json["runs"].push_back(json_of(comparison, run));
  json["run_dir"] = folder.string();
  json["page"] = page.string();
  return json_line(json);
}

std::string ComparisonResult::text() const {
  return fmt::format("{}{}\n", report::text(report::table(comparison)), page.string());
}

}  // namespace capstan::job
