#include "capstan/job/result.h"

#include <algorithm>

#include <fmt/format.h>

#include "capstan/base/json.h"
#include "capstan/base/text.h"

namespace capstan::job {
namespace {

constexpr std::size_t kMostListed = 12;  // workers in a summary

double megabytes(std::uint64_t bytes) {
  return static_cast<double>(bytes) / 1e6;
}

Json row_json(const wire::WorkerRow& row) {
  return {{"pushes", row.pushes},
          {"samples", row.samples},
          {"compute_seconds", row.compute_seconds},
          {"wait_seconds", row.wait_seconds},
          {"staleness_mean", row.staleness_mean},
          {"staleness_max", row.staleness_max}};
}

std::string staleness_text(const TrainResult& r) {
  auto out =
      fmt::format("staleness {:.2f} on average, {} at most", r.pushes.staleness_mean, r.pushes.staleness_max);
  for (std::size_t i = 0; i < r.rows.size() && r.rows.size() <= kMostListed; ++i)
    out += fmt::format("{}worker {}: {:.2f}, {}", i % 3 == 0 ? "\n  " : "   ", i, r.rows[i].staleness_mean,
                       r.rows[i].staleness_max);
  return out + "\n";
}

// The part of the summary for jobs with several workers.
std::string workers_text(const TrainResult& r) {
  const auto& c = r.config;
  const bool servers = c.has_servers();
  const double busy = r.times.compute + r.times.communication + r.times.data;
  auto out = fmt::format(
      "{}, {}{}{}: workers computed {:.0f} % of the time\n", c.strategy, counted(c.workers, "worker"),
      servers ? ", " + counted(c.servers, "server") : " without a server",
      r.transport == "auto" ? "" : " over " + r.transport, busy > 0 ? 100 * r.times.compute / busy : 0);
  out += fmt::format("mean wait per worker: {:.1f} s for other workers{}, {:.1f} s for data\n",
                     r.times.communication, servers ? " and servers" : "", r.times.data);
  out += servers ? fmt::format("{:.1f} MB pushed, {:.1f} MB pulled (shared memory is counted as if sent)\n",
                               megabytes(r.bytes_pushed), megabytes(r.bytes_pulled))
                 : fmt::format("{:.1f} MB sent from worker to worker\n", megabytes(r.bytes_pushed));
  if (r.pushes.staleness_max > 0) out += staleness_text(r);
  if (r.pushes.dropped > 0) out += fmt::format("{} pushes dropped\n", r.pushes.dropped);
  if (r.lost_workers > 0) out += fmt::format("{} of {} workers were lost\n", r.lost_workers, c.workers);
  return out;
}

}  // namespace

void TrainResult::take(const wire::StatusReport& s, std::uint64_t training_samples) {
  reached = {s.version.value, static_cast<double>(s.samples) / static_cast<double>(training_samples),
             s.seconds, s.seconds > 0 ? static_cast<double>(s.samples) / s.seconds : 0};
  bytes_pushed = s.bytes_pushed;
  bytes_pulled = s.bytes_pulled;
  pushes = {s.dropped_pushes, s.staleness_mean, s.staleness_max};
  rows = s.workers;
  times = {};
  const auto share = static_cast<double>(s.workers.size());
  for (const auto& w : s.workers) {
    times.compute += w.compute_seconds / share;
    times.communication += w.wait_seconds / share;
    times.data += w.data_seconds / share;
  }
  lost_workers = static_cast<std::uint64_t>(
      std::ranges::count(s.workers, wire::WorkerState::kLost, &wire::WorkerRow::state));
}

void TrainResult::resumed(const checkpoint::Manifest& from, std::uint64_t training_samples) {
  resumed_from = from.version.value;
  reached.epochs += static_cast<double>(from.trained_samples) / static_cast<double>(training_samples);
}

std::string TrainResult::json() const {
  Json json{{"ok", !interrupted && problem.empty()},
            {"network", config.network_name()},
            {"dataset", config.dataset},
            {"strategy", config.strategy},
            {"workers", config.is_single() ? 1 : config.workers},
            {"servers", config.has_servers() ? config.servers : 0},
            {"transport", transport},
            {"optimizer", config.optimizer.spec().kinds()},
            {"steps", reached.steps},
            {"epochs", reached.epochs},
            {"seconds", reached.seconds},
            {"samples_per_second", reached.samples_per_second},
            {"train_loss", train_loss ? Json(*train_loss) : Json()}};
  test.add_to(json);
  json["metrics"] = metrics::to_json(test.metrics);
  json["bytes_pushed"] = bytes_pushed;
  json["bytes_pulled"] = bytes_pulled;
  json["compute_seconds"] = times.compute;
  json["communication_seconds"] = times.communication;
  json["data_seconds"] = times.data;
  json["lost_workers"] = lost_workers;
  json["dropped_pushes"] = pushes.dropped;
  json["staleness_mean"] = pushes.staleness_mean;
  json["staleness_max"] = pushes.staleness_max;
  json["resumed_from"] = resumed_from;
  json["checkpoint"] = checkpoint;
  json["run_dir"] = run_dir;
  auto& list = json["per_worker"] = Json::array();
  for (const auto& row : rows) list.push_back(row_json(row));
  if (interrupted || !problem.empty()) json["error"] = interrupted ? "interrupted" : problem;
  return json_line(json);
}

std::string TrainResult::summary() const {
  auto out = fmt::format("{} on {}: {}{}\n", config.network_name(), config.dataset,
                         test.samples == 0 ? "not evaluated" : test.text(),
                         train_loss ? fmt::format(", train loss {:.4f}", *train_loss) : "");
  out += fmt::format("{} updates ({:.1f} epochs)", reached.steps, reached.epochs);
  const auto weights = run_dir + (weights_saved ? "/weights.safetensors\n" : "\n");
  if (!train_loss && !interrupted && problem.empty()) return out + ": nothing was left to train\n" + weights;
  if (resumed_from > 0) out += fmt::format(", {} since the resume,", reached.steps - resumed_from);
  out += fmt::format(" in {:.1f} s: {:.0f} samples/s\n", reached.seconds, reached.samples_per_second);
  if (!config.is_single()) out += workers_text(*this);
  return out + weights;
}

}  // namespace capstan::job
