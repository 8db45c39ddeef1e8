#include "capstan/client/links.h"

#include <algorithm>

#include <fmt/format.h>
#include <sys/random.h>

#include "capstan/base/check.h"

namespace capstan::client {
namespace {

constexpr auto kBeat = std::chrono::milliseconds(200);
constexpr auto kRetry = std::chrono::milliseconds(20);
// For the first attempt, from connecting to Joined; the next has twice as long. Whoever comes back has less
// than a second for all of them.
constexpr Duration kJoinPatience = std::chrono::seconds(2), kReturnPatience = std::chrono::milliseconds(200);

Incarnation fresh_incarnation() {
  Incarnation incarnation;
  CAPSTAN_CHECK(::getrandom(&incarnation.value, sizeof incarnation.value, 0) == sizeof incarnation.value,
                "the kernel gives random bytes");
  return incarnation;
}

}  // namespace

// One connection, from the first byte to Joined, then a pipe for messages.
class Links::Link final : public transport::Handler {
 public:
  Link(Links& links, std::size_t server) : links_(links), server_(server), handshake_(links.options_.token) {}

  void adopt(std::unique_ptr<transport::Connection> connection) {
    connection_ = std::move(connection);
    kind_ = connection_->kind();
    handshake_ = cluster::ClientHandshake(links_.options_.token);
    writer_ = {};
    reader_ = {};
    trusted_ = false;
    last_heard_ = SteadyClock::now();
    connection_->set_handler(this);
  }
  void leave_service() { is_joined_ = false; }

  std::size_t server() const { return server_; }
  bool is_joined() const { return is_joined_; }
  bool was_joined() const { return was_joined_; }
  const wire::Joined& joined() const { return joined_; }
  const std::string& kind() const { return kind_; }
  transport::Connection* connection() const { return connection_.get(); }
  wire::Bytes frame(const wire::Message& message) { return writer_.write(message); }
  TimePoint last_heard() const {
    return connection_ ? std::max(last_heard_, connection_->last_arrival()) : last_heard_;
  }
  Duration silence_limit() const {
    const auto silence = links_.options_.silence;
    return connection_ && connection_->is_mid_payload()
               ? std::max<Duration>(silence, transport::kPayloadPatience)
               : silence;
  }
  void heard(TimePoint when) { last_heard_ = when; }
  void drop() { connection_.reset(); }

  // Ends this connection; another attempt may follow.
  void end(Status why) {
    connection_->close();
    links_.broken(*this, std::move(why));
  }

  TimePoint retry_until;              // while broken: when to give up
  Duration patience = kJoinPatience;  // for the next attempt
  std::uint64_t attempt = 0;
  bool is_dismissed = false;

 private:
  transport::Placement place(transport::Connection&, transport::Bytes frame, std::size_t bytes) override {
    const auto message = reader_.peek(frame);
    if (!trusted_ || !message) return transport::Placement::refuse();
    // Before Joined: that got lost, and on_frame() will notice.
    return is_joined_ && *message ? links_.events_.on_payload(server_, **message, bytes)
                                  : transport::Placement::discard();
  }

  void on_frame(transport::Connection&, transport::Incoming incoming) override {
    const auto read = reader_.read(incoming.frame);
    if (!read) return end(read.status());
    if (!*read) return;
    const auto& message = **read;
    if (const auto* refused = std::get_if<wire::Refused>(&message))
      return end(Status::refused(refused->reason));
    if (is_joined_) {
      if (!std::holds_alternative<wire::Heartbeat>(message)) links_.events_.on_message(server_, message);
      return;
    }
    if (const auto* challenge = std::get_if<wire::Challenge>(&message)) {
      const auto hello = handshake_.answer(*challenge);
      return hello ? connection_->send(writer_.write(*hello)) : end(hello.status());
    }
    if (const auto* trusted = std::get_if<wire::Trusted>(&message)) {
      if (auto bad = handshake_.check(*trusted); !bad.is_ok()) return end(bad);
      trusted_ = true;
      return connection_->send(
          writer_.write(wire::Join{links_.options_.role, links_.index_, links_.incarnation_, links_.layout_,
                                   links_.buffers_, links_.data_}));
    }
    const auto* joined = std::get_if<wire::Joined>(&message);
    if (!joined || !trusted_)
      return end(Status::malformed(fmt::format("a {} out of turn", wire::name_of(message))));
    is_joined_ = true;
    joined_ = *joined;
    links_.events_.on_joined(server_, std::move(incoming.segment), std::exchange(was_joined_, true));
  }

  void on_closed(transport::Connection&, Status why) override { links_.broken(*this, std::move(why)); }

