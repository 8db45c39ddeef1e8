#include "capstan/lab/lab.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "capstan/base/text.h"
#include "capstan/lab/experiment.h"
#include "capstan/lab/launcher.h"
#include "capstan/lab/machine.h"
#include "capstan/lab/run_result.h"
#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWithoutExperiment = "bench ps";
constexpr std::uint32_t kQuickRepeat = 2;

std::vector<GivenOption> quick_options() {
  return {{"epochs", "1", "--quick"}, {"max-steps", "4", "--quick"}};
}

// The name of a configuration that no experiment has.
std::string name_of(const Plan& plan) {
  const auto what = plan.hook.empty() ? plan.trainer : plan.trainer + " " + plan.hook;
  const auto trainers = counted(plan.trainers, "trainer");
  return plan.servers == 0 ? fmt::format("{}, {}", what, trainers)
                           : fmt::format("{}, {}, {}", what, trainers, counted(plan.servers, "server"));
}

std::vector<Case> cases_of(const LabRequest& request) {
  if (request.experiment.empty()) return {Case{}};
  std::set<std::string> overridden;
  for (const auto& option : request.given) overridden.insert(option.name);
  if (request.experiment != kAllExperiments) return find_experiment(request.experiment).cases(overridden);
  std::vector<Case> out;
  for (const auto& experiment : all_experiments())
    for (auto& each : experiment.cases(overridden)) out.push_back(std::move(each));
  return out;
}

std::string experiment_name(const std::string& given) {
  if (given.empty()) return kWithoutExperiment;
  return given.ends_with(".toml") ? fs::path(given).stem().string() : given;
}

// A folder for each configuration; all of it if there is one.
void separate_folders(std::vector<LabCase>& cases) {
  for (auto& each : cases) {
    auto& save = each.resolved.plan.save;
    if (save.empty()) continue;
    if (cases.size() > 1) {
      auto name = each.name;
      std::ranges::replace_if(
          name,
          [](unsigned char c) {
            return std::isalnum(c) == 0 && c != '_' && c != '-' && c != '=' && c != '.';
          },
          '_');
      save /= name;
    }
    std::error_code error;
    fs::create_directories(save, error);
    if (error) throw UserError(fmt::format("--save {}: {}", save.string(), error.message()));
  }
}

// Measures the cases of a plan.
class Lab {
 public:
  Lab(const LabPlan& plan, const LabStart& start, job::StopToken& stop, const LabEvents& events)
      : plan_(plan), start_(start), stop_(stop), events_(events) {}

  LabOutcome run() {
    out_.result = {.ok = true,
                   .when = now_text(),
                   .versions = these_versions(),
                   .machine = this_machine(),
                   .experiment = plan_.experiment,
                   .configurations = {}};
    for (index_ = 0; index_ < plan_.cases.size() && out_.code != kInterrupted; ++index_) measure();
    return std::move(out_);
  }

 private:
  void measure() {
    const auto& each = plan_.cases[index_];
    report::LabConfiguration configuration{each.name, each.resolved.options, each.axis, {}, {}};
    for (const auto& note : each.resolved.notes) events_.message(note);
    try {
      if (!each.resolved.unsupported.empty()) throw Failure(kFailed, each.resolved.unsupported);
      launch({.command = start_.command,
              .program = start_.program,
              .plan = each.resolved.plan,
              .repeat = plan_.repeat,
              .on_progress = [&](const LaunchProgress& p) { show(each.name, p); },
              .on_run = [&](const RunReports& reports) { configuration.runs.push_back(run_result(reports)); },
              .on_note = [&](const auto& line) { events_.message(fmt::format("{}: {}", each.name, line)); }},
             stop_);
    } catch (const Failure& failure) {
      out_.result.ok = false;
      if (failure.code() == kInterrupted) {
        out_.code = kInterrupted;
        if (configuration.runs.empty()) return;
      } else {
        configuration.error = failure.what();
        events_.message(fmt::format("{}: {}", each.name, failure.what()));
        out_.code = plan_.cases.size() == 1 ? failure.code() : kFailed;
      }
    }
    out_.result.configurations.push_back(std::move(configuration));
  }

  // "ddp_cpu_rpc 3/12  run 2/5  step 12/16".
  void show(const std::string& name, const LaunchProgress& p) const {
    auto line = name;
    if (plan_.cases.size() > 1) line += fmt::format(" {}/{}", index_ + 1, plan_.cases.size());
    line += p.run == 0 ? "  warm-up" : fmt::format("  run {}/{}", p.run, plan_.repeat);
    events_.progress(line + fmt::format("  step {}/{}", p.step, p.of));
  }

  const LabPlan& plan_;
  const LabStart& start_;
  job::StopToken& stop_;
  const LabEvents& events_;
  std::size_t index_ = 0;
  LabOutcome out_;
};

}  // namespace

LabPlan plan_lab(const LabRequest& request, const Registry& registry) {
  LabPlan out{experiment_name(request.experiment), {}, {}, request.repeat.value_or(LabPlan().repeat)};
  if (request.quick && !request.repeat) out.repeat = kQuickRepeat;
  for (auto& each : cases_of(request)) {
    Layers layers = {std::move(each.given)};
    if (request.quick) layers.push_back(quick_options());
    layers.push_back(request.given);
    LabCase next{each.name, resolve(layers, registry), std::move(each.axis)};
    if (next.name.empty()) next.name = name_of(next.resolved.plan);
    if (request.experiment == kAllExperiments && !next.resolved.unsupported.empty())
      out.skipped.push_back(fmt::format("{}: skipped: {}", next.name, next.resolved.unsupported));
    else
      out.cases.push_back(std::move(next));
  }
  if (out.cases.size() == 1 && !out.cases[0].resolved.unsupported.empty())
    throw UserError(fmt::format("{}: {}", out.cases[0].name, out.cases[0].resolved.unsupported));
  separate_folders(out.cases);
  return out;
}

LabOutcome run_lab(const LabPlan& plan, const LabStart& start, job::StopToken& stop,
                   const LabEvents& events) {
  return Lab(plan, start, stop, events).run();
}

}  // namespace capstan::lab
