#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "capstan/cluster/token.h"
#include "capstan/lab/metrics_logger.h"
#include "capstan/lab/plan.h"

namespace capstan::lab {

// A parameter server of the plan's strategy for one run: it begins without weights, optimizer state and
// versions, and gets the initial weights from a trainer. The server runs on a thread of its own until all
// trainers have left. For each update, and each group of parameters that it changes, measures
//   parameter_server_straggler_metric,param_index_straggler   from the first to the last push of the update
//   parameter_server_batch_metric,param_index_batch           from the first push until all are answered
//   method_metric,average computation                         applying the update
//   queue_metric,queue_depth                                  operations before it
//   bytes_metric,received and bytes_metric,sent               pushes of the group, and the answers
// Use from one thread.
class StrategyServer {
 public:
  // Server `index` of run number `run`; `earlier` has the addresses of the servers before it, of which the
  // first leads. Returns when trainers can join. Throws UserError for wrong values of the plan.
  StrategyServer(const Plan& plan, std::uint32_t index, std::uint32_t run,
                 const std::vector<std::string>& earlier, const cluster::Token& token,
                 MetricsLogger& metrics);
  // Ends the run, if it has not ended.
  ~StrategyServer();

  const std::string& address() const;
  // Waits until all trainers have left. With Plan::save, the leader then writes run-N/updates.json. Throws
  // Failure if a trainer or another server is lost.
  void finish();

 private:
  class Run;
  const std::unique_ptr<Run> run_;
};

}  // namespace capstan::lab
