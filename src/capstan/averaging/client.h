#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "capstan/averaging/average_arena.h"
#include "capstan/averaging/buckets.h"
#include "capstan/client/links.h"

namespace capstan::averaging {

struct ClientOptions {
  client::LinkOptions links;
  std::vector<Shape> buckets;  // the same for all trainers
  // Called with the time at which a bucket was sent (on the thread that sends it) and at which its average
  // arrived (on the client's thread, also while no thread waits). They must not call the client.
  using At = std::function<void(std::uint64_t batch, std::uint32_t bucket, TimePoint)>;
  At on_sent, on_average;
};

// A trainer's side of an averaging job: sends buckets of gradients and receives their averages. A thread of
// its own receives them; it sleeps in the kernel while nothing arrives. send() may be called from any thread,
// for each bucket from one at a time; everything else from one thread.
class AveragingClient final : private client::Links::Events {
 public:
  // Connects to all servers and joins. Throws UserError if there is no memory for the buckets.
  static Result<std::unique_ptr<AveragingClient>> join(const ClientOptions& options,
                                                       client::Connector connector);
  ~AveragingClient() override;

  WorkerId rank() const { return {joined_.member.index}; }
  std::uint32_t trainers() const { return joined_.workers; }
  std::uint32_t servers() const { return joined_.servers; }
  std::string transport() const { return transport_; }

  // The memory of a bucket's gradients: all elements, or values of its rows one after the other. Writable
  // except between send() and the arrival of the average. The address never changes.
  std::span<float> bucket(std::size_t bucket) const { return layout_.values(gradients_.floats(), bucket); }
  // The numbers of a sparse bucket's rows.
  std::span<std::uint32_t> rows(std::size_t bucket) const {
    return layout_.rows(gradients_.floats(), bucket);
  }

  // Begins the next batch, when all averages of the one before have arrived; returns its number, from 0.
  std::uint64_t next_batch();
  // Sends a bucket of this batch; a sparse one with its first `rows` rows, whose numbers increase strictly.
  // Returns at once. Every trainer must send the same buckets in each batch.
  void send(std::size_t bucket, std::size_t rows = 0);
  // Wait for the averages of one bucket, or of all that were sent. No deadline: another trainer may take
  // long. The wait ends with a failure if a server or a trainer is lost.
  Result<Gradient> wait(std::size_t bucket);
  Status wait_all();
  // The average that a wait has returned; valid until the bucket is sent again. The address of a dense one
  // never changes. The memory may be read-only.
  Gradient average(std::size_t bucket) const { return averages_->average(bucket); }

  // Leaves the job and waits at most a second for the servers' confirmation, so that the trainer does not
  // count as lost.
  void leave();

 private:
  // A bucket on its way.
  struct Flight {
    std::uint64_t batch = 0;
    bool is_waiting = false;             // for the answer of a server
    bool is_united = true;               // by the thread that waits
    std::vector<wire::Bucket> messages;  // by link
    std::vector<bool> unanswered;        // by link
  };

  AveragingClient(const ClientOptions& options, client::Connector connector);

  transport::Placement on_payload(std::size_t server, const wire::Message& message,
                                  std::size_t bytes) override;
  void on_message(std::size_t server, const wire::Message& message) override;
  void on_joined(std::size_t server, std::optional<transport::Segment> averages, bool again) override;

  Status prepare();
  std::uint32_t server_of(std::size_t link) const { return links_.joined(link).server.value; }
  bool expects(std::size_t link, const wire::Average& average) const;
  wire::Bucket message_for(std::size_t bucket, std::size_t rows, std::size_t link) const;
  void send_bucket(std::size_t link, std::size_t bucket);
  void take(std::size_t link, const wire::Average& average);
  Status failure() const { return failure_.is_ok() ? links_.failure() : failure_; }

  const ClientOptions options_;
  const ArenaLayout layout_;
  transport::Segment gradients_;
  std::unique_ptr<AverageArena> averages_;
  wire::Joined joined_;  // from the first server
  std::string transport_;
  std::uint64_t batches_ = 0;  // begun

  // Guarded by the driver's lock.
  std::vector<std::optional<transport::Segment>> segments_;  // by link, until they are mapped
  std::vector<Flight> flights_;                              // by bucket
  std::vector<bool> leave_confirmed_;                        // while leaving, by link
  Status failure_;

  client::Driver driver_{client::Driver::Keeper::kAlways};
  client::Links links_;  // last: destroyed first
};

}  // namespace capstan::averaging
