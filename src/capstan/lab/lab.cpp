#include "capstan/lab/lab.h"

#include <fstream>
#include <set>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "capstan/base/cores.h"
#include "capstan/base/failure.h"
#include "capstan/job/versions.h"
#include "capstan/lab/launcher.h"
#include "capstan/lab/resolve.h"
#include "capstan/lab/run_result.h"
#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

constexpr std::uint32_t kRepeat = 5, kQuickRepeat = 2;
constexpr const char* kQuickSteps = "4";

struct Planned {
  std::string name;
  report::LabOptions axis;
  Resolved resolved;
};

// One configuration of each combination. All are checked before the first one runs.
std::vector<Planned> plan(const LabJob& job, const Registry& registry) {
  std::set<std::string> overridden;
  for (const auto& option : job.given) overridden.insert(option.name);
  std::vector<Experiment> experiments;
  if (job.experiment == "all") {
    experiments = all_experiments();
  } else {
    experiments.push_back(job.experiment.empty() ? Experiment{"bench ps", "", {}}
                                                 : find_experiment(job.experiment));
  }
  std::vector<Planned> planned;
  for (const auto& experiment : experiments) {
    for (const auto& one : experiment.cases(overridden)) {
      Layers layers = {one.given, job.given};
      if (job.quick) layers.insert(layers.begin() + 1, {{"epochs", "1", ""}, {"max-steps", kQuickSteps, ""}});
      planned.push_back({one.name, one.axis, resolve(layers, registry)});
    }
  }
  return planned;
}

// The text behind `name` in a file of lines "name : value".
std::string value_in(const char* file, const std::string& name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name))
      if (const auto at = line.find(':'); at != std::string::npos)
        return line.substr(std::min(line.size(), line.find_first_not_of(" \t", at + 1)));
  return "";
}

report::LabMachine machine() {
  const auto kilobytes = value_in("/proc/meminfo", "MemTotal");
  return {value_in("/proc/cpuinfo", "model name"), usable_cores(),
          kilobytes.empty() ? 0 : std::stoull(kilobytes) * 1024};
}

report::LabOptions versions() {
  report::LabOptions out;
  const auto known = nlohmann::ordered_json::parse(job::versions());
  for (const auto& [name, value] : known.items())
    out.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
  return out;
}

std::string now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

// Measures one configuration.
report::LabConfiguration measure(const LabJob& job, const Planned& planned, const std::string& place,
                                 job::StopToken& stop, const LabEvents& events, int& exit_code) {
  report::LabConfiguration out{planned.name, planned.resolved.options, planned.axis, {}, {}};
  for (const auto& note : planned.resolved.notes) events.message(note);
  const bool is_alone = job.experiment != "all";
  if (!planned.resolved.unsupported.empty()) {
    out.error = planned.resolved.unsupported;
    events.message(fmt::format("{}: {}", planned.name, *out.error));
    if (is_alone) exit_code = kWrongUsage;
    return out;
  }
  LaunchOptions options;
  options.command = job.command;
  options.program = job.program;
  options.plan = planned.resolved.plan;
  options.repeat = job.repeat > 0 ? job.repeat : job.quick ? kQuickRepeat : kRepeat;
  options.on_progress = [&](const LaunchProgress& progress) {
    const auto run =
        progress.run == 0 ? std::string("warm-up") : fmt::format("run {}/{}", progress.run, options.repeat);
    events.progress(
        fmt::format("{}{}: {}, step {}/{}", place, planned.name, run, progress.step, progress.of));
  };
  options.on_run = [&](const RunReports& reports) { out.runs.push_back(run_result(reports)); };
  options.on_note = [&](const std::string& note) {
    events.message(fmt::format("{}: {}", planned.name, note));
  };
  try {
    launch(options, stop);
  } catch (const Failure& failure) {
    if (failure.code() == kInterrupted) throw;
    out.error = failure.what();
    if (exit_code == kSuccess) exit_code = failure.code();
    events.message(fmt::format("{}: {}", planned.name, *out.error));
  }
  return out;
}

}  // namespace

report::LabResult run_lab(const LabJob& job, const Registry& registry, job::StopToken& stop,
                          const LabEvents& events, int& exit_code) {
  const auto planned = plan(job, registry);
  report::LabResult result;
  result.when = now();
  result.versions = versions();
  result.machine = machine();
  result.experiment = job.experiment.empty() ? "bench ps" : job.experiment;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const auto place = planned.size() > 1 ? fmt::format("{}/{} ", i + 1, planned.size()) : "";
    result.configurations.push_back(measure(job, planned[i], place, stop, events, exit_code));
  }
  result.ok = exit_code == kSuccess;
  return result;
}

}  // namespace capstan::lab