  Links& links_;
  const std::size_t server_;
  std::unique_ptr<transport::Connection> connection_;
  cluster::ClientHandshake handshake_;
  wire::FrameWriter writer_;
  wire::FrameReader reader_;
  bool trusted_ = false;
  bool is_joined_ = false;
  bool was_joined_ = false;
  std::string kind_;
  wire::Joined joined_;
  TimePoint last_heard_;
};

Links::Links(Driver& driver, LinkOptions options, Connector connector, Events& events)
    : driver_(driver),
      options_(std::move(options)),
      connector_(std::move(connector)),
      events_(events),
      incarnation_(fresh_incarnation()),
      index_(options_.index) {}

Links::~Links() {
  driver_.with_lock([this] { close(); });
}

void Links::dismissed(std::size_t server) {
  links_[server]->is_dismissed = true;
}

void Links::close() {
  ending_ = true;
  if (timer_) driver_.loop().cancel(*timer_);
  timer_.reset();
  links_.clear();
}

const wire::Joined& Links::joined(std::size_t server) const {
  return links_[server]->joined();
}

bool Links::is_joined(std::size_t server) const {
  return links_[server]->is_joined();
}

bool Links::shares_memory(std::size_t server) const {
  return is_joined(server) && links_[server]->connection()->shares_memory();
}

const std::string& Links::transport(std::size_t server) const {
  return links_[server]->kind();
}

Status Links::join(const std::vector<wire::Tensor>& layout, const std::vector<wire::Tensor>& buffers,
                   const wire::DataSource& data) {
  const auto deadline = SteadyClock::now() + options_.connect_timeout;
  layout_ = layout;
  buffers_ = buffers;
  data_ = data;
  for (std::size_t i = 0; i < options_.servers.size(); ++i) {
    if (auto bad = join_one(i, deadline); !bad.is_ok()) return bad;
    if (i > 0) continue;
    const auto servers = driver_.with_lock([this] {
      index_ = joined(0).member.index;
      // From now on the leader expects signs of life, however long the other servers take.
      last_beat_ = SteadyClock::now();
      beat();
      return joined(0).servers;
    });
    if (servers != options_.servers.size()) {
      return Status::refused(fmt::format("{}: this job has {} servers, but {} were named",
                                         options_.servers[0], servers, options_.servers.size()));
    }
  }
  return Status::ok();
}

// A server may still be starting: tries until it answers, refuses, or the deadline passes.
Status Links::join_one(std::size_t server, TimePoint deadline) {
  driver_.with_lock([&] {
    links_.push_back(std::make_unique<Link>(*this, server));
    links_[server]->retry_until = deadline;
    start(*links_[server]);
  });
  auto& link = *links_[server];
  const bool settled = driver_.run_until([&] { return link.is_joined() || !failure_.is_ok(); },
                                         deadline + std::chrono::seconds(1));
  return driver_.with_lock([&] {
    if (!failure_.is_ok()) return failure_;
    return settled ? Status::ok()
                   : Status::timeout("no answer from the server at " + options_.servers[server]);
  });
}

void Links::start(Link& link) {
  auto connection = connector_(driver_.loop(), options_.servers[link.server()]);
  if (!connection) return broken(link, connection.status());
  link.adopt(std::move(*connection));
  // Whoever comes back later than the server waits for him is lost anyway.
  const auto give_up = SteadyClock::now() + link.patience;
  driver_.loop().call_at(std::min(give_up, link.retry_until), [this, &link, attempt = link.attempt] {
    if (ending_ || attempt != link.attempt || link.is_joined()) return;
    link.patience *= 2;
    link.end(Status::timeout("no answer"));
  });
}

void Links::broken(Link& link, Status why) {
  if (ending_ || link.is_dismissed || !failure_.is_ok()) return;
  const auto now = SteadyClock::now();
  const bool in_service = link.is_joined();
  const bool same_host = link.connection() && link.connection()->shares_memory();
  if (in_service) {
    link.retry_until = now + options_.reconnect;
    link.patience = kReturnPatience;
  }
  link.leave_service();
  const bool hopeless = why.code() == StatusCode::kRefused || why.code() == StatusCode::kMalformed;
  // On one host a connection ends only with its process.
  if (hopeless || (in_service && same_host) || now >= link.retry_until) {
    const auto& address = options_.servers[link.server()];
    if (why.code() == StatusCode::kRefused) return fail(why.within("refused by the server at " + address));
    return fail(
        why.within((link.was_joined() ? "lost the server at " : "cannot reach the server at ") + address));
  }
  driver_.loop().call_at(now + kRetry, [this, &link, attempt = ++link.attempt] {
    if (ending_ || !failure_.is_ok() || attempt != link.attempt) return;
    link.drop();
    start(link);
  });
}

void Links::fail(Status why) {
  if (failure_.is_ok()) failure_ = std::move(why);
}

void Links::beat() {
  const auto now = SteadyClock::now();
  const bool awake = now - last_beat_ < 3 * kBeat;  // after a pause of our own nobody could be heard
  for (auto& link : links_) {
    if (!link->was_joined()) continue;
    if (!awake) {
      link->heard(now);
    } else if (now - link->last_heard() > link->silence_limit()) {
      fail(Status::timeout(fmt::format("lost the server at {}: no sign of life for {:.1f} s",
                                       options_.servers[link->server()], seconds(now - link->last_heard()))));
    }
    send(link->server(), wire::Heartbeat{});
  }
  last_beat_ = now;
  timer_ = driver_.loop().call_at(now + kBeat, [this] { beat(); });
}

void Links::send(std::size_t server, const wire::Message& message) {
  if (!is_joined(server)) return;
  auto& link = *links_[server];
  link.connection()->send(link.frame(message));
}

void Links::send(std::size_t server, const wire::Message& message, std::span<const float> payload,
                 std::shared_ptr<const void> keep) {
  if (!is_joined(server)) return;
  auto& link = *links_[server];
  link.connection()->send(link.frame(message), std::as_bytes(payload), [keep = std::move(keep)](Status) {});
}

void Links::send(std::size_t server, const wire::Message& message, const transport::Segment& segment) {
  if (!is_joined(server)) return;
  auto& link = *links_[server];
  link.connection()->send(link.frame(message), segment);
}

}  // namespace capstan::client
