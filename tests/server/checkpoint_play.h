#pragma once

#include <filesystem>

#include "capstan/checkpoint/checkpoint.h"
#include "capstan/checkpoint/run_checkpoints.h"
#include "server/play.h"
#include "support/temporary_folder.h"

// Jobs that write checkpoints and resume from them, with the workers of play.h.
namespace capstan::testing::play {

inline server::ServerOptions saving(server::ServerOptions options, const std::filesystem::path& run,
                                    std::uint64_t every = 1'000'000) {
  options.checkpoints = {run, every, {}, 100};
  return options;
}

inline server::ServerOptions resuming(server::ServerOptions options, const std::filesystem::path& folder) {
  options.resume = checkpoint::Found{folder, checkpoint::read_manifest(folder)};
  return options;
}

inline client::WorkerPart usual_part() {
  return {FlatLayout({{"bn.running_mean", {3}}}), {640, 5, 32}};
}

// A worker's buffers after this many updates.
inline float statistic(std::uint32_t rank, std::uint64_t version) {
  return static_cast<float>(100 * (rank + 1)) + static_cast<float>(version);
}

struct CheckpointHistory {
  Status failure;
  Version start;
  std::vector<DataSegment> segments;
  std::vector<float> initial_buffers;
  std::map<std::uint64_t, std::vector<float>> seen;  // weights by version
};

// A worker that computes until version `last`. Its gradient is that of the version on which it computes, so
// that a resumed job is the same as one that never stopped. `at_version` runs before each step.
inline CheckpointHistory run_worker_to(
    LoopbackCluster& cluster, std::uint32_t rank, std::uint64_t last, End end = End::kLeaves,
    const client::WorkerPart& part = usual_part(),
    const std::function<void(std::uint64_t)>& at_version = [](std::uint64_t) {}) {
  CheckpointHistory history;
  const auto layout = small_layout();
  auto client = client::WorkerClient::join(cluster.worker_options(rank), cluster.connector(), layout,
                                           initial_weights(layout), part);
  if (!client) {
    history.failure = client.status();
    return history;
  }
  auto& worker = **client;
  const auto buffers = [&](std::uint64_t version) {
    return std::vector<float>(part.buffers.size(), statistic(rank, version));
  };
  auto update = worker.pull();
  history.start = worker.start();
  history.segments = worker.segments();
  history.initial_buffers = worker.initial_buffers();
  while (update && !update->stop && update->version.value < last) {
    at_version(update->version.value);
    for (std::size_t i = 0; i < layout.size(); ++i)
      worker.gradients()[i] = gradient(rank, update->version.value, i);
    update = worker.push_pull({32, 1.0f, 0.001});
    if (!update) break;
    history.seen[update->version.value].assign(worker.weights().begin(), worker.weights().end());
    if (update->buffers) worker.send_buffers(buffers(update->version.value));
  }
  history.failure = update.status();
  if (!update || end == End::kIsKilled) return history;
  if (part.buffers.size() > 0) worker.send_buffers(buffers(update->version.value));
  worker.leave();
  return history;
}

inline std::vector<CheckpointHistory> run_workers_to(
    LoopbackCluster& cluster, std::uint32_t workers, std::uint64_t last, End end = End::kLeaves,
    const client::WorkerPart& part = usual_part(),
    const std::function<void(std::uint64_t)>& at_version = [](std::uint64_t) {}) {
  std::vector<CheckpointHistory> histories(workers);
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < workers; ++r)
    threads.emplace_back([&, r] { histories[r] = run_worker_to(cluster, r, last, end, part, at_version); });
  for (auto& t : threads) t.join();
  for (const auto& history : histories) EXPECT_TRUE(history.failure) << history.failure.message();
  return histories;
}

// SGD with momentum in double: weights and momentum after this many updates.
struct Arithmetic {
  std::vector<double> weights, momentum;
};
inline Arithmetic arithmetic(std::uint32_t workers, std::uint64_t version) {
  const auto w0 = initial_weights(small_layout());
  Arithmetic a{{w0.begin(), w0.end()}, std::vector<double>(w0.size())};
  for (std::uint64_t step = 0; step < version; ++step) {
    for (std::size_t i = 0; i < a.weights.size(); ++i) {
      double g = 0;
      for (std::uint32_t r = 0; r < workers; ++r) g += gradient(r, step, i);
      a.momentum[i] = 0.9 * a.momentum[i] + g / workers;
      a.weights[i] -= 0.1 * a.momentum[i];
    }
  }
  return a;
}

// Weights and momentum of a checkpoint, every checksum compared.
struct Saved {
  checkpoint::Manifest manifest;
  std::vector<float> weights, momentum;
};
inline Saved saved(const std::filesystem::path& folder) {
  const auto size = small_layout().size();
  Saved s{checkpoint::read_manifest(folder), std::vector<float>(size), std::vector<float>(size)};
  checkpoint::verify(folder, s.manifest);
  const std::vector<checkpoint::NamedArray> arrays = {{"weights", s.weights},
                                                      {"momentum_buffer", s.momentum}};
  checkpoint::load(folder, s.manifest, {0, size}, arrays);
  return s;
}

// The gaps between tensors are in no checkpoint.
template <class Float>
std::vector<Float> without_gaps(std::vector<Float> flat) {
  const auto layout = small_layout();
  std::vector<bool> inside(flat.size());
  for (std::size_t t = 0; t < layout.tensors().size(); ++t) {
    for (auto i = layout.range(t).begin; i < layout.range(t).end; ++i) inside[i] = true;
  }
  for (std::size_t i = 0; i < flat.size(); ++i) {
    if (!inside[i]) flat[i] = 0;
  }
  return flat;
}

inline void expect_is_arithmetic(const Saved& s, std::uint32_t workers) {
  SCOPED_TRACE("checkpoint of version " + std::to_string(s.manifest.version.value));
  const auto expected = arithmetic(workers, s.manifest.version.value);
  expect_near(s.weights, without_gaps(expected.weights));
  expect_near(s.momentum, without_gaps(expected.momentum));
}

}  // namespace capstan::testing::play
