#include "capstan/server/weight_delivery.h"

namespace capstan::server {

using wire::Role;

void WeightDelivery::to_worker(WorkerId worker, const std::shared_ptr<WorkerArena>& arena,
                               const wire::Weights& reply) {
  const wire::Member member{Role::kWorker, worker.value};
  if (in_place_) return read_in_place(member, arena, reply);
  if (!arena->shares_weights()) return send_copy(member, arena->outgoing_weights(), reply);
  executor_.deliver(arena->shared_weights().data(), arena,
                    [this, member, reply] { members_.send(member, reply); });
}

void WeightDelivery::to_observer(std::uint32_t observer, const wire::Weights& reply) {
  const auto size = executor_.shard().weights().size();
  send_copy({Role::kObserver, observer}, std::make_shared_for_overwrite<float[]>(size), reply);
}

void WeightDelivery::read_in_place(const wire::Member& member, const std::shared_ptr<WorkerArena>& arena,
                                   const wire::Weights& reply) {
  executor_.deliver(nullptr, arena, [this, member, reply] {
    auto* peer = members_.find(member);
    if (!peer) return;
    if (peer->channel().shares_memory()) return peer->channel().send(reply);
    executor_.pin();
    peer->channel().send(reply, executor_.shard().weights(), [this](Status) { executor_.unpin(); });
  });
}

void WeightDelivery::send_copy(const wire::Member& member, std::shared_ptr<float[]> copy,
                               const wire::Weights& reply) {
  auto* const destination = copy.get();
  executor_.deliver(destination, copy, [this, member, reply, copy = std::move(copy)] {
    const auto size = executor_.shard().weights().size();
    if (auto* peer = members_.find(member))
      peer->channel().send(reply, {copy.get(), size}, [copy](Status) {});
  });
}

}  // namespace capstan::server
