#include "capstan/client/links.h"

#include <algorithm>

#include <fmt/format.h>
#include <sys/random.h>

#include "capstan/base/check.h"

namespace capstan::client {
namespace {

constexpr auto kHeartbeatInterval = std::chrono::milliseconds(200);

Incarnation fresh_incarnation() {
  Incarnation incarnation;
  CAPSTAN_CHECK(::getrandom(&incarnation.value, sizeof incarnation.value, 0) == sizeof incarnation.value,
                "the kernel provides random bytes");
  return incarnation;
}

}  // namespace

Links::Links(Driver& driver, LinkOptions options, Connector connector, Events& events)
    : driver_(driver), options_(std::move(options)), connector_(std::move(connector)), events_(events) {
  join_.incarnation = fresh_incarnation();
}

Links::~Links() {
  driver_.with_lock([this] { close(); });
}

void Links::close() {
  if (timer_) driver_.loop().cancel(*timer_);
  timer_.reset();
  links_.clear();
}

Status Links::join(wire::Join as) {
  const auto deadline = driver_.loop().now() + options_.connect_timeout;
  as.role = options_.role;
  as.index = options_.index;
  as.incarnation = join_.incarnation;
  as.job = options_.job;
  join_ = std::move(as);
  for (std::size_t i = 0; i < options_.servers.size(); ++i) {
    if (auto bad = join_one(i, deadline); !bad.is_ok()) return bad;
    if (i > 0) continue;
    if (options_.leader_only) return Status::ok();
    const auto servers = driver_.with_lock([this] {
      join_.index = joined(0).member.index;
      // From now on the leader expects heartbeats, even while the other servers are being joined.
      pauses_.emplace(kHeartbeatInterval, driver_.loop().now());
      beat();
      return joined(0).servers;
    });
    if (servers != options_.servers.size()) {
      return Status::refused(fmt::format("{}: this job has {} servers, but {} were given",
                                         options_.servers[0], servers, options_.servers.size()));
    }
  }
  return driver_.with_lock([this] { return check_servers(); });
}

// Every address must be another server of this job.
Status Links::check_servers() const {
  std::vector<bool> seen(links_.size());
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const auto server = joined(i).server.value;
    if (server >= seen.size() || seen[server])
      return Status::refused(
          fmt::format("{}: this server is not of the same job, or is listed twice", options_.servers[i]));
    seen[server] = true;
  }
  return Status::ok();
}

Status Links::join_one(std::size_t server, TimePoint deadline) {
  driver_.with_lock([&] {
    cluster::Link::Events& events = *this;
    links_.push_back(std::make_unique<cluster::Link>(
        driver_.loop(),
        cluster::Link::Options{
            .token = options_.token, .silence = options_.silence, .reconnect = options_.reconnect},
        [this, server] { return connector_(driver_.loop(), options_.servers[server]); }, events));
    links_[server]->open(deadline);
  });
  const auto& link = *links_[server];
  const bool settled = driver_.run_until([&] { return link.is_joined() || !failure_.is_ok(); },
                                         deadline + std::chrono::seconds(1));
  return driver_.with_lock([&] {
    if (!failure_.is_ok()) return failure_;
    return settled ? Status::ok()
                   : Status::timeout("no answer from the server at " + options_.servers[server]);
  });
}

std::size_t Links::index_of(const cluster::Link& link) const {
  return static_cast<std::size_t>(
      std::ranges::find(links_, &link, [](const auto& owned) { return owned.get(); }) - links_.begin());
}

transport::Placement Links::on_payload(cluster::Link& link, const wire::Message& message, std::size_t bytes) {
  return events_.on_payload(index_of(link), message, bytes);
}

void Links::on_message(cluster::Link& link, const wire::Message& message) {
  events_.on_message(index_of(link), message);
}

void Links::on_joined(cluster::Link& link, std::optional<transport::Segment> segment, bool again) {
  events_.on_joined(index_of(link), std::move(segment), again);
}

void Links::on_lost(cluster::Link& link, Status why) {
  if (!failure_.is_ok()) return;
  const auto& address = options_.servers[index_of(link)];
  const auto* what = why.code() == StatusCode::kRefused ? "refused by the server at "
                     : link.was_joined()                ? "lost the server at "
                                                        : "cannot reach the server at ";
  failure_ = why.within(what + address);
}

void Links::beat() {
  const auto now = driver_.loop().now();
  const auto running_since = pauses_->running_since(now);
  for (const auto& link : links_) link->beat(running_since);
  timer_ = driver_.loop().call_at(now + kHeartbeatInterval, [this] { beat(); });
}

void Links::lose(std::size_t server, const Status& why) {
  links_[server]->close();
  on_lost(*links_[server], why);
}

void Links::send(std::size_t server, const wire::Message& message) {
  links_[server]->send(message);
}

void Links::send(std::size_t server, const wire::Message& message, std::span<const float> payload,
                 std::shared_ptr<const void> keep) {
  links_[server]->send(message, payload, [keep = std::move(keep)](Status) {});
}

void Links::send(std::size_t server, const wire::Message& message, const transport::Segment& segment) {
  links_[server]->send(message, segment);
}

}  // namespace capstan::client
