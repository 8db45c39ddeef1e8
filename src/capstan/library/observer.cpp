#include "capstan/observer.h"

#include <utility>

#include "capstan/client/observer.h"
#include "capstan/library/links.h"

namespace capstan {
namespace {

WorkerState state(wire::WorkerState state) {
  switch (state) {
    case wire::WorkerState::kLive:
      return WorkerState::kLive;
    case wire::WorkerState::kLeft:
      return WorkerState::kLeft;
    case wire::WorkerState::kLost:
      return WorkerState::kLost;
    default:
      return WorkerState::kAbsent;
  }
}

WorkerStatus worker_status(const wire::WorkerRow& row) {
  return {.state = state(row.state),
          .steps = row.steps.value,
          .pushes = row.pushes,
          .samples = row.samples,
          .loss = row.loss,
          .compute_seconds = row.compute_seconds,
          .wait_seconds = row.wait_seconds,
          .data_seconds = row.data_seconds,
          .staleness_mean = row.staleness_mean,
          .staleness_max = row.staleness_max};
}

JobStatus job_status(const wire::StatusReport& report) {
  JobStatus status{.started = report.started,
                   .finished = report.finished,
                   .version = report.version.value,
                   .seconds = report.seconds,
                   .bytes_pushed = report.bytes_pushed,
                   .bytes_pulled = report.bytes_pulled,
                   .dropped_pushes = report.dropped_pushes,
                   .staleness_mean = report.staleness_mean,
                   .staleness_max = report.staleness_max,
                   .loss = report.loss,
                   .samples = report.samples,
                   .workers = {}};
  for (const auto& row : report.workers) status.workers.push_back(worker_status(row));
  return status;
}

}  // namespace

// Thread rule: that of Observer.
class [[gnu::visibility("hidden")]] Observer::Impl {
 public:
  explicit Impl(const JoinOptions& options) : options_(options) {}

  Status join() {
    auto joined = client::Observer::join(library::link_options(options_), library::connector(options_));
    if (!joined) return joined.status();
    client_ = std::move(*joined);
    return Status::ok();
  }

  client::Observer& client() {
    return *client_;
  }

  // The leader sends the tensors to an observer that joins, if it knows them: before the first worker it does
  // not, so this observer joins again.
  Result<FlatLayout> layout() {
    if (client_->layout().tensors().empty()) {
      if (auto bad = join(); !bad.is_ok()) return bad;
    }
    if (client_->layout().tensors().empty())
      return Status::unavailable("no worker has joined yet, so the job has no weights");
    return client_->layout();
  }

 private:
  const JoinOptions options_;
  std::unique_ptr<client::Observer> client_;
};

Result<Observer> Observer::join(const JoinOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  if (auto bad = impl->join(); !bad.is_ok()) return bad;
  return Observer(std::move(impl));
}

Observer::Observer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Observer::Observer(Observer&&) noexcept = default;
Observer& Observer::operator=(Observer&&) noexcept = default;
Observer::~Observer() = default;

std::uint32_t Observer::servers() const {
  return impl_->client().servers();
}

Result<JobStatus> Observer::status() {
  const auto report = impl_->client().status();
  if (!report) return report.status();
  return job_status(*report);
}

Result<Snapshot> Observer::weights(std::uint64_t at_least) {
  const auto layout = impl_->layout();
  if (!layout) return layout.status();
  auto pulled = impl_->client().pull(*layout, {at_least});
  if (!pulled) return pulled.status();
  return Snapshot{pulled->version.value, *layout, std::move(pulled->weights)};
}

Status Observer::stop(const std::string& reason) {
  impl_->client().stop(reason);
  // Messages arrive in order: the leader answers after it has read the request.
  return impl_->client().status().status();
}

}  // namespace capstan
