#include "capstan/server/weight_delivery.h"

namespace capstan::server {

void WeightDelivery::to_worker(const Peer& worker, const std::shared_ptr<WorkerArena>& arena,
                               const wire::Weights& reply) {
  const Recipient to{*worker.member(), worker.incarnation()};
  if (in_place_) return read_in_place(to, arena, reply);
  if (!arena->shares_weights()) return send_copy(to, arena->outgoing_weights(), reply);
  executor_.deliver(arena->shared_weights().data(), arena, [this, to, reply] {
    if (auto* peer = find(to)) peer->channel().send(reply);
  });
}

void WeightDelivery::to_observer(const Peer& observer, const wire::Weights& reply) {
  const auto size = executor_.shard().weights().size();
  send_copy({*observer.member(), observer.incarnation()}, std::make_shared_for_overwrite<float[]>(size),
            reply);
}

void WeightDelivery::read_in_place(const Recipient& to, const std::shared_ptr<WorkerArena>& arena,
                                   const wire::Weights& reply) {
  executor_.deliver(nullptr, arena, [this, to, reply] {
    auto* peer = find(to);
    if (!peer) return;
    if (peer->channel().shares_memory()) return peer->channel().send(reply);
    executor_.pin();
    peer->channel().send(reply, executor_.shard().weights(), [this](Status) { executor_.unpin(); });
  });
}

void WeightDelivery::send_copy(const Recipient& to, std::shared_ptr<float[]> copy,
                               const wire::Weights& reply) {
  auto* const destination = copy.get();
  executor_.deliver(destination, copy, [this, to, reply, copy = std::move(copy)] {
    const auto size = executor_.shard().weights().size();
    if (auto* peer = find(to)) peer->channel().send(reply, {copy.get(), size}, [copy](Status) {});
  });
}

}  // namespace capstan::server
