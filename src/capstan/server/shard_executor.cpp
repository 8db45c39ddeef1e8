#include "capstan/server/shard_executor.h"

#include <utility>

#include "capstan/kernels/denormals.h"

namespace capstan::server {
ShardExecutor::ShardExecutor(transport::EventLoop& loop, std::unique_ptr<store::DenseShard> shard,
                             unsigned threads, std::size_t inline_elements)
    : loop_(loop),
      shard_(std::move(shard)),
      inline_elements_(inline_elements),
      self_(std::make_shared<ShardExecutor*>(this)),
      pool_(threads) {
  // As on the pool's threads: results must not depend on the thread that runs a pass.
  kernels::flush_denormals_on_this_thread();
}

void ShardExecutor::apply(std::size_t group, const optimizer::UpdateIndex& index, const UpdateRule& rule,
                          std::vector<optimizer::Contribution> contributions, bool accumulated,
                          std::vector<KeepAlive> owners, Done done) {
  if (accumulated) contributions.push_back(shard_->sum());
  queue_.push_back({.kind = Operation::Kind::kApply,
                    .group = group,
                    .index = index,
                    .rule = rule,
                    .contributions = std::move(contributions),
                    .owners = std::move(owners),
                    .done = std::move(done)});
  pump();
}

void ShardExecutor::accumulate(const optimizer::Contribution& contribution, bool first, KeepAlive owner,
                               Done done) {
  shard_->make_sum();
  queue_.push_back({.kind = Operation::Kind::kAccumulate,
                    .first = first,
                    .contributions = {contribution},
                    .owners = {std::move(owner)},
                    .done = std::move(done)});
  pump();
}

void ShardExecutor::deliver(float* destination, KeepAlive owner, Done done) {
  std::vector<float*> destinations;
  if (destination) destinations.push_back(destination);
  queue_.push_back({.kind = Operation::Kind::kDeliver,
                    .destinations = std::move(destinations),
                    .owners = {std::move(owner)},
                    .done = std::move(done)});
  pump();
}

void ShardExecutor::save(std::vector<float*> destinations, KeepAlive owner, Done done) {
  queue_.push_back({.kind = Operation::Kind::kSave,
                    .destinations = std::move(destinations),
                    .owners = {std::move(owner)},
                    .done = std::move(done)});
  pump();
}

void ShardExecutor::run(bool updates, std::function<Work()> begin, std::vector<KeepAlive> owners, Done done) {
  queue_.push_back({.kind = Operation::Kind::kWork,
                    .owners = std::move(owners),
                    .done = std::move(done),
                    .updates = updates,
                    .begin = std::move(begin)});
  pump();
}

void ShardExecutor::unpin() {
  --pins_;
  pump();
}

ShardExecutor::Pass ShardExecutor::next_pass() {
  using Kind = Operation::Kind;
  Pass pass;
  const auto first = queue_.front().kind;
  const bool takes_deliveries = first == Kind::kDeliver || (first == Kind::kApply && shard_->groups() == 1);
  do {
    auto& operation = queue_.front();
    pass.destinations.insert(pass.destinations.end(), operation.destinations.begin(),
                             operation.destinations.end());
    pass.operations.push_back(std::move(operation));
    queue_.pop_front();
  } while (takes_deliveries && !queue_.empty() && queue_.front().kind == Kind::kDeliver);
  return pass;
}

void ShardExecutor::run_piece(const Pass& pass, std::size_t chunk) {
  const auto& first = pass.operations.front();
  switch (first.kind) {
    case Operation::Kind::kApply:
      return shard_->apply_chunk(chunk, first.index, first.contributions, pass.destinations, first.rule,
                                 first.group);
    case Operation::Kind::kAccumulate:
      return shard_->accumulate_chunk(chunk, first.contributions[0], first.first);
    case Operation::Kind::kDeliver:
      return shard_->copy_chunk(chunk, pass.destinations);
    case Operation::Kind::kSave:
      return shard_->save_chunk(chunk, pass.destinations);
    case Operation::Kind::kWork:
      return first.work.run(chunk);
  }
}

bool ShardExecutor::is_pinned(const Operation& operation) const {
  return pins_ > 0 && (operation.kind == Operation::Kind::kApply || operation.updates);
}

std::pair<std::size_t, std::size_t> ShardExecutor::size_of(const Pass& pass) const {
  const auto& first = pass.operations.front();
  if (first.kind == Operation::Kind::kWork) return {first.work.pieces, first.work.elements};
  const auto arrays = first.contributions.size() + pass.destinations.size();
  if (arrays == 0) return {0, 0};
  if (first.kind == Operation::Kind::kApply)
    return {shard_->chunks(first.group), shard_->elements(first.group) * arrays};
  return {shard_->chunks(), shard_->weights().size() * arrays};
}

void ShardExecutor::pump() {
  if (pumping_) return;  // called from a callback below, whose loop takes the new work
  pumping_ = true;
  while (!busy_ && !queue_.empty() && !is_pinned(queue_.front())) {
    auto next = next_pass();
    next.begin = measured_now();
    if (auto& first = next.operations.front(); first.begin) first.work = first.begin();
    const auto [chunks, elements] = size_of(next);
    if (chunks == 0 || elements <= inline_elements_) {
      for (std::size_t i = 0; i < chunks; ++i) run_piece(next, i);
      next.end = measured_now();
      finish(next);
      continue;
    }
    const auto pass = std::make_shared<Pass>(std::move(next));
    busy_ = true;
    pool_.run(
        chunks, [this, pass](std::size_t i) { run_piece(*pass, i); },
        [&loop = loop_, self = std::weak_ptr(self_), pass, measures = measures_] {
          if (measures) pass->end = SteadyClock::now();
          loop.post([self, pass] {
            const auto alive = self.lock();
            if (!alive) return;
            (*alive)->busy_ = false;
            (*alive)->finish(*pass);
            (*alive)->pump();
          });
        });
  }
  pumping_ = false;
}

void ShardExecutor::finish(const Pass& pass) {
  pass_time_ = pass.end - pass.begin;
  for (const auto& operation : pass.operations) operation.done();
}

}  // namespace capstan::server
