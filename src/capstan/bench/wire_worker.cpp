#include <algorithm>

#include <nlohmann/json.hpp>

#include "capstan/base/failure.h"
#include "capstan/bench/scalar_reference.h"
#include "capstan/bench/wire.h"
#include "capstan/client/connector.h"
#include "capstan/client/worker_client.h"
#include "capstan/cluster/token.h"
#include "capstan/kernels/copy.h"
#include "capstan/layouts/network_layout.h"
#include "capstan/metrics/process_usage.h"

namespace capstan::bench {

nlohmann::json run_wire_worker(const WireWorkerOptions& options) {
  const auto layout = layouts::network_layout(options.model);
  client::LinkOptions link;
  link.servers = options.servers;
  link.token = cluster::find_token({});
  link.index = options.rank;
  auto joined =
      client::WorkerClient::join(link, client::make_connector(client::parse_transport(options.transport)),
                                 layout, std::vector<float>(layout.size(), kWireInitialWeight));
  if (!joined) throw Failure(kLost, joined.status().message());
  auto& worker = **joined;

  std::vector<std::uint64_t> applied;
  std::vector<double> marks;
  applied.reserve(options.warmup + options.iterations);
  marks.reserve(options.iterations);
  auto update = worker.pull();
  TimePoint begin = SteadyClock::now(), mark = begin;
  double cpu = 0;
  for (std::uint64_t i = 0; update && i < options.warmup + options.iterations; ++i) {
    if (i == options.warmup) {
      cpu = metrics::process_usage().cpu_seconds;
      begin = mark = SteadyClock::now();
    }
    kernels::fill(worker.gradients(), wire_gradient(options.rank, i));
    update = worker.push_pull({1, 0, 0});
    if (!update) break;
    applied.push_back(update->applied.value);
    const auto now = SteadyClock::now();
    if (i >= options.warmup) marks.push_back(seconds(now - mark));
    mark = now;
  }
  if (!update) throw Failure(kLost, update.status().message());
  const double wall = seconds(mark - begin);
  cpu = metrics::process_usage().cpu_seconds - cpu;
  const float weight = worker.weights()[0];
  const auto unlike = std::ranges::count_if(worker.weights(), [&](float w) { return !(w == weight); });
  const auto version = update->version.value;
  const std::string transport = worker.transport();
  worker.leave();
  return {{"wall", wall},     {"marks", marks},     {"applied", applied}, {"weight", weight},
          {"unlike", unlike}, {"version", version}, {"cpu_seconds", cpu}, {"transport", transport}};
}

}  // namespace capstan::bench
