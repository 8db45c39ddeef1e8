#include "capstan/client/observer.h"

#include "capstan/base/check.h"
#include "capstan/placement/shards.h"

namespace capstan::client {

Result<std::unique_ptr<Observer>> Observer::join(const LinkOptions& options, Connector connector) {
  auto as_observer = options;
  as_observer.role = wire::Role::kObserver;
  std::unique_ptr<Observer> observer(new Observer(as_observer, std::move(connector)));
  if (auto bad = observer->links_.join({}); !bad.is_ok()) return bad;
  if (auto bad = observer->driver_.with_lock([&] { return observer->prepare(); }); !bad.is_ok()) return bad;
  return observer;
}

Status Observer::prepare() {
  transport_ = links_.transport(0);
  const auto& tensors = links_.joined(0).layout;
  if (tensors.empty()) return Status::ok();
  auto layout = wire::from_wire(tensors);
  if (layout) layout_ = std::move(*layout);
  return layout.status();
}

Result<std::string> Observer::fetch_job(LinkOptions options, Connector connector) {
  options.leader_only = true;
  const auto observer = join(options, std::move(connector));
  if (!observer) return observer.status();
  return (*observer)->driver_.with_lock([&] { return (*observer)->links_.joined(0).job; });
}

Observer::Observer(const LinkOptions& options, Connector connector)
    : links_(driver_, options, std::move(connector), *this) {}

Observer::~Observer() {
  driver_.end_keeper();
}

Result<wire::StatusReport> Observer::status(std::size_t server) {
  driver_.with_lock([&] {
    report_.reset();
    asked_for_status_ = server;
    links_.send(server, wire::StatusRequest{});
  });
  // Ends with an answer or, if heartbeats stop, with a failure.
  driver_.run_until([&] { return report_ || !links_.failure().is_ok(); }, TimePoint::max());
  return driver_.with_lock([&]() -> Result<wire::StatusReport> {
    if (!report_) return links_.failure();
    return *report_;
  });
}

void Observer::request_weights(const FlatLayout& layout, Version at_least, const FlatLayout& buffers) {
  driver_.with_lock([&] {
    CAPSTAN_CHECK(!request_, "one request for weights at a time");
    request_ = Request{};
    request_->at_least = at_least;
    request_->snapshot.weights.resize(layout.size());
    request_->buffers = buffers.size();
    request_->shards = placement::split(layout.size(), servers());
    ask_for_weights();
  });
}

void Observer::ask_for_weights() {
  request_->number = ++requests_;
  request_->answered.assign(links_.size(), false);
  request_->has_buffers = request_->buffers == 0;
  request_->snapshot.buffers.clear();
  links_.send(0, wire::Pull{request_->number, request_->at_least});
}

// Reconnected: repeats unanswered requests. All servers must answer with one version, so weights are
// requested from all of them.
void Observer::on_joined(std::size_t server, std::optional<transport::Segment>, bool again) {
  if (!again) return;
  if (server == 0 && stop_) links_.send(0, *stop_);
  if (asked_for_status_ == server) links_.send(server, wire::StatusRequest{});
  if (request_ && !request_->is_complete()) ask_for_weights();
}

std::optional<Observer::Snapshot> Observer::take_weights() {
  return driver_.with_lock([&]() -> std::optional<Snapshot> {
    if (!request_ || !request_->is_complete()) return {};
    auto snapshot = std::move(request_->snapshot);
    request_.reset();
    return snapshot;
  });
}

Result<Observer::Snapshot> Observer::pull(const FlatLayout& layout, Version at_least,
                                          const FlatLayout& buffers) {
  const auto arrived = [&] { return !request_ || request_->is_complete() || !links_.failure().is_ok(); };
  driver_.run_until(arrived, TimePoint::max());  // an earlier request comes first
  (void)take_weights();
  if (driver_.with_lock([&] { return links_.failure().is_ok(); })) {
    request_weights(layout, at_least, buffers);
    driver_.run_until(arrived, TimePoint::max());
  }
  if (auto snapshot = take_weights()) return std::move(*snapshot);
  return driver_.with_lock([&] { return links_.failure(); });
}

void Observer::stop(const std::string& reason) {
  driver_.with_lock([&] {
    stop_ = wire::StopRequest{reason};
    links_.send(0, *stop_);
  });
}

void Observer::worker_died(WorkerId worker) {
  driver_.with_lock([&] { links_.send(0, wire::Gone{{wire::Role::kWorker, worker.value}, {}, true}); });
}

Status Observer::poll(TimePoint deadline) {
  driver_.run_until([&] { return !links_.failure().is_ok(); }, deadline);
  return driver_.with_lock([&] { return links_.failure(); });
}

transport::Placement Observer::on_payload(std::size_t server, const wire::Message& message,
                                          std::size_t bytes) {
  if (const auto* buffers = std::get_if<wire::Buffers>(&message)) {
    if (!request_ || request_->has_buffers || buffers->request != request_->number ||
        bytes != request_->buffers * sizeof(float))
      return transport::Placement::discard();
    request_->snapshot.buffers.resize(request_->buffers);
    return transport::Placement::receive(std::as_writable_bytes(std::span(request_->snapshot.buffers)));
  }
  const auto* weights = std::get_if<wire::Weights>(&message);
  if (!weights) return transport::Placement::refuse();
  if (!request_ || weights->request != request_->number || request_->answered[server])
    return transport::Placement::discard();
  const auto shard = request_->shards[links_.joined(server).server.value];
  if (bytes != shard.size() * sizeof(float)) return transport::Placement::refuse();
  return transport::Placement::receive(
      std::as_writable_bytes(std::span(request_->snapshot.weights).subspan(shard.begin, shard.size())));
}

void Observer::on_message(std::size_t server, const wire::Message& message) {
  if (const auto* report = std::get_if<wire::StatusReport>(&message); report && asked_for_status_ == server) {
    report_ = *report;
    asked_for_status_.reset();
  }
  const auto* buffers = std::get_if<wire::Buffers>(&message);
  if (buffers && request_ && buffers->request == request_->number) request_->has_buffers = true;
  const auto* weights = std::get_if<wire::Weights>(&message);
  if (!weights || !request_ || weights->request != request_->number) return;
  request_->snapshot.version = weights->version;
  request_->answered[server] = true;
}

}  // namespace capstan::client
