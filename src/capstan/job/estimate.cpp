#include "capstan/job/estimate.h"

#include <algorithm>

#include <fmt/format.h>

#include "capstan/base/json.h"
#include "capstan/base/row_tensors.h"
#include "capstan/base/text.h"
#include "capstan/metrics/evaluation.h"
#include "capstan/optimizer/spec.h"
#include "capstan/placement/shards.h"
#include "capstan/strategy/strategy.h"

namespace capstan::job {

std::vector<std::string> state_names(const config::JobConfig& config) {
  auto rules = config.optimizer.spec();
  if (!config.has_servers()) return optimizer::OptimizerSet(rules, {}).state_names();
  const auto spec = config.strategy_spec();
  if (spec.first->local_steps().uses_local_steps()) {
    const auto outer = spec.first->outer().value_or(strategy::OuterStep{});
    rules = optimizer::outer(outer.rate, outer.momentum);
  }
  auto names = optimizer::OptimizerSet(rules, {}).state_names();
  if (spec.needs_mean_square()) names.emplace_back("mean_square");
  return names;
}

Estimate estimate(const config::JobConfig& config, const FlatLayout& layout,
                  const std::vector<StepPhase>& phases) {
  const auto model = layout.bytes();
  const auto state = model * state_names(config).size();
  if (!config.has_servers()) {
    const auto others = config.is_allreduce() ? config.workers - 1 : 0;
    return {0, 2 * model + state, 2 * model * others * std::max<std::size_t>(phases.size(), 1)};
  }
  const auto spec = config.strategy_spec();
  // On one host workers may read the weights in the server's memory; with local steps each also has a copy.
  const bool in_place = spec.workers_idle_during_update() && config.transport != "ucx";
  const bool local = spec.first->local_steps().uses_local_steps();
  const optimizer::OptimizerSet own(config.optimizer.spec(), {});
  const auto arrays = (in_place ? 1 : 2) + (local ? 1 + own.state_names().size() : 0);
  // With local steps one push carries all phases. Every push is answered by the whole weights. The rows of
  // row tensors depend on the data, so all are counted.
  const auto dense = all_dense(layout);
  const ParameterGroups groups(dense, {.phases = local ? std::vector<StepPhase>() : phases});
  std::uint64_t step = 0;
  for (const auto pushed : placement::push_bytes(dense, groups, config.servers)) step += pushed + model;
  return {model + state, model * arrays, step * spec.first->pushes_per_update(config.workers)};
}

std::string DryRun::json() const {
  return json_line(Json{{"ok", true},
                        {"config", config.to_toml()},
                        {"parameters", parameters},
                        {"steps", budget.total},
                        {"steps_per_epoch", budget.per_epoch},
                        {"server_bytes", bytes.servers},
                        {"worker_bytes", bytes.worker},
                        {"bytes_per_step", bytes.update},
                        {"metrics", metrics::to_json(metrics)}});
}

std::string DryRun::text() const {
  const auto megabytes = [](std::uint64_t b) { return static_cast<double>(b) / 1e6; };
  auto out = fmt::format("{}\n# {} parameters, {} training and {} test samples\n# {} updates, {} per epoch\n",
                         config.to_toml(), parameters, training_samples, test_samples, budget.total,
                         budget.per_epoch);
  if (config.has_servers())
    out += fmt::format("# weights and optimizer state: {:.1f} MB over {}\n", megabytes(bytes.servers),
                       counted(config.servers, "server"));
  out += fmt::format("# gradient and own copies of each worker: {:.1f} MB\n", megabytes(bytes.worker));
  if (!config.is_single())
    out += fmt::format("# transferred: {:.1f} MB per update\n", megabytes(bytes.update));
  return out;
}

}  // namespace capstan::job
