#include "capstan/bench/data.h"

#include <nlohmann/json.hpp>

#include "capstan/base/failure.h"
#include "capstan/base/time.h"
#include "capstan/data/partition.h"
#include "capstan/data/prefetcher.h"
#include "capstan/metrics/process_usage.h"

namespace capstan::bench {
namespace {

constexpr double kSeconds = 3;

}  // namespace

nlohmann::json run_data(const DataOptions& options, const std::function<bool()>& cancelled) {
  const auto dataset = data::load(options.dataset);
  const auto& train = *dataset.train;
  data::Sampler sampler({train.count(), 1, options.batch}, 0, options.dataset.seed);
  const auto per_epoch = sampler.steps(0);
  const auto start = SteadyClock::now();
  const auto cpu_before = metrics::process_usage().cpu_seconds;
  const auto elapsed = [&] { return seconds(SteadyClock::now() - start); };

  data::Prefetcher prefetcher(train, options.threads,
                              [&, step = std::uint64_t{0}]() mutable -> std::optional<BatchRequest> {
                                const auto epoch = step / per_epoch;
                                if (options.epochs > 0 ? epoch == options.epochs : elapsed() > kSeconds)
                                  return {};
                                return BatchRequest{epoch, sampler.batch(epoch, step++ % per_epoch)};
                              });
  std::uint64_t images = 0;
  while (const auto batch = prefetcher.next()) {
    images += batch->samples;
    if (cancelled()) throw Failure(kInterrupted, "interrupted");
  }
  const auto took = elapsed();
  const auto rate = static_cast<double>(images) / took;
  const auto& shape = train.shape();
  return {{"ok", true},
          {"dataset", options.dataset.name},
          {"shape", shape.input},
          {"samples", train.count()},
          {"threads", options.threads},
          {"images", images},
          {"seconds", took},
          {"cpu_seconds", metrics::process_usage().cpu_seconds - cpu_before},
          {"images_per_second", rate},
          {"images_per_second_per_core", rate / options.threads},
          {"unreadable", train.unreadable().images}};
}

}  // namespace capstan::bench
