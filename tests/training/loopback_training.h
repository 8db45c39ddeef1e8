#pragma once

#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "capstan/models/arena.h"
#include "capstan/models/buffers.h"
#include "capstan/training/worker.h"
#include "support/loopback_cluster.h"

namespace capstan::testing {

// Trains a job in this process, a thread for each worker, until all workers have ended. `tasks` has one task
// per worker, with the same initial weights; afterwards each task has its worker's last weights.
inline void train_on_servers(const server::ServerOptions& servers,
                             const std::vector<std::unique_ptr<Task>>& tasks,
                             const training::WorkerOptions& options, bool share_memory = true) {
  LoopbackCluster cluster(share_memory, servers);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < tasks.size(); ++rank) {
    threads.emplace_back([&, rank] {
      auto& task = *tasks[rank];
      const auto layout = models::layout_of(task.parameters());
      std::vector<float> initial(layout.size());
      models::copy_parameters_out(task.parameters(), layout, initial);
      auto client =
          client::WorkerClient::join(cluster.worker_options(rank), cluster.connector(), layout, initial,
                                     {models::buffer_layout_of(task.buffers()), {}, task.phases()});
      ASSERT_TRUE(client) << client.status().message();
      const auto result = training::run_worker(**client, task, layout, options);
      ASSERT_TRUE(result) << result.status().message();
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace capstan::testing
