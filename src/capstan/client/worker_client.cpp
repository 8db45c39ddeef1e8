#include "capstan/client/worker_client.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "capstan/base/check.h"
#include "capstan/base/row_tensors.h"
#include "capstan/placement/shards.h"

namespace capstan::client {
namespace {

constexpr auto kLeaveTimeout = std::chrono::seconds(1);

}  // namespace

Result<std::unique_ptr<WorkerClient>> WorkerClient::join(const LinkOptions& options, Connector connector,
                                                         const FlatLayout& layout,
                                                         std::span<const float> initial,
                                                         const WorkerPart& part) {
  std::unique_ptr<WorkerClient> client(
      new WorkerClient(options, std::move(connector), layout, initial, part));
  wire::Join as;
  as.layout = wire::to_wire(layout);
  as.buffers = wire::to_wire(part.buffers);
  as.data = part.data;
  as.phases = wire::to_wire(part.phases);
  auto bad = client->links_.join(std::move(as));
  if (bad.is_ok()) bad = client->driver_.with_lock([&] { return client->prepare(); });
  if (!bad.is_ok()) return bad;
  return client;
}

WorkerClient::WorkerClient(const LinkOptions& options, Connector connector, const FlatLayout& layout,
                           std::span<const float> initial, const WorkerPart& part)
    : layout_(layout),
      part_(part),
      gradients_(
          transport::Segment::create(layout.size() * sizeof(float), transport::Segment::PeerMay::kRead)),
      parts_(options.servers.size()),
      initial_{std::make_shared<const std::vector<float>>(initial.begin(), initial.end())},
      request_(options.servers.size()),
      links_(driver_, options, std::move(connector), *this) {}

WorkerClient::~WorkerClient() {
  driver_.end_keeper();
}

Range WorkerClient::range(std::size_t server) const {
  return {links_.joined(server).begin, links_.joined(server).end};
}

Status WorkerClient::check_joined() const {
  if (joined_.member.role != wire::Role::kWorker || joined_.member.index >= joined_.workers)
    return Status::malformed(
        fmt::format("the server assigned rank {} of {} workers", joined_.member.index, joined_.workers));
  if (!std::ranges::all_of(segments(), is_possible))
    return Status::malformed("the server's position in the data is impossible");
  std::vector<Range> ranges;
  for (std::size_t s = 0; s < links_.size(); ++s) {
    if (range(s).begin > range(s).end || range(s).end > layout_.size())
      return Status::malformed("a server's shard exceeds the model");
    ranges.push_back(range(s));
  }
  std::ranges::sort(ranges, {}, [](const Range& r) { return std::pair(r.begin, r.end); });
  std::uint64_t covered = 0;
  for (const auto& r : ranges) covered = r.begin == covered ? r.end : layout_.size() + 1;
  if (covered != layout_.size()) return Status::malformed("the servers' shards do not cover the model");
  return Status::ok();
}

// Of the phases and row tensors of a push: with local steps, it carries all tensors whole.
ParameterGroups WorkerClient::push_groups() const {
  const bool local = !joined_.local.entries.empty();
  return {local ? all_dense(layout_) : layout_, {.phases = local ? std::vector<StepPhase>() : part_.phases}};
}

// All servers have accepted this worker: allocates the memory and shares it.
Status WorkerClient::prepare() {
  joined_ = links_.joined(0);
  if (auto bad = check_joined(); !bad.is_ok()) return bad;
  weights_ = joined_.in_place ? WeightsArena::of_server_segments(layout_.size())
                              : WeightsArena::own_segment(layout_.size());
  const auto groups = push_groups();
  push_bytes_ = placement::push_bytes(layout_, groups, joined_.servers);
  answer_bytes_ = dense_bytes(layout_, groups);
  for (std::size_t s = 0; s < links_.size(); ++s) {
    parts_[s].shares_memory = links_.shares_memory(s);
    parts_[s].rows = ShardRows(layout_, groups, range(s));
    for (const auto& part : push_ranges(layout_, groups, range(s)))
      parts_[s].pushed.push_back(gradients().subspan(range(s).begin + part.begin, part.size()));
    if (auto& segment = parts_[s].weights) {
      if (auto bad = weights_->lay(range(s), std::move(*segment)); !bad.is_ok()) return bad;
      segment.reset();
    }
    share_memory(s);
  }
  transport_ = links_.transport(0);
  return Status::ok();
}

void WorkerClient::share_memory(std::size_t server) {
  if (!links_.shares_memory(server) || !weights_) return;
  links_.send(server, wire::Share{wire::Arena::kGradients}, gradients_);
  if (const auto* segment = weights_->segment())
    links_.send(server, wire::Share{wire::Arena::kWeights}, *segment);
}

void WorkerClient::on_joined(std::size_t server, std::optional<transport::Segment> weights, bool again) {
  if (!again) {
    parts_[server].weights = std::move(weights);
    return;
  }
  // Reconnected: repeats what was in flight; servers recognize what they have received before.
  share_memory(server);
  if (!leave_confirmed_.empty()) links_.send(server, wire::Leave{row_bytes_.pulled});
  if (initial_.requested) send_initial_weights(server);
  if (!request_.is_waiting()) return;
  if (request_.push()) send_push(server);
  // With a new number, so that all servers send the same version.
  links_.send(0, wire::Pull{request_.renumber(), {}});
}

// Rows of the servers' order of parts: the numbers, then the values unless memory is shared.
void WorkerClient::pack(std::size_t server, std::uint32_t phase, const RowLists& rows) {
  auto& part = parts_[server];
  if (part.rows.empty()) return;
  CAPSTAN_CHECK(rows.size() == layout_.tensors().size(), "a push has the rows of every tensor");
  const RowPayload payload{part.rows.dense(phase), parts_of(part.rows, phase), !part.shares_memory};
  std::vector<std::span<const std::uint32_t>> lists;
  part.counts.clear();
  for (const auto* tensor : payload.parts) {
    lists.push_back(tensor->within(rows[tensor->tensor]));
    CAPSTAN_CHECK(tensor->check(lists.back()).is_ok(), "rows are sorted, each once");
    part.counts.push_back(static_cast<std::uint32_t>(lists.back().size()));
    row_bytes_.pushed +=
        lists.back().size() * sizeof(std::uint32_t) + tensor->size(lists.back()) * sizeof(float);
  }
  part.packed.resize(payload.size(lists));
  payload.pack(lists, gradients().data() + range(server).begin, part.packed);
}

void WorkerClient::send_push(std::size_t server) {
  if (auto& part = parts_[server]; !part.rows.empty()) {
    auto push = *request_.push();
    push.rows = {part.held, part.counts, row_bytes_.pushed, row_bytes_.reported};
    return links_.send(server, push, part.packed);
  }
  if (links_.shares_memory(server)) {
    links_.send(server, *request_.push());
  } else {
    links_.send(server, *request_.push(), parts_[server].pushed[request_.push()->phase]);
  }
}

Result<Update> WorkerClient::exchange(const std::optional<wire::Push>& push, const RowLists& rows) {
  const auto begin = SteadyClock::now();
  driver_.with_lock([&] {
    if (!push) return links_.send(0, wire::Pull{request_.begin_pull(), {}});
    request_.begin(*push);
    row_bytes_ = {0, row_bytes_.pulled, 0};
    for (std::size_t s = 0; s < links_.size(); ++s) pack(s, push->phase, rows);
    traffic_.pushed += push_bytes_[push->phase] + row_bytes_.pushed;
    for (std::size_t s = 0; s < links_.size(); ++s) send_push(s);
  });
  // No deadline of its own: a straggler may delay the answer for long. If a server stops sending heartbeats,
  // the wait ends with a failure.
  driver_.run_until([&] { return !request_.is_waiting() || !links_.failure().is_ok(); }, TimePoint::max());
  counters_.last_wait = seconds(SteadyClock::now() - begin);
  return driver_.with_lock([&]() -> Result<Update> {
    if (request_.is_waiting()) return links_.failure();
    const auto& answer = request_.answer();
    counters_.version = answer.version;
    traffic_.pulled += answer_bytes_;
    return Update{answer.version, answer.applied, answer.stop, answer.buffers};
  });
}

Result<Update> WorkerClient::pull() {
  auto update = exchange({});
  driver_.with_lock([&] {
    initial_.requested = false;
    if (update) initial_.values.reset();
  });
  counters_.last_wait = 0;  // for the other workers to join, not for an update
  return update;
}

Result<Update> WorkerClient::push_pull(const StepReport& report, const RowLists& rows) {
  const auto microseconds = [](double s) { return static_cast<std::uint32_t>(std::min(s * 1e6, 4e9)); };
  CAPSTAN_CHECK(report.phase < parts_[0].pushed.size(), "a push is of a phase that the worker has declared");
  auto& c = counters_;
  ++c.sequence.value;
  c.steps.value += report.steps;
  auto update = exchange(
      wire::Push{rank(), links_.incarnation(), c.sequence, c.steps, c.version, report.samples, report.loss,
                 microseconds(report.compute_seconds), microseconds(std::exchange(c.last_wait, 0)),
                 microseconds(report.data_seconds), report.phase},
      rows);
  c.communication_seconds += c.last_wait;
  return update;
}

void WorkerClient::report_progress(const StepReport& so_far) {
  const wire::Progress progress{{counters_.steps.value + so_far.steps}, so_far.samples, so_far.loss};
  driver_.with_lock([&] { links_.send(0, progress); });
}

std::vector<DataSegment> WorkerClient::segments() const {
  std::vector<DataSegment> segments;
  for (const auto& segment : joined_.segments) segments.push_back({segment.batch, segment.steps});
  return segments;
}

std::vector<float> WorkerClient::initial_buffers() {
  return driver_.with_lock([&] { return std::exchange(buffers_, {}); });
}

void WorkerClient::send_buffers(std::vector<float> values) {
  const auto keep = std::make_shared<const std::vector<float>>(std::move(values));
  driver_.with_lock([&] { links_.send(0, wire::Buffers{}, *keep, keep); });
}

WorkerClient::Traffic WorkerClient::traffic() {
  return driver_.with_lock([&] { return traffic_; });
}

void WorkerClient::leave() {
  driver_.with_lock([&] {
    request_.cancel();
    leave_confirmed_.assign(links_.size(), false);
    for (std::size_t s = 0; s < links_.size(); ++s) links_.send(s, wire::Leave{row_bytes_.pulled});
  });
  const auto confirmed = [&] { return std::ranges::all_of(leave_confirmed_, std::identity{}); };
  driver_.run_until([&] { return confirmed() || !links_.failure().is_ok(); },
                    SteadyClock::now() + kLeaveTimeout);
  driver_.with_lock([&] { links_.close(); });
}

transport::Placement WorkerClient::on_payload(std::size_t server, const wire::Message& message,
                                              std::size_t bytes) {
  if (std::holds_alternative<wire::Buffers>(message)) {
    if (server != 0 || bytes != part_.buffers.size() * sizeof(float)) return transport::Placement::refuse();
    buffers_.resize(part_.buffers.size());
    return transport::Placement::receive(std::as_writable_bytes(std::span(buffers_)));
  }
  const auto* weights = std::get_if<wire::Weights>(&message);
  if (!weights || !weights_) return transport::Placement::refuse();
  const bool changes = weights->rows && !weights->rows->whole;
  const auto destination = std::as_writable_bytes(weights_->receivable(range(server)));
  // With the numbers of rows, the payload may be up to twice as long as the range.
  const bool fits =
      changes ? bytes <= 2 * destination.size() && bytes % sizeof(float) == 0 : bytes == destination.size();
  if (!fits) return transport::Placement::refuse();
  if (!request_.expects(server, weights->request)) return transport::Placement::discard();
  if (!changes) return transport::Placement::receive(destination);
  auto& arriving = parts_[server].arriving;
  arriving.resize(bytes / sizeof(float));
  return transport::Placement::receive(std::as_writable_bytes(std::span(arriving)));
}

void WorkerClient::on_message(std::size_t server, const wire::Message& message) {
  if (std::holds_alternative<wire::SendWeights>(message)) {
    initial_.requested = true;
    for (std::size_t s = 0; s < links_.size(); ++s) send_initial_weights(s);
    return;
  }
  if (std::holds_alternative<wire::Leave>(message) && !leave_confirmed_.empty()) {
    leave_confirmed_[server] = true;
    links_.expect_end(server);
  }
  if (std::holds_alternative<wire::StopRequest>(message)) asked_to_stop_ = true;
  const auto* weights = std::get_if<wire::Weights>(&message);
  if (!weights || !request_.expects(server, weights->request)) return;
  if (auto bad = take_rows(server, *weights); !bad.is_ok()) return links_.lose(server, bad);
  request_.answer(server, *weights);
}

// The rows that have changed, unless the server has written them to shared memory.
Status WorkerClient::take_rows(std::size_t server, const wire::Weights& weights) {
  auto& part = parts_[server];
  const auto payload = std::exchange(part.arriving, {});
  if (!weights.rows) return Status::ok();
  const auto& rows = *weights.rows;
  if (!rows.whole && !part.shares_memory) {
    const RowPayload expected{part.rows.dense(), parts_of(part.rows)};
    if (rows.counts.size() != expected.parts.size())
      return Status::malformed("an answer with rows of other tensors");
    for (std::size_t i = 0; i < rows.counts.size(); ++i)
      if (rows.counts[i] > expected.parts[i]->rows())
        return Status::malformed("an answer with more rows than there are");
    auto* const to = weights_->receivable(range(server)).data();
    if (const auto lists = expected.unpack(rows.counts, payload, to); !lists) return lists.status();
  }
  part.held = rows.number;
  row_bytes_.pulled += rows.bytes;
  traffic_.pulled += rows.bytes;
  return Status::ok();
}

void WorkerClient::send_initial_weights(std::size_t server) {
  if (!initial_.values) return;  // the job has begun: no server needs them any more
  links_.send(server, wire::Initialize{},
              std::span(*initial_.values).subspan(range(server).begin, range(server).size()),
              initial_.values);
}

}  // namespace capstan::client
