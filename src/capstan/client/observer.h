#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capstan/client/links.h"
#include "capstan/layout.h"

namespace capstan::client {

// Reads a running job's status and its weights at a version, and may stop the job. Use from one thread at a
// time.
class Observer final : private Links::Events {
 public:
  static Result<std::unique_ptr<Observer>> join(const LinkOptions& options, Connector connector);
  // The first server's description of the job; empty if it has none. Refused if `options.job` contradicts it.
  static Result<std::string> fetch_job(LinkOptions options, Connector connector);
  ~Observer() override;

  std::uint32_t servers() const { return static_cast<std::uint32_t>(links_.size()); }

  std::string transport() const { return transport_; }

  // The job's tensors, as the first server knew them when this observer joined: empty before the first
  // worker.
  const FlatLayout& layout() const { return layout_; }

  // The status of the job; from another server than the first, of that process only.
  Result<wire::StatusReport> status(std::size_t server = 0);

  // Requests the weights of the first version that is at least `at_least` (or the last, if the job ends
  // before); they arrive during other calls or poll(). With a layout of buffers, the mean of the workers'
  // buffers is requested too.
  void request_weights(const FlatLayout& layout, Version at_least, const FlatLayout& buffers = {});
  struct Snapshot {
    Version version;
    std::vector<float> weights;  // flat, by the layout
    std::vector<float> buffers;  // flat, by the layout of buffers; empty if there are none
  };
  // The requested weights, once they have arrived.
  std::optional<Snapshot> take_weights();
  // Requests weights and waits for them. Waits for an earlier request first and drops its weights.
  Result<Snapshot> pull(const FlatLayout& layout, Version at_least, const FlatLayout& buffers = {});

  // Ends the job at its next step.
  void stop(const std::string& reason);
  // Reports that a worker's process has ended, whichever has this rank.
  void worker_died(WorkerId worker);

  // Processes messages until the deadline or a failure.
  Status poll(TimePoint deadline);

 private:
  Observer(const LinkOptions& options, Connector connector);

  transport::Placement on_payload(std::size_t server, const wire::Message& message,
                                  std::size_t bytes) override;
  void on_message(std::size_t server, const wire::Message& message) override;
  void on_joined(std::size_t server, std::optional<transport::Segment>, bool again) override;
  Status prepare();
  void ask_for_weights();

  struct Request {
    std::uint64_t number = 0;
    Version at_least;
    Snapshot snapshot;
    std::vector<Range> shards;
    std::uint64_t buffers = 0;   // elements
    std::vector<bool> answered;  // servers that have sent their weights
    bool has_buffers = false;

    bool is_complete() const { return has_buffers && std::ranges::find(answered, false) == answered.end(); }
  };

  std::string transport_;
  FlatLayout layout_;
  std::optional<wire::StatusReport> report_;
  std::optional<std::size_t> asked_for_status_;  // which server
  std::optional<wire::StopRequest> stop_;        // sent before
  std::optional<Request> request_;
  std::uint64_t requests_ = 0;
  Driver driver_;
  Links links_;  // last: destroyed first
};

}  // namespace capstan::client
