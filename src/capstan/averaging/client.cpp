#include "capstan/averaging/client.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "capstan/base/check.h"

namespace capstan::averaging {
namespace {

constexpr auto kLeaveTimeout = std::chrono::seconds(1);

}  // namespace

Result<std::unique_ptr<AveragingClient>> AveragingClient::join(const ClientOptions& options,
                                                               client::Connector connector) {
  if (auto bad = check_shapes(options.buckets); !bad.is_ok()) return bad;
  std::unique_ptr<AveragingClient> client(new AveragingClient(options, std::move(connector)));
  wire::Join as;
  as.buckets = options.buckets;
  auto bad = client->links_.join(std::move(as));
  if (bad.is_ok()) bad = client->driver_.with_lock([&] { return client->prepare(); });
  if (!bad.is_ok()) return bad;
  return client;
}

AveragingClient::AveragingClient(const ClientOptions& options, client::Connector connector)
    : options_(options),
      layout_(options.buckets),
      gradients_(transport::Segment::create(layout_.bytes(), transport::Segment::PeerMay::kRead)),
      segments_(options.links.servers.size()),
      flights_(options.buckets.size()),
      links_(driver_, options.links, std::move(connector), *this) {}

AveragingClient::~AveragingClient() {
  driver_.end_keeper();
}

// All servers have accepted this trainer: maps their memory and shares its own.
Status AveragingClient::prepare() {
  joined_ = links_.joined(0);
  transport_ = links_.transport(0);
  if (joined_.member.role != wire::Role::kWorker || joined_.member.index >= joined_.workers)
    return Status::malformed(
        fmt::format("the server assigned rank {} of {} trainers", joined_.member.index, joined_.workers));
  averages_ = std::make_unique<AverageArena>(options_.buckets, servers());
  for (std::size_t link = 0; link < links_.size(); ++link) {
    if (auto& segment = segments_[link]) {
      if (auto bad = averages_->map(server_of(link), std::move(*segment)); !bad.is_ok()) return bad;
      segment.reset();
    }
    if (links_.shares_memory(link)) links_.send(link, wire::Share{wire::Arena::kGradients}, gradients_);
  }
  return Status::ok();
}

void AveragingClient::on_joined(std::size_t link, std::optional<transport::Segment> averages, bool again) {
  if (!again) {
    segments_[link] = std::move(averages);
    return;
  }
  // Reconnected: repeats what was in flight; the server recognizes what it has received before.
  if (!averages_) return;
  if (links_.shares_memory(link)) links_.send(link, wire::Share{wire::Arena::kGradients}, gradients_);
  for (std::size_t b = 0; b < flights_.size(); ++b)
    if (flights_[b].is_waiting && flights_[b].unanswered[link]) send_bucket(link, b);
  if (!leave_confirmed_.empty()) links_.send(link, wire::Leave{});
}

// ---- sending ----

std::uint64_t AveragingClient::next_batch() {
  driver_.with_lock([&] {
    const bool is_complete = std::ranges::none_of(flights_, &Flight::is_waiting) || !failure().is_ok();
    CAPSTAN_CHECK(is_complete, "a batch begins when all averages of the one before have arrived");
  });
  return batches_++;
}

wire::Bucket AveragingClient::message_for(std::size_t bucket, std::size_t rows, std::size_t link) const {
  wire::Bucket message{rank(), links_.incarnation(), batches_ - 1, static_cast<std::uint32_t>(bucket), 0, 0};
  if (!options_.buckets[bucket].is_sparse()) return message;
  const auto sent = this->rows(bucket).first(rows);
  const auto part = averages_->part(bucket, server_of(link));
  const auto place = [&](std::uint64_t row) {
    return static_cast<std::uint32_t>(std::ranges::lower_bound(sent, row) - sent.begin());
  };
  message.first = place(part.begin);
  message.rows = place(part.end) - message.first;
  return message;
}

void AveragingClient::send(std::size_t bucket, std::size_t rows) {
  CAPSTAN_CHECK(batches_ > 0 && bucket < flights_.size(), "a bucket is sent in a batch that has begun");
  const auto& shape = options_.buckets[bucket];
  CAPSTAN_CHECK(rows <= shape.rows() && are_rows_of(this->rows(bucket).first(rows), {0, shape.rows()}),
                "the rows of a bucket increase strictly");
  if (options_.on_sent)
    options_.on_sent(batches_ - 1, static_cast<std::uint32_t>(bucket), SteadyClock::now());
  driver_.with_lock([&] {
    auto& flight = flights_[bucket];
    CAPSTAN_CHECK(!flight.is_waiting || !failure().is_ok(), "a bucket is sent once per batch");
    flight = {batches_ - 1, true, false, {}, {}};
    for (std::size_t link = 0; link < links_.size(); ++link) {
      flight.messages.push_back(message_for(bucket, rows, link));
      flight.unanswered.push_back(averages_->part(bucket, server_of(link)).size() > 0);
    }
    for (std::size_t link = 0; link < links_.size(); ++link)
      if (flight.unanswered[link]) send_bucket(link, bucket);
  });
}

void AveragingClient::send_bucket(std::size_t link, std::size_t bucket) {
  const auto& message = flights_[bucket].messages[link];
  if (links_.shares_memory(link)) return links_.send(link, message);
  const auto& shape = options_.buckets[bucket];
  const auto values = this->bucket(bucket);
  if (!shape.is_sparse()) {
    const auto part = averages_->part(bucket, server_of(link));
    return links_.send(link, message, values.subspan(part.begin, part.size()));
  }
  // Numbers and values are one payload.
  const auto numbers = rows(bucket).subspan(message.first, message.rows);
  const auto part = values.subspan(message.first * shape.columns, message.rows * shape.columns);
  const auto packed = std::make_shared<std::vector<float>>(numbers.size() + part.size());
  if (!packed->empty()) {
    std::memcpy(packed->data(), numbers.data(), numbers.size_bytes());
    std::memcpy(packed->data() + numbers.size(), part.data(), part.size_bytes());
  }
  links_.send(link, message, *packed, packed);
}

// ---- receiving ----

bool AveragingClient::expects(std::size_t link, const wire::Average& average) const {
  if (!averages_ || average.bucket >= flights_.size()) return false;
  const auto& flight = flights_[average.bucket];
  return flight.is_waiting && flight.batch == average.batch && flight.unanswered[link];
}

transport::Placement AveragingClient::on_payload(std::size_t link, const wire::Message& message,
                                                 std::size_t bytes) {
  using transport::Placement;
  const auto* average = std::get_if<wire::Average>(&message);
  if (!average) return Placement::refuse();
  if (!expects(link, *average)) return Placement::discard();
  const auto server = server_of(link);
  const auto part = averages_->part(average->bucket, server);
  if (average->rows > part.size() ||
      bytes != averages_->payload_bytes(average->bucket, server, average->rows))
    return Placement::refuse();
  return Placement::receive(averages_->receive(average->bucket, server, average->rows));
}

void AveragingClient::on_message(std::size_t link, const wire::Message& message) {
  if (std::holds_alternative<wire::Leave>(message) && !leave_confirmed_.empty()) {
    leave_confirmed_[link] = true;
    links_.expect_end(link);
  }
  const auto* average = std::get_if<wire::Average>(&message);
  if (average && expects(link, *average)) take(link, *average);
}

void AveragingClient::take(std::size_t link, const wire::Average& average) {
  const auto now = SteadyClock::now();
  const auto server = server_of(link);
  auto bad = average.rows > averages_->part(average.bucket, server).size()
                 ? Status::malformed("an average with too many rows")
                 : averages_->set_part(average.bucket, server, average.rows);
  if (!bad.is_ok()) {
    failure_ = bad.within("the server at " + options_.links.servers[link]);
    return;
  }
  auto& flight = flights_[average.bucket];
  flight.unanswered[link] = false;
  flight.is_waiting = std::ranges::find(flight.unanswered, true) != flight.unanswered.end();
  if (!flight.is_waiting && options_.on_average) options_.on_average(average.batch, average.bucket, now);
}

Result<Gradient> AveragingClient::wait(std::size_t bucket) {
  auto& flight = flights_[bucket];
  // If a server stops sending heartbeats, the wait ends with a failure.
  driver_.run_until([&] { return !flight.is_waiting || !failure().is_ok(); }, TimePoint::max());
  const auto failed = driver_.with_lock([&] { return flight.is_waiting ? failure() : Status::ok(); });
  if (!failed.is_ok()) return failed;
  if (!std::exchange(flight.is_united, true)) averages_->unite(bucket);
  return averages_->average(bucket);
}

Status AveragingClient::wait_all() {
  for (std::size_t b = 0; b < flights_.size(); ++b) {
    const auto average = wait(b);
    if (!average) return average.status();
  }
  return Status::ok();
}

void AveragingClient::leave() {
  driver_.with_lock([&] {
    leave_confirmed_.assign(links_.size(), false);
    for (std::size_t link = 0; link < links_.size(); ++link) links_.send(link, wire::Leave{});
  });
  const auto confirmed = [&] { return std::ranges::find(leave_confirmed_, false) == leave_confirmed_.end(); };
  driver_.run_until([&] { return confirmed() || !failure().is_ok(); }, SteadyClock::now() + kLeaveTimeout);
  driver_.with_lock([&] { links_.close(); });
}

}  // namespace capstan::averaging
