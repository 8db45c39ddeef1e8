#include "capstan/lab/run_result.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/format.h>

namespace capstan::lab {
namespace {

using report::LabRun;

// By "TYPE,NAME", so sorted.
using AllSeries = std::map<std::string, Series>;

AllSeries concatenated(std::span<const ProcessReport> reports) {
  AllSeries out;
  for (const auto& report : reports) {
    for (const auto& s : report.series) {
      auto& all = out.try_emplace(s.type + "," + s.name, Series{s.type, s.name, s.unit, {}}).first->second;
      all.values.insert(all.values.end(), s.values.begin(), s.values.end());
    }
  }
  return out;
}

void add_metrics(LabRun& run, const std::string& rank, std::span<const ProcessReport> reports) {
  for (const auto& [name, series] : concatenated(reports))
    if (const auto statistics = metrics::statistics(series.values))
      run.metrics.push_back({rank, name, series.unit, *statistics});
}

void add_ranks(LabRun& run, const std::string& role, std::span<const ProcessReport> reports,
               std::size_t first_rank) {
  for (std::size_t i = 0; i < reports.size(); ++i)
    add_metrics(run, fmt::format("{} {}", role, first_rank + i), reports.subspan(i, 1));
  add_metrics(run, fmt::format("all {}s", role), reports);
}

double sum_of(const AllSeries& all, const char* name) {
  const auto found = all.find(name);
  if (found == all.end()) return 0;
  return std::accumulate(found->second.values.begin(), found->second.values.end(), 0.0);
}

// Of a mean step. Not every step has every part: with local steps, few communicate.
report::LabStep step_of(const AllSeries& all, std::uint64_t steps) {
  if (steps == 0) return {};
  const auto per_step = [&](double sum) { return sum / static_cast<double>(steps); };
  // The waits for gradients, behind the backward pass and in it.
  double waits = sum_of(all, "communication_metric,gradient_wait");
  for (const auto& [name, series] : all)
    if (series.type == "hook_c10d_metric") waits += sum_of(all, name.c_str());
  report::LabStep step;
  step.data = per_step(sum_of(all, "data_metric,data_wait"));
  step.forward = per_step(sum_of(all, "forward_metric,forward_pass"));
  step.communication = per_step(waits);
  // Its span includes the waits.
  step.backward = std::max(0.0, per_step(sum_of(all, "backward_metric,backward") - waits));
  step.optimizer = per_step(sum_of(all, "optimizer_metric,optimizer_step"));
  return step;
}

void add_trainers(LabRun& run, std::span<const ProcessReport> trainers) {
  const auto begin = std::ranges::min(trainers, {}, &ProcessReport::begin_ns).begin_ns;
  const auto end = std::ranges::max(trainers, {}, &ProcessReport::end_ns).end_ns;
  run.seconds = static_cast<double>(end - begin) / 1e9;
  double loss = 0, hidden = 0;
  std::size_t with_hidden = 0;
  for (const auto& t : trainers) {
    run.steps += t.steps;
    run.samples += t.samples;
    run.bytes.pushed += t.bytes_pushed;
    run.bytes.pulled += t.bytes_pulled;
    loss += t.loss / static_cast<double>(trainers.size());
    hidden += t.hidden.value_or(0);
    with_hidden += t.hidden.has_value();
  }
  if (std::isfinite(loss)) run.loss = loss;
  if (with_hidden > 0) run.hidden_communication = hidden / static_cast<double>(with_hidden);
  if (run.seconds > 0) run.samples_per_second = static_cast<double>(run.samples) / run.seconds;
}

}  // namespace

LabRun run_result(const RunReports& reports) {
  LabRun run;
  add_trainers(run, reports.trainers);
  run.step = step_of(concatenated(reports.trainers), run.steps);
  add_ranks(run, "trainer", reports.trainers, 0);
  if (!reports.servers.empty()) add_ranks(run, "server", reports.servers, reports.trainers.size());
  for (const auto& [name, series] : concatenated(reports.servers))
    if (series.type == "parameter_server_straggler_metric")
      run.straggler_ms.insert(run.straggler_ms.end(), series.values.begin(), series.values.end());
  return run;
}

}  // namespace capstan::lab
