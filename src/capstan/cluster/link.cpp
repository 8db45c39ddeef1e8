#include "capstan/cluster/link.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace capstan::cluster {
namespace {

// Users of a link place payloads by these fields. An observer may join before the ranges are known.
bool is_same_place(const wire::Joined& a, const wire::Joined& b) {
  const bool is_worker = a.member.role == wire::Role::kWorker;
  return a.member == b.member && a.server == b.server && a.servers == b.servers && a.workers == b.workers &&
         (!is_worker || (a.begin == b.begin && a.end == b.end));
}

}  // namespace

Link::Link(transport::EventLoop& loop, Options options, Connect connect, Events& events)
    : loop_(loop),
      options_(std::move(options)),
      connect_(std::move(connect)),
      events_(events),
      attempt_timeout_(options_.attempt_timeout) {}

Link::~Link() {
  close();
}

void Link::open(TimePoint give_up) {
  give_up_ = give_up;
  connect();
}

void Link::close() {
  state_ = State::kEnded;
  cancel_timer();
  if (channel_) channel_->close();
}

void Link::connect() {
  state_ = State::kConnecting;
  auto connection = connect_();
  if (!connection) return broken(connection.status());
  kind_ = (*connection)->kind();
  Channel::Events& events = *this;
  channel_ =
      std::make_unique<Channel>(Channel::Side::kConnecting, std::move(*connection), options_.token, events);
  set_timer(std::min(loop_.now() + attempt_timeout_, give_up_), [this] {
    attempt_timeout_ *= 2;
    channel_->end(Status::timeout("no answer"));
  });
}

void Link::on_trusted(Channel& channel) {
  channel.send(events_.make_join());
}

transport::Placement Link::on_payload(Channel&, const wire::Message& message, std::size_t bytes) {
  // A payload before Joined means that Joined is missing; the frame's sequence number will show it.
  return is_joined() ? events_.on_payload(*this, message, bytes) : transport::Placement::discard();
}

void Link::on_message(Channel& channel, Arrival arrival) {
  if (is_joined()) return events_.on_message(*this, arrival.message);
  auto* joined = std::get_if<wire::Joined>(&arrival.message);
  if (!joined)
    return channel.end(
        Status::malformed(fmt::format("received {} instead of Joined", wire::name_of(arrival.message))));
  if (was_joined_ && !is_same_place(joined_, *joined))
    return channel.end(Status::malformed("the server came back with another part of the job"));
  cancel_timer();
  state_ = State::kJoined;
  joined_ = std::move(*joined);
  events_.on_joined(*this, std::move(arrival.segment), std::exchange(was_joined_, true));
}

void Link::on_end(Channel&, Status why) {
  broken(std::move(why));
}

void Link::broken(Status why) {
  if (state_ == State::kEnded) return;
  cancel_timer();
  const bool in_service = is_joined();
  const auto now = loop_.now();
  if (in_service) {
    give_up_ = now + options_.reconnect;
    attempt_timeout_ = options_.reconnect_attempt_timeout;
  }
  const bool is_final = why.code() == StatusCode::kRefused || why.code() == StatusCode::kMalformed;
  // On one host a connection ends only with its process.
  const bool process_ended = in_service && channel_->shares_memory();
  if (expects_end_) return close();
  if (is_final || process_ended || now >= give_up_) return lose(std::move(why));
  state_ = State::kWaiting;
  set_timer(now + options_.retry, [this] {
    channel_.reset();
    connect();
  });
}

void Link::lose(Status why) {
  close();
  events_.on_lost(*this, std::move(why));
}

void Link::beat(TimePoint running_since) {
  if (!is_joined()) return;
  const auto now = loop_.now();
  if (channel_->is_silent(now, options_.silence, running_since))
    return lose(
        Status::timeout(fmt::format("no heartbeat for {:.1f} s", seconds(now - channel_->last_heard()))));
  channel_->send(wire::Heartbeat{});
}

void Link::send(const wire::Message& message) {
  if (is_joined()) channel_->send(message);
}

void Link::send(const wire::Message& message, std::span<const float> payload, transport::Sent sent) {
  if (is_joined()) channel_->send(message, payload, std::move(sent));
}

void Link::send(const wire::Message& message, const transport::Segment& segment) {
  if (is_joined()) channel_->send(message, segment);
}

void Link::set_timer(TimePoint when, std::function<void()> callback) {
  cancel_timer();
  timer_ = loop_.call_at(when, [this, callback = std::move(callback)] {
    timer_.reset();
    callback();
  });
}

void Link::cancel_timer() {
  if (timer_) loop_.cancel(*timer_);
  timer_.reset();
}

}  // namespace capstan::cluster
