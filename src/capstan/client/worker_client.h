#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "capstan/base/data_segment.h"
#include "capstan/base/row_payload.h"
#include "capstan/client/links.h"
#include "capstan/client/pending_request.h"
#include "capstan/client/weights_arena.h"
#include "capstan/layout.h"

namespace capstan::client {

// What a worker reports with a push.
struct StepReport {
  std::uint32_t samples = 0;
  float loss = 0;  // mean over them
  double compute_seconds = 0;
  double data_seconds = 0;  // waiting for the samples
  std::uint64_t steps = 1;  // completed since the last push: 0 if other phases of the step follow
  std::uint32_t phase = 0;  // of the step; pushes go through all phases in order
};

// What else a worker declares when it joins.
struct WorkerPart {
  FlatLayout buffers;  // of which each worker has its own
  wire::DataSource data;
  std::vector<StepPhase> phases = {};  // of a step; none: one phase of all tensors
};

// The servers' answer.
struct Update {
  Version version;       // of the new weights
  Version applied;       // the version that the push became part of; 0 if it was dropped
  bool stop = false;     // the job ends: call leave()
  bool buffers = false;  // the servers request this worker's buffers: call send_buffers()
};

// The worker's side of a job: pushes and pulls flat arrays, independent of the model. Use from one thread.
class WorkerClient final : private Links::Events {
 public:
  // Connects and joins. `initial` is copied, and sent to the servers if they have no weights yet.
  static Result<std::unique_ptr<WorkerClient>> join(const LinkOptions& options, Connector connector,
                                                    const FlatLayout& layout, std::span<const float> initial,
                                                    const WorkerPart& part = {});
  ~WorkerClient() override;

  WorkerId rank() const { return {joined_.member.index}; }
  std::uint32_t workers() const { return joined_.workers; }
  std::uint32_t servers() const { return joined_.servers; }
  const std::string& strategy() const { return joined_.strategy; }
  Version start() const { return joined_.start; }  // the version at which the job began
  std::vector<DataSegment> segments() const;       // its position in the data at that version
  const wire::LocalOptimizer& local_optimizer() const { return joined_.local; }
  std::string transport() const { return transport_; }

  // The flat array to push, such as the gradient: writable between an answer and the next push_pull().
  std::span<float> gradients() const { return gradients_.floats(); }
  // The flat weights: one version, unchanged between an answer and the next push_pull(). The address never
  // changes; the memory may be read-only.
  std::span<const float> weights() const { return weights_->floats(); }

  // Pulls the first weights. Returns when every worker has joined and the job begins.
  Result<Update> pull();
  // The initial buffers, after pull(); empty if the job has none yet.
  std::vector<float> initial_buffers();
  // Earlier incarnations of this worker have computed this many steps of its data in this job.
  void skip_to(StepCount steps) { counters_.steps = steps; }
  // Pushes gradients() and waits for the weights that the strategy releases. `rows`, if the layout has row
  // tensors: the rows of each tensor's gradient; other rows of gradients() are not used.
  Result<Update> push_pull(const StepReport& report, const RowLists& rows = {});
  // Reports progress since the last push, for the progress display.
  void report_progress(const StepReport& so_far);
  // The job ends now: the worker stops without another push.
  bool asked_to_stop() const { return asked_to_stop_; }
  // Sends this worker's buffers, flat.
  void send_buffers(std::vector<float> values);
  // Leaves the job and waits at most a second for the servers' confirmation, so that the worker does not
  // count as lost.
  void leave();

  double communication_seconds() const { return counters_.communication_seconds; }
  // Bytes of the parameters in all pushes and answers so far, whether sent or read in shared memory.
  struct Traffic {
    std::uint64_t pushed = 0, pulled = 0;
  };
  Traffic traffic();

 private:
  // What the worker brings if the servers have no weights yet.
  struct InitialWeights {
    std::shared_ptr<const std::vector<float>> values;  // released when the job has begun
    bool requested = false;
  };
  // What concerns one server.
  struct ServerPart {
    std::optional<transport::Segment> weights;   // the server's, until it is mapped into the arena
    std::vector<std::span<const float>> pushed;  // by phase: the part of the gradients that a push carries
    bool shares_memory = false;
    ShardRows rows;                     // of the server's row tensors, if it has any
    std::vector<std::uint32_t> counts;  // of the current push's rows, by part
    std::vector<float> packed;          // its payload
    std::vector<float> arriving;        // the payload of an answer with rows
    std::uint64_t held = 0;             // number of the last answer taken
  };
  struct Counters {
    Sequence sequence;  // of the last push
    StepCount steps;
    Version version;       // of the weights
    double last_wait = 0;  // seconds; 0 once a push has reported it
    double communication_seconds = 0;
  };
  // Of rows, for the servers' report.
  struct RowBytes {
    std::uint64_t pushed = 0;    // with the current push
    std::uint64_t reported = 0;  // pulled before it, and reported with it
    std::uint64_t pulled = 0;    // since then
  };

  WorkerClient(const LinkOptions& options, Connector connector, const FlatLayout& layout,
               std::span<const float> initial, const WorkerPart& part);

  transport::Placement on_payload(std::size_t server, const wire::Message& message,
                                  std::size_t bytes) override;
  void on_message(std::size_t server, const wire::Message& message) override;
  void on_joined(std::size_t server, std::optional<transport::Segment> weights, bool again) override;

  Status prepare();
  Status check_joined() const;
  Range range(std::size_t server) const;
  ParameterGroups push_groups() const;
  void pack(std::size_t server, std::uint32_t phase, const RowLists& rows);
  Status take_rows(std::size_t server, const wire::Weights& weights);
  void send_push(std::size_t server);
  void share_memory(std::size_t server);
  void send_initial_weights(std::size_t server);
  Result<Update> exchange(const std::optional<wire::Push>& push, const RowLists& rows = {});

  const FlatLayout layout_;
  const WorkerPart part_;
  transport::Segment gradients_;
  std::unique_ptr<WeightsArena> weights_;
  std::vector<ServerPart> parts_;  // by server
  wire::Joined joined_;            // from the first server; valid after the connections end
  std::string transport_;
  std::vector<std::uint64_t> push_bytes_;  // by phase: of one push, to all servers, without rows
  std::uint64_t answer_bytes_ = 0;         // of all servers' answers, without rows

  // Guarded by the driver's lock.
  InitialWeights initial_;
  PendingRequest request_;
  RowBytes row_bytes_;
  Traffic traffic_;
  std::vector<float> buffers_;         // from the servers
  std::vector<bool> leave_confirmed_;  // while leaving: which servers have confirmed it

  std::atomic<bool> asked_to_stop_ = false;
  Counters counters_;  // of the worker's thread

  Driver driver_;
  Links links_;  // last: destroyed first
};

}  // namespace capstan::client
