#include "capstan/server/shard_server.h"

#include <algorithm>
#include <new>

#include <fmt/format.h>

#include "capstan/placement/shards.h"
#include "capstan/user_error.h"

namespace capstan::server {

using wire::Role;

ShardServer::ShardServer(transport::EventLoop& loop, Options options, MemberTable& members,
                         std::function<void()> on_idle)
    : loop_(loop), options_(std::move(options)), members_(members), on_idle_(std::move(on_idle)) {
  if (options_.observer) recorder_.emplace(*options_.observer);
}

// Without local steps, the servers use the job's optimizer. With local steps, the workers use it, and the
// servers make outer steps with the deltas, or none.
void ShardServer::set_terms(JobTerms terms) {
  terms_ = std::move(terms);
  spec_ = strategy::parse_strategy_spec(terms_.strategy, terms_.workers);
  auto rules = options_.optimizer;
  auto schedule = options_.schedule;
  if (spec_.first->local_steps().uses_local_steps()) {
    const auto outer = spec_.first->outer().value_or(strategy::OuterStep{});
    rules = optimizer::outer(outer.rate, outer.momentum);
    schedule = {};
  }
  optimizers_ = std::make_unique<const optimizer::OptimizerSet>(rules, schedule);
}

std::vector<std::string> ShardServer::state_names() const {
  auto names = optimizers_->state_names();
  if (spec_.needs_mean_square()) names.emplace_back("mean_square");
  return names;
}

// With local steps, phases, optimizers and rows are those of the worker's own weights, and a push carries all
// tensors.
ParameterGroups ShardServer::make_groups(const Model& model) const {
  const ParameterGroups groups(model.layout, {spec_.globs(), options_.optimizer.globs(), model.phases});
  spec_.check_phases(groups);
  spec_.check_rows(model.layout, groups);
  optimizer::check_rows(options_.optimizer, model.layout, groups);
  return spec_.first->local_steps().uses_local_steps() ? ParameterGroups(all_dense(model.layout), {})
                                                       : groups;
}

Status ShardServer::check_model(const Model& model) const {
  if (has_model()) {
    const auto differs = difference(placed_.model, model);
    return differs.empty()
               ? Status::ok()
               : Status::refused("the worker's model differs from the server's (here): " + differs);
  }
  try {
    (void)make_groups(model);
  } catch (const UserError& error) {
    return Status::refused(error.what());
  }
  return Status::ok();
}

Status ShardServer::set_model(const Model& model, std::vector<checkpoint::HighWaterMark> marks) {
  const auto range = placement::split(model.layout.size(), terms_.servers)[terms_.index.value];
  const auto groups = make_groups(model);
  const auto bytes = std::max<std::size_t>(range.size() * sizeof(float), sizeof(float));
  try {
    weights_ = transport::Segment::create(bytes, transport::Segment::PeerMay::kRead);
    executor_ = std::make_unique<ShardExecutor>(
        loop_,
        std::make_unique<store::DenseShard>(weights_.floats().first(range.size()), *optimizers_,
                                            spec_.needs_mean_square(),
                                            store::shard_groups(model.layout, groups, range)),
        options_.threads, options_.inline_elements);
  } catch (const UserError& error) {
    return Status::refused(error.what());
  } catch (const std::bad_alloc&) {
    weights_ = {};
    return Status::refused(fmt::format(
        "cannot allocate {:.1f} GB: this server's range of the model has {} elements and {} arrays of "
        "optimizer state",
        static_cast<double>(bytes) * (1 + state_names().size()) / 1e9, range.size(), state_names().size()));
  }
  placed_ = {model, groups, range, ShardRows(model.layout, groups, range)};
  staging_.emplace(range, model.layout, groups, std::move(marks));
  if (!placed_.rows.empty()) rows_.emplace(*executor_, placed_.rows);
  WeightDelivery::Options delivery{terms_.in_place, spec_.compensates()};
  if (recorder_) {
    executor_->measure_passes();
    delivery.on_answer = [this](WorkerId to, auto sent) { recorder_->answered(to, sent, loop_.now()); };
  }
  delivery_.emplace(*executor_, members_, std::move(delivery), rows_ ? &*rows_ : nullptr);
  return Status::ok();
}

// Not into the weights: they may be in use before the last byte has arrived.
transport::Placement ShardServer::place_initial(WorkerId worker, std::size_t bytes) {
  using transport::Placement;
  const auto arena = staging_->arena(worker);
  if (!arena || bytes != range().size() * sizeof(float)) return Placement::refuse();
  // Initialized already, or being read from a checkpoint.
  if (is_initialized() || terms_.start != Version{}) return Placement::discard();
  const auto destination = arena->begin_initial();
  return destination.empty() ? Placement::discard() : Placement::receive(std::as_writable_bytes(destination));
}

bool ShardServer::take_initial(WorkerId worker) {
  const auto arena = staging_->arena(worker);
  const auto values = arena ? arena->take_initial() : nullptr;
  if (is_initialized() || terms_.start != Version{} || (!values && range().size() > 0)) return false;
  std::copy_n(values.get(), range().size(), executor_->shard().mutable_weights().begin());
  set_initialized();
  return true;
}

std::vector<checkpoint::NamedArray> ShardServer::arrays() {
  std::vector<checkpoint::NamedArray> all = {{"weights", executor_->shard().mutable_weights()}};
  const auto names = state_names();
  const auto state = executor_->shard().mutable_state();
  for (std::size_t i = 0; i < state.size(); ++i) all.push_back({names[i], state[i]});
  return all;
}

void ShardServer::set_initialized() {
  staging_->open();
}

std::span<const float> ShardServer::weights() const {
  return is_initialized() ? executor_->shard().weights() : std::span<const float>();
}

Result<bool> ShardServer::stage(WorkerId from, const wire::Push& push, std::size_t payload_bytes) {
  auto staged = staging_->stage(from, push, payload_bytes);
  if (recorder_ && staged && *staged) recorder_->pushed(push, loop_.now());
  return staged;
}

void ShardServer::forget(WorkerId worker, Incarnation incarnation) {
  if (!staging_) return;
  staging_->forget(worker, incarnation);
  if (recorder_ && !staging_->arena(worker)) recorder_->ended(worker, loop_.now());
}

Status ShardServer::execute(const Order& order) {
  return std::visit(
      [&](const auto& one) {
        if (!has_model()) return Status::malformed("an order before there is a model");
        return execute_one(one);
      },
      order);
}

Status ShardServer::check_rule(const wire::ApplyOrder& order) const {
  const bool adapts = order.rule == UpdateRule::Kind::kCompensateAdaptive;
  const bool compensates = adapts || order.rule == UpdateRule::Kind::kCompensate;
  if ((order.contributions.empty() && !order.accumulated) || (order.accumulated && !has_accumulated_))
    return Status::malformed("an update without contributions");
  if ((compensates && order.contributions.size() + (order.accumulated ? 1 : 0) != 1) ||
      (adapts && !spec_.needs_mean_square()))
    return Status::malformed("an update that this job's strategy does not make");
  return Status::ok();
}

Status ShardServer::execute_one(const wire::ApplyOrder& order) {
  if (order.group >= groups().size())
    return Status::malformed(fmt::format("an update of group {} of {}", order.group, groups().size()));
  if (groups()[order.group].is_rows) return execute_rows(order);
  std::vector<optimizer::Contribution> contributions;
  std::vector<ShardExecutor::KeepAlive> owners;
  for (const auto& c : order.contributions) {
    const auto arena = staging_->held(c.worker, c.sequence, order.group);
    if (!arena) return Status::malformed(fmt::format("the push of worker {} is not staged", c.worker.value));
    const auto base = arena->delivered();
    contributions.push_back({arena->gradients().data(), c.factor, base.get()});
    owners.push_back(arena);
    owners.push_back(base);
  }
  if (auto bad = check_rule(order); !bad.is_ok()) return bad;
  if (order.accumulated) has_accumulated_ = false;
  const auto bytes = executor_->shard().elements(order.group) * sizeof(float);
  const auto number = record(order, order.contributions.size() * bytes);
  executor_->apply(
      order.group, {order.before, order.scheduled}, {order.rule, order.rate, order.strength},
      std::move(contributions), order.accumulated, std::move(owners),
      [this, used = order.contributions, group = order.group, number] { settle(used, group, number); });
  return Status::ok();
}

Status ShardServer::execute_rows(const wire::ApplyOrder& order) {
  std::vector<RowStore::Push> pushes;
  for (const auto& c : order.contributions) {
    const auto arena = staging_->held(c.worker, c.sequence, order.group);
    if (!arena) return Status::malformed(fmt::format("the push of worker {} is not staged", c.worker.value));
    pushes.push_back({arena, c.factor});
  }
  if (pushes.empty() || order.accumulated || order.rule != UpdateRule::Kind::kStep)
    return Status::malformed("an update of rows that is no optimizer step");
  const auto number = record(order, recorder_ ? row_bytes(order.group, pushes) : 0);
  const auto done = [this, used = order.contributions, group = order.group, number] {
    settle(used, group, number);
  };
  if (rows_) {
    rows_->apply(order.group, {order.before, order.scheduled}, order.rate, std::move(pushes), done);
  } else {
    executor_->run(
        true, [] { return ShardExecutor::Work(); }, {}, done);  // on other servers only
  }
  return Status::ok();
}

std::uint64_t ShardServer::record(const wire::ApplyOrder& order, std::uint64_t bytes) {
  return recorder_ ? recorder_->ordered(order, executor_->depth(), bytes) : 0;
}

std::uint64_t ShardServer::row_bytes(std::uint32_t group, const std::vector<RowStore::Push>& pushes) const {
  const auto* const part = placed_.rows.of_group(group);
  if (!part) return 0;
  const auto at = static_cast<std::size_t>(part - placed_.rows.parts().data());
  std::uint64_t bytes = 0;
  for (const auto& push : pushes) {
    const auto& rows = push.arena->rows().pushed[at];
    bytes += rows.size() * sizeof(std::uint32_t) + part->size(rows) * sizeof(float);
  }
  return bytes;
}

void ShardServer::settle(const std::vector<wire::Contribution>& used, std::uint32_t group,
                         std::uint64_t number) {
  last_update_at_ = loop_.now();
  if (recorder_) recorder_->applied(number, executor_->pass_time(), last_update_at_);
  for (const auto& c : used) staging_->settle(c.worker, c.sequence, group);
  report_idle();
}

Status ShardServer::execute_one(const wire::AccumulateOrder& order) {
  if (groups().size() > 1) return Status::malformed("an accumulated push in a job with groups");
  const auto& c = order.contribution;
  const auto arena = staging_->held(c.worker, c.sequence, 0);
  if (!arena || (!has_accumulated_ && !order.first))
    return Status::malformed("an accumulated push that is not staged");
  has_accumulated_ = true;
  if (recorder_) recorder_->accumulated(order, range().size() * sizeof(float));
  executor_->accumulate({arena->gradients().data(), c.factor}, order.first, arena, [this, c] {
    staging_->settle(c.worker, c.sequence, 0);
    report_idle();
  });
  return Status::ok();
}

Status ShardServer::execute_one(const wire::DropOrder& order) {
  if (order.group >= groups().size())
    return Status::malformed(fmt::format("a drop by group {} of {}", order.group, groups().size()));
  staging_->settle(order.worker, order.sequence, order.group);
  return Status::ok();
}

Status ShardServer::execute_one(const wire::DeliverOrder& order) {
  if (!is_initialized()) return Status::malformed("a delivery before there are weights");
  const auto* peer = members_.find(order.member);
  if (!peer) return Status::ok();
  if (order.member.role == Role::kObserver) {
    delivery_->to_observer(*peer, order.reply);
  } else if (const auto arena = staging_->arena({order.member.index})) {
    if (recorder_) recorder_->answering({order.member.index});
    delivery_->to_worker(*peer, arena, order.reply);
  }
  return Status::ok();
}

void ShardServer::copy_to(const std::shared_ptr<checkpoint::Snapshot>& snapshot, ShardExecutor::Done done) {
  executor_->save(snapshot->destinations(), snapshot, std::move(done));
}

void ShardServer::abandon() {
  if (executor_) executor_->abandon();
}

void ShardServer::report_idle() {
  if (executor_->is_idle()) on_idle_();
}

}  // namespace capstan::server
