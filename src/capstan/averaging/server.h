#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "capstan/averaging/bucket_progress.h"
#include "capstan/averaging/executor.h"
#include "capstan/averaging/observer.h"
#include "capstan/averaging/trainer_memory.h"
#include "capstan/server/member_table.h"

namespace capstan::averaging {

struct ServerOptions {
  std::uint32_t trainers = 1;
  std::uint32_t servers = 1;
  ServerId index;
  unsigned threads = 1;  // for averages
  std::size_t inline_elements = Executor::kInlineElements;
  Duration join_timeout = std::chrono::seconds(120);  // from the first trainer to the last
  server::MemberTable::Options members;
};

// A server that holds no weights: it receives every trainer's buckets of gradients, and answers each with the
// average over all trainers. With several servers, each has its part of every bucket. The run ends for all if
// a trainer is lost. When all trainers have left, others may begin the next run. Pass connections from any
// listeners to accept(), and run the loop while failure() is ok. Owned by the loop's thread; not thread-safe.
class AveragingServer final : private server::MemberTable::Events {
 public:
  // `observer` may be null; it and the loop outlive the server.
  AveragingServer(transport::EventLoop& loop, const ServerOptions& options, std::unique_ptr<Rule> rule,
                  Observer* observer, std::shared_ptr<spdlog::logger> log);
  ~AveragingServer() override;

  void accept(std::unique_ptr<transport::Connection> connection) { members_.accept(std::move(connection)); }

  // Why the run has ended; ok while it has not. kRefused: a UserError of the rule; kUnavailable: another
  // error of the rule; otherwise a trainer is lost.
  const Status& failure() const { return failure_; }
  // All trainers have joined, and left again.
  bool is_finished() const;
  // Forgets batches and gradients between two runs of the same trainers, when no bucket is in flight.
  void reset_state();

 private:
  // A trainer's rank: kAbsent → kJoined → kLeft, and kAbsent again when the next run begins.
  enum class State { kAbsent, kJoined, kLeft };
  struct Trainer {
    State state = State::kAbsent;
    Incarnation incarnation;  // also of a trainer that has left, which must not join again
    std::shared_ptr<TrainerMemory> memory;
  };
  // This server's part of one bucket.
  struct Entry {
    Slot slot;
    BucketProgress progress;
    BucketTimes times;
    std::shared_ptr<const std::vector<float>> packed;  // the last average of rows as a payload
  };

  void on_join(server::Peer& peer, const wire::Join& join) override;
  transport::Placement on_payload(server::Peer& peer, const wire::Message& message,
                                  std::size_t bytes) override;
  void on_message(server::Peer& peer, cluster::Arrival arrival) override;
  void on_lost(const wire::Member& member, Incarnation incarnation, const Status& why) override;

  Result<std::uint32_t> admit(const wire::Join& join);
  Result<std::uint32_t> rank_for(const wire::Join& join) const;
  Status set_buckets(const std::vector<Shape>& shapes);
  void begin_run();

  Status take(WorkerId worker, cluster::Arrival& arrival);
  Result<BucketProgress::Kind> check(WorkerId worker, const wire::Bucket& bucket, std::size_t bytes);
  Status take_bucket(WorkerId worker, const wire::Bucket& bucket, std::size_t bytes);
  void averaged(Entry& entry, const Executor::Outcome& outcome);
  void send_average(WorkerId worker, Entry& entry);
  void take_leave(server::Peer& peer);
  void refuse(server::Peer& peer, const Status& why);
  void fail(Status why);
  void tick();

  bool any(State state) const;
  bool all(State state) const;

  transport::EventLoop& loop_;
  const ServerOptions options_;
  const std::unique_ptr<Rule> rule_;
  Observer* const observer_;
  const std::shared_ptr<spdlog::logger> log_;
  server::MemberTable members_;
  Status failure_;
  std::vector<Trainer> trainers_;  // by rank
  TimePoint first_joined_{};
  std::optional<transport::EventLoop::TimerId> timer_;

  // Of the buckets, which the first trainer of a run declares.
  std::vector<Shape> shapes_;
  std::vector<Range> parts_;
  transport::Segment averages_;
  std::vector<std::unique_ptr<Entry>> entries_;

  Executor executor_;  // last: its threads end first
};

}  // namespace capstan::averaging
