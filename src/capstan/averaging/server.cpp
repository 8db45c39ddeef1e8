#include "capstan/averaging/server.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <fmt/format.h>
#include <spdlog/logger.h>

#include "capstan/base/check.h"
#include "capstan/user_error.h"

namespace capstan::averaging {
namespace {

std::string shape_text(const Shape& shape) {
  return shape.is_sparse() ? fmt::format("{} rows of {}", shape.rows(), shape.columns)
                           : fmt::format("{} elements", shape.elements);
}

// The first difference of a trainer's buckets from the run's; empty if there is none.
std::string difference(const std::vector<Shape>& here, const std::vector<Shape>& there) {
  if (here.size() != there.size())
    return fmt::format("the other trainers have {} buckets, this one {}", here.size(), there.size());
  for (std::size_t b = 0; b < here.size(); ++b) {
    if (here[b] != there[b])
      return fmt::format("bucket {} has {} on the other trainers, {} here", b, shape_text(here[b]),
                         shape_text(there[b]));
  }
  return {};
}

std::shared_ptr<const std::vector<float>> pack(const Gradient& rows) {
  auto packed = std::make_shared<std::vector<float>>(rows.rows.size() + rows.values.size());
  if (packed->empty()) return packed;
  std::memcpy(packed->data(), rows.rows.data(), rows.rows.size_bytes());
  std::memcpy(packed->data() + rows.rows.size(), rows.values.data(), rows.values.size_bytes());
  return packed;
}

}  // namespace

AveragingServer::AveragingServer(transport::EventLoop& loop, const ServerOptions& options,
                                 std::unique_ptr<Rule> rule, Observer* observer,
                                 std::shared_ptr<spdlog::logger> log)
    : loop_(loop),
      options_(options),
      rule_(std::move(rule)),
      observer_(observer),
      log_(std::move(log)),
      members_(loop, options.members, log_, *this),
      trainers_(options.trainers),
      executor_(loop, *rule_, options.threads, options.inline_elements) {
  CAPSTAN_CHECK(options.trainers > 0 && options.index.value < options.servers,
                "an averaging job has trainers, and this server is one of its servers");
  tick();
}

AveragingServer::~AveragingServer() {
  if (timer_) loop_.cancel(*timer_);
  // Connections read and write memory of the other parts, so they end first.
  members_.close();
}

bool AveragingServer::any(State state) const {
  return std::ranges::any_of(trainers_, [&](const Trainer& t) { return t.state == state; });
}

bool AveragingServer::all(State state) const {
  return std::ranges::all_of(trainers_, [&](const Trainer& t) { return t.state == state; });
}

bool AveragingServer::is_finished() const {
  return all(State::kLeft);
}

void AveragingServer::reset_state() {
  CAPSTAN_CHECK(executor_.depth() == 0, "no bucket is in flight between two runs");
  for (auto& entry : entries_) entry->progress.reset();
  rule_->reset_state();
}

// ---- members ----

Result<std::uint32_t> AveragingServer::rank_for(const wire::Join& join) const {
  if (join.index) {
    if (*join.index < options_.trainers) return *join.index;
    return Status::refused(fmt::format("rank {} of {} trainers", *join.index, options_.trainers));
  }
  for (std::uint32_t rank = 0; rank < trainers_.size(); ++rank)
    if (trainers_[rank].state == State::kAbsent) return rank;
  return Status::refused(fmt::format("all {} trainers have joined", options_.trainers));
}

Result<std::uint32_t> AveragingServer::admit(const wire::Join& join) {
  if (!failure_.is_ok()) return Status::refused(failure_.message());
  if (join.role != wire::Role::kWorker || join.buckets.empty())
    return Status::refused("this server averages gradients: only trainers with buckets can join it");
  if (auto bad = check_shapes(join.buckets); !bad.is_ok()) return bad;
  const auto rank = rank_for(join);
  if (!rank) return rank;
  const auto& trainer = trainers_[*rank];
  const bool is_known = trainer.incarnation == join.incarnation;
  if (trainer.state == State::kJoined) {
    if (!is_known) return Status::refused(fmt::format("rank {} is taken", *rank));
    return rank;
  }
  if (is_known) return Status::refused("this trainer has left");
  if (all(State::kLeft)) begin_run();
  if (any(State::kLeft)) return Status::unavailable("the previous run has not ended yet");
  if (entries_.empty()) {
    if (auto bad = set_buckets(join.buckets); !bad.is_ok()) return bad;
  }
  if (const auto different = difference(shapes_, join.buckets); !different.empty())
    return Status::refused(different);
  return rank;
}

void AveragingServer::begin_run() {
  for (auto& trainer : trainers_) trainer = {State::kAbsent, trainer.incarnation, nullptr};
  reset_state();
  entries_.clear();
}

Status AveragingServer::set_buckets(const std::vector<Shape>& shapes) {
  std::vector<Range> parts;
  std::vector<Shape> held;
  for (const auto& shape : shapes) {
    parts.push_back(part_of(shape, options_.servers, options_.index.value));
    held.push_back(shape_of(shape, parts.back()));
  }
  const ArenaLayout layout(held);
  try {
    averages_ = transport::Segment::create(layout.bytes(), transport::Segment::PeerMay::kRead);
  } catch (const UserError& error) {
    return Status::refused(error.what());
  }
  shapes_ = shapes;
  parts_ = std::move(parts);
  const auto arena = averages_.floats();
  for (std::uint32_t b = 0; b < shapes.size(); ++b) {
    const Slot::Place place{b,
                            options_.trainers,
                            parts_[b],
                            held[b].elements,
                            held[b].columns,
                            layout.rows(arena, b),
                            layout.values(arena, b)};
    entries_.push_back(std::make_unique<Entry>(
        Entry{Slot(place, executor_.pool()), BucketProgress(b, options_.trainers), BucketTimes{}, nullptr}));
  }
  first_joined_ = loop_.now();
  return Status::ok();
}

void AveragingServer::on_join(server::Peer& peer, const wire::Join& join) {
  const auto rank = admit(join);
  if (!rank) {
    if (rank.status().code() == StatusCode::kUnavailable) return peer.channel().end(rank.status());
    return refuse(peer, rank.status());
  }
  auto& trainer = trainers_[*rank];
  if (trainer.state == State::kAbsent)
    trainer = {State::kJoined, join.incarnation, std::make_shared<TrainerMemory>(shapes_, parts_)};
  for (auto& entry : entries_) entry->progress.reconnected({*rank});
  const wire::Member member{wire::Role::kWorker, *rank};
  members_.bind(peer, member, join.incarnation);
  wire::Joined joined;
  joined.member = member;
  joined.server = options_.index;
  joined.servers = options_.servers;
  joined.workers = options_.trainers;
  joined.strategy = "average";
  if (peer.channel().shares_memory()) {
    peer.channel().send(joined, averages_);
  } else {
    peer.channel().send(joined);
  }
}

void AveragingServer::take_leave(server::Peer& peer) {
  const auto rank = peer.member()->index;
  members_.dismiss(peer);
  auto& trainer = trainers_[rank];
  members_.forget(rank, trainer.incarnation, false);
  trainer.state = State::kLeft;
  for (const auto& entry : entries_) {
    if (const auto batch = entry->progress.pending())
      return fail(Status::closed(fmt::format("trainer {} has left before batch {} of bucket {} was averaged",
                                             rank, *batch, entry->slot.bucket())));
  }
}

void AveragingServer::on_lost(const wire::Member& member, Incarnation, const Status& why) {
  fail(Status::closed(fmt::format("trainer {} is lost: {}", member.index, why.message())));
}

void AveragingServer::refuse(server::Peer& peer, const Status& why) {
  log_->warn(fmt::format("{}: {}", peer.channel().peer(), why.message()));
  peer.channel().refuse(why.message());
}

void AveragingServer::fail(Status why) {
  if (!failure_.is_ok()) return;
  failure_ = std::move(why);
  log_->error(failure_.message());
  for (std::uint32_t rank = 0; rank < trainers_.size(); ++rank) {
    if (auto* peer = members_.find({wire::Role::kWorker, rank})) peer->channel().refuse(failure_.message());
  }
  loop_.wake();
}

void AveragingServer::tick() {
  members_.tick();
  const bool is_late = !entries_.empty() && loop_.now() - first_joined_ > options_.join_timeout;
  if (is_late && any(State::kAbsent)) {
    const auto missing = std::ranges::find(trainers_, State::kAbsent, &Trainer::state) - trainers_.begin();
    fail(Status::timeout(
        fmt::format("trainer {} has not joined within {:g} s", missing, seconds(options_.join_timeout))));
  }
  timer_ = loop_.call_at(loop_.now() + server::MemberTable::kTick, [this] { tick(); });
}

// ---- buckets ----

Result<BucketProgress::Kind> AveragingServer::check(WorkerId worker, const wire::Bucket& bucket,
                                                    std::size_t bytes) {
  const auto& trainer = trainers_[worker.value];
  if (bucket.worker != worker || bucket.incarnation != trainer.incarnation)
    return Status::malformed("a bucket of another trainer");
  if (bucket.bucket >= entries_.size() || parts_[bucket.bucket].size() == 0)
    return Status::malformed(fmt::format("bucket {}, of which this server has no part", bucket.bucket));
  if (auto bad = trainer.memory->check(bucket, bytes); !bad.is_ok()) return bad;
  return entries_[bucket.bucket]->progress.classify(worker, bucket.batch);
}

transport::Placement AveragingServer::on_payload(server::Peer& peer, const wire::Message& message,
                                                 std::size_t bytes) {
  using transport::Placement;
  const auto* bucket = std::get_if<wire::Bucket>(&message);
  if (!bucket) return Placement::refuse();
  const WorkerId worker{peer.member()->index};
  const auto kind = check(worker, *bucket, bytes);
  if (!kind) {
    refuse(peer, kind.status());
    return Placement::refuse();
  }
  if (*kind != BucketProgress::Kind::kNew) return Placement::discard();
  try {
    return Placement::receive(trainers_[worker.value].memory->destination(*bucket));
  } catch (const std::bad_alloc&) {
    refuse(peer, Status::refused(fmt::format("not enough memory for a bucket of {} bytes", bytes)));
    return Placement::refuse();
  }
}

void AveragingServer::on_message(server::Peer& peer, cluster::Arrival arrival) {
  if (std::holds_alternative<wire::Leave>(arrival.message)) return take_leave(peer);
  if (const auto bad = take({peer.member()->index}, arrival); !bad.is_ok()) refuse(peer, bad);
}

Status AveragingServer::take(WorkerId worker, cluster::Arrival& arrival) {
  if (const auto* bucket = std::get_if<wire::Bucket>(&arrival.message))
    return take_bucket(worker, *bucket, arrival.payload_bytes);
  if (std::holds_alternative<wire::Share>(arrival.message) && arrival.segment)
    return trainers_[worker.value].memory->share(std::move(*arrival.segment));
  return Status::malformed(
      fmt::format("unexpected {} from trainer {}", wire::name_of(arrival.message), worker.value));
}

Status AveragingServer::take_bucket(WorkerId worker, const wire::Bucket& bucket, std::size_t bytes) {
  const auto kind = check(worker, bucket, bytes);
  if (!kind) return kind.status();
  auto& entry = *entries_[bucket.bucket];
  if (*kind == BucketProgress::Kind::kAveraged) send_average(worker, entry);
  if (*kind == BucketProgress::Kind::kRepeated) entry.progress.expect_answer(worker);
  if (*kind != BucketProgress::Kind::kNew) return Status::ok();
  const auto gradient = trainers_[worker.value].memory->gradient(bucket);
  if (!gradient) return gradient.status();
  if (any(State::kLeft)) {
    fail(Status::closed(fmt::format("trainer {} sent batch {} of bucket {} after another trainer has left",
                                    worker.value, bucket.batch, bucket.bucket)));
    return Status::ok();
  }
  const auto arrival = entry.progress.take(worker, bucket.batch);
  auto& times = entry.times;
  const auto now = loop_.now();
  if (arrival == 1) {
    times = {};
    times.batch = bucket.batch;
    times.bucket = bucket.bucket;
    times.first = now;
  }
  times.last = now;
  times.bytes_in += gradient->bytes();
  times.queue_depth = executor_.depth();
  const bool is_last = arrival == options_.trainers;
  executor_.run({&entry.slot, bucket.batch, worker.value, *gradient, arrival},
                [this, &entry, is_last](const Executor::Outcome& outcome) {
                  if (is_last || !outcome.error.empty()) averaged(entry, outcome);
                });
  return Status::ok();
}

void AveragingServer::averaged(Entry& entry, const Executor::Outcome& outcome) {
  if (!failure_.is_ok()) return;
  if (!outcome.error.empty()) {
    const auto code = outcome.is_users ? StatusCode::kRefused : StatusCode::kUnavailable;
    return fail({code, fmt::format("averaging bucket {} of batch {} has failed: {}", entry.slot.bucket(),
                                   entry.times.batch, outcome.error)});
  }
  entry.progress.set_averaged();
  entry.packed.reset();
  for (std::uint32_t rank = 0; rank < options_.trainers; ++rank)
    if (entry.progress.take_answer({rank})) send_average({rank}, entry);
  auto& times = entry.times;
  times.averaging = outcome.averaging;
  times.answered = loop_.now();
  times.bytes_out = entry.slot.result().bytes() * options_.trainers;
  if (observer_) observer_->on_bucket(times);
}

void AveragingServer::send_average(WorkerId worker, Entry& entry) {
  auto* peer = members_.find({wire::Role::kWorker, worker.value});
  if (!peer) return;  // it repeats the bucket when it has reconnected
  const auto result = entry.slot.result();
  const wire::Average average{entry.progress.averaged(), entry.slot.bucket(),
                              static_cast<std::uint32_t>(result.rows.size())};
  auto& channel = peer->channel();
  if (channel.shares_memory()) return channel.send(average);
  if (!entry.slot.is_sparse()) return channel.send(average, result.values, [](Status) {});
  if (!entry.packed) entry.packed = pack(result);
  channel.send(average, *entry.packed, [keep = entry.packed](Status) {});
}

}  // namespace capstan::averaging
