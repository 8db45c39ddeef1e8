#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "capstan/averaging/server.h"
#include "capstan/cluster/token.h"
#include "capstan/lab/plan.h"
#include "capstan/lab/server.h"
#include "capstan/transport/listeners.h"

namespace capstan::lab {

// An averaging server of a plan on a thread of its own, and its metrics. Use from one thread. If the run
// fails, the process ends with a line that says why.
class AverageServer final : private averaging::Observer {
 public:
  AverageServer(const Plan& plan, std::uint32_t index, const cluster::Token& token,
                std::unique_ptr<Server> rule, MetricsLogger& metrics);
  ~AverageServer() override;

  const std::string& address() const { return address_; }
  // Before each run but the first: forgets batches and gradients.
  void reset_state();

 private:
  void on_bucket(const averaging::BucketTimes& times) override;

  MetricsLogger& metrics_;
  std::string address_;
  transport::EventLoop* loop_ = nullptr;
  averaging::AveragingServer* server_ = nullptr;
  bool ending_ = false;  // of the server's thread
  std::thread thread_;
};

}  // namespace capstan::lab
