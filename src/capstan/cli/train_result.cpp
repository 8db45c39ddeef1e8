#include "capstan/cli/train_result.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "capstan/cli/output.h"

namespace capstan::cli {
namespace {

constexpr std::size_t kMostListed = 12;  // workers, in a summary for people

}  // namespace

void TrainResult::take(const wire::StatusReport& s, std::uint64_t training_samples) {
  steps = s.version.value;
  epochs = static_cast<double>(s.samples) / static_cast<double>(training_samples);
  seconds = s.seconds;
  samples_per_second = s.seconds > 0 ? static_cast<double>(s.samples) / s.seconds : 0;
  bytes_pushed = s.bytes_pushed;
  bytes_pulled = s.bytes_pulled;
  dropped_pushes = s.dropped_pushes;
  staleness_mean = s.staleness_mean;
  staleness_max = s.staleness_max;
  rows = s.workers;
  compute_seconds = communication_seconds = data_seconds = 0;
  for (const auto& w : s.workers) {
    compute_seconds += w.compute_seconds / static_cast<double>(s.workers.size());
    communication_seconds += w.wait_seconds / static_cast<double>(s.workers.size());
    data_seconds += w.data_seconds / static_cast<double>(s.workers.size());
  }
  lost_workers = static_cast<std::uint64_t>(
      std::ranges::count(s.workers, wire::WorkerState::kLost, &wire::WorkerRow::state));
}

void TrainResult::resumed(const checkpoint::Manifest& from, std::uint64_t training_samples) {
  resumed_from = from.version.value;
  epochs += static_cast<double>(from.trained_samples) / static_cast<double>(training_samples);
}

std::string TrainResult::json() const {
  const bool single = config.is_single();
  const auto servers = config.has_servers() ? config.servers : 0;
  nlohmann::ordered_json json{{"ok", !interrupted},
                              {"network", config.network},
                              {"dataset", config.dataset},
                              {"strategy", config.strategy},
                              {"workers", single ? 1 : config.workers},
                              {"servers", servers},
                              {"transport", transport},
                              {"optimizer", std::string(optimizer::name(config.optimizer.options().kind))},
                              {"steps", steps},
                              {"epochs", epochs},
                              {"seconds", seconds},
                              {"samples_per_second", samples_per_second},
                              {"train_loss", train_loss},
                              {"test_loss", test.loss},
                              {"test_accuracy", test.accuracy},
                              {"test_top5", test.top5},
                              {"bytes_pushed", bytes_pushed},
                              {"bytes_pulled", bytes_pulled},
                              {"compute_seconds", compute_seconds},
                              {"communication_seconds", communication_seconds},
                              {"data_seconds", data_seconds},
                              {"lost_workers", lost_workers},
                              {"dropped_pushes", dropped_pushes},
                              {"staleness_mean", staleness_mean},
                              {"staleness_max", staleness_max},
                              {"resumed_from", resumed_from},
                              {"checkpoint", checkpoint},
                              {"run_dir", run_dir}};
  auto& list = json["per_worker"] = nlohmann::ordered_json::array();
  for (const auto& row : rows)
    list.push_back({{"pushes", row.pushes},
                    {"samples", row.samples},
                    {"compute_seconds", row.compute_seconds},
                    {"wait_seconds", row.wait_seconds},
                    {"staleness_mean", row.staleness_mean},
                    {"staleness_max", row.staleness_max}});
  if (interrupted) json["error"] = "interrupted";
  return json_line(json);
}

std::string TrainResult::summary() const {
  std::string out;
  out += fmt::format("{} on {}: test accuracy {:.2f} %, test loss {:.4f}, train loss {:.4f}\n",
                     config.network, config.dataset, 100 * test.accuracy, test.loss, train_loss);
  out += fmt::format("{} updates ({:.1f} epochs){} in {:.1f} s: {:.0f} samples/s\n", steps, epochs,
                     resumed_from > 0 ? fmt::format(", {} of them now,", steps - resumed_from) : "", seconds,
                     samples_per_second);
  if (!config.is_single()) {
    const double busy = compute_seconds + communication_seconds + data_seconds;
    const auto place =
        config.has_servers() ? ", " + counted(config.servers, "server") : std::string(" without a server");
    out +=
        fmt::format("{}, {}{}{}: workers computed {:.0f} % of the time\n", config.strategy,
                    counted(config.workers, "worker"), place, transport == "auto" ? "" : " over " + transport,
                    busy > 0 ? 100 * compute_seconds / busy : 0);
    out += fmt::format("a worker waited {:.1f} s for the others{}, {:.1f} s for data\n",
                       communication_seconds, config.has_servers() ? " and the server" : "", data_seconds);
    if (config.has_servers()) {
      out += fmt::format("{:.1f} MB pushed, {:.1f} MB pulled (as if sent, where memory is shared)\n",
                         static_cast<double>(bytes_pushed) / 1e6, static_cast<double>(bytes_pulled) / 1e6);
    } else {
      out += fmt::format("{:.1f} MB sent from worker to worker\n", static_cast<double>(bytes_pushed) / 1e6);
    }
    if (staleness_max > 0) {
      out += fmt::format("staleness {:.2f} in the mean, {} at most", staleness_mean, staleness_max);
      for (std::size_t i = 0; i < rows.size() && rows.size() <= kMostListed; ++i)
        out += fmt::format("{}worker {}: {:.2f}, {}", i % 3 == 0 ? "\n  " : "   ", i, rows[i].staleness_mean,
                           rows[i].staleness_max);
      out += "\n";
    }
    if (dropped_pushes > 0) out += fmt::format("{} pushes dropped\n", dropped_pushes);
    if (lost_workers > 0)
      out += fmt::format("{} of {} workers were lost on the way\n", lost_workers, config.workers);
  }
  out += fmt::format("{}/weights.safetensors\n", run_dir);
  return out;
}

}  // namespace capstan::cli
