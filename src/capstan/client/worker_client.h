#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "capstan/base/data_segment.h"
#include "capstan/base/flat_layout.h"
#include "capstan/client/links.h"
#include "capstan/client/weights_arena.h"

namespace capstan::client {

// What a worker tells with a push.
struct StepReport {
  std::uint32_t samples = 0;
  float loss = 0;  // mean over them
  double compute_seconds = 0;
  double data_seconds = 0;  // waiting for the samples
  std::uint64_t steps = 1;  // computed since the push before
};

// What else a worker brings to a job.
struct WorkerPart {
  FlatLayout buffers;  // buffers of which each worker has its own
  wire::DataSource data;
};

// What the servers answered.
struct Update {
  Version version;       // of the weights now
  Version applied;       // which version the push became part of; 0 where it was dropped
  bool stop = false;     // the job ends: leave
  bool buffers = false;  // the servers ask for this worker's: send_buffers()
};

// A worker's side of the job: spans in, spans out; knows no model. Use from one thread.
class WorkerClient final : private Links::Events {
 public:
  // Connects and joins. `initial` goes to the servers if they have no weights yet; it is copied.
  static Result<std::unique_ptr<WorkerClient>> join(const LinkOptions& options, Connector connector,
                                                    const FlatLayout& layout, std::span<const float> initial,
                                                    const WorkerPart& part = {});
  ~WorkerClient() override;

  WorkerId rank() const { return {joined_.member.index}; }
  std::uint32_t workers() const { return joined_.workers; }
  std::uint32_t servers() const { return joined_.servers; }
  const std::string& strategy() const { return joined_.strategy; }
  Version start() const { return joined_.start; }  // with which the job began
  std::vector<DataSegment> segments() const;       // its way through the data before that
  const wire::LocalOptimizer& local_optimizer() const { return joined_.local; }
  std::string transport() const { return transport_; }

  // What is handed in, flat, such as the gradient: the worker's between an answer and the next push_pull().
  std::span<float> gradients() const { return gradients_.floats(); }
  // The flat weights: one version, unchanged between an answer and the next push_pull(). The address never
  // changes; the memory may be read-only.
  std::span<const float> weights() const { return weights_->floats(); }

  // The first weights. Returns when every worker is there and the job begins.
  Result<Update> pull();
  // The buffers to begin with, after pull(); empty where the job has none yet.
  std::vector<float> initial_buffers();
  // This worker has done so many steps of its part of the data already: in this job, by a worker before it.
  void skip_to(StepCount steps) { steps_ = steps; }
  // Hands in the gradient and waits for the weights that the strategy releases.
  Result<Update> push_pull(const StepReport& report);
  // How far it has come since its last push, where that is long ago: for people who watch.
  void report_progress(const StepReport& so_far);
  // The job is to end now, without another push.
  bool asked_to_stop() const { return asked_to_stop_; }
  // This worker's own, flat.
  void send_buffers(std::vector<float> values);
  // Says good-bye and waits a moment for the servers to hear it, so that nobody takes this worker for lost.
  void leave();

  double communication_seconds() const { return communication_seconds_; }

 private:
  WorkerClient(const LinkOptions& options, Connector connector, const FlatLayout& layout,
               std::span<const float> initial, const WorkerPart& part);

  transport::Placement on_payload(std::size_t server, const wire::Message& message,
                                  std::size_t bytes) override;
  void on_message(std::size_t server, const wire::Message& message) override;
  void on_joined(std::size_t server, std::optional<transport::Segment> weights, bool again) override;

  Status prepare();
  Range range(std::size_t server) const;
  void send_push(std::size_t server);
  void pull_anew();
  void share_memory(std::size_t server);
  void send_initial_weights(std::size_t server);
  Result<Update> exchange(std::optional<wire::Push> push);

  const FlatLayout layout_;
  const WorkerPart part_;
  std::shared_ptr<const std::vector<float>> initial_;  // let go of when the job has begun
  bool brings_initial_ = false;                        // the servers asked for them
  transport::Segment gradients_;
  std::unique_ptr<WeightsArena> weights_;
  std::vector<std::optional<transport::Segment>> server_weights_;  // until they are laid into the arena
  wire::Joined joined_;  // what the first server said; stays when the connections go
  std::string transport_;

  // The request that is under way, and who has answered it.
  std::optional<wire::Push> push_;  // none: the first pull
  std::uint64_t request_ = 0;       // only answers to this count
  std::uint64_t pulls_ = 0;
  std::vector<bool> answered_;
  wire::Weights answer_;
  bool waiting_ = false;
  std::atomic<bool> asked_to_stop_ = false;
  std::vector<float> buffers_;   // what the servers sent
  std::vector<bool> farewells_;  // while leaving: which servers have confirmed it

  Sequence sequence_;
  StepCount steps_;
  Version version_;
  double last_wait_ = 0;
  double communication_seconds_ = 0;

  Driver driver_;
  Links links_;  // last: ends first
};

}  // namespace capstan::client
