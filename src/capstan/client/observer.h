#pragma once

#include <memory>
#include <vector>

#include "capstan/base/flat_layout.h"
#include "capstan/client/links.h"

namespace capstan::client {

// Looks at a running job, takes its weights at a version, and may end it. Use from one thread at a time.
class Observer final : private Links::Events {
 public:
  static Result<std::unique_ptr<Observer>> join(const LinkOptions& options, Connector connector);
  // What the first server tells of the job; empty where it knows nothing. Refused where `options.job`, which
  // this member was told, contradicts it.
  static Result<std::string> learn_job(LinkOptions options, Connector connector);
  ~Observer() override;

  std::uint32_t servers() const { return static_cast<std::uint32_t>(links_.size()); }

  std::string transport() const { return transport_; }

  // The state of the job; with another server than the first, of that process alone.
  Result<wire::StatusReport> status(std::size_t server = 0);

  // Asks for the weights of the first version that is at least `at_least` (or the last, if the job ends
  // before); they come while other calls, or poll(), run.
  // With a layout of buffers, those of the workers come too: their mean.
  void request_weights(const FlatLayout& layout, Version at_least, const FlatLayout& buffers = {});
  struct Snapshot {
    Version version;
    std::vector<float> weights;  // flat, by the layout
    std::vector<float> buffers;  // flat, by theirs; empty where none are known
  };
  // The weights asked for, once they are there.
  std::optional<Snapshot> take_weights();
  // Request and take in one: waits, also for a request that is under way, whose weights are dropped.
  Result<Snapshot> pull(const FlatLayout& layout, Version at_least, const FlatLayout& buffers = {});

  // Ends the job at the next step.
  void stop(const std::string& reason);
  // A worker's process is known to be dead.
  void worker_died(WorkerId worker);

  // Lets messages come in until the deadline or a failure.
  Status poll(TimePoint deadline);

 private:
  Observer(const LinkOptions& options, Connector connector);

  transport::Placement on_payload(std::size_t server, const wire::Message& message,
                                  std::size_t bytes) override;
  void on_message(std::size_t server, const wire::Message& message) override;
  void on_joined(std::size_t server, std::optional<transport::Segment>, bool again) override;
  void ask_for_weights();

  struct Request {
    std::uint64_t number = 0;
    Version at_least;
    Snapshot snapshot;
    std::vector<Range> shards;
    std::uint64_t buffers = 0;  // elements
    std::size_t missing = 0;    // servers that have not sent their weights, and the buffers
  };

  std::string transport_;
  std::optional<wire::StatusReport> report_;
  std::optional<std::size_t> asked_for_status_;  // which server
  std::optional<wire::StopRequest> stop_;        // said already
  std::optional<Request> request_;
  std::uint64_t requests_ = 0;
  Driver driver_;
  Links links_;  // last: ends first
};

}  // namespace capstan::client
