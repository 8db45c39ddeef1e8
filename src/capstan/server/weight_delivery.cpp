#include "capstan/server/weight_delivery.h"

#include <utility>

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
  std::erase_if(answers_, [](const auto& entry) { return entry.second->is_idle(); });
  auto& answers = answers_[*observer.member()];
  if (!answers || answers->to.incarnation != observer.incarnation())
    answers = std::make_shared<Answers>(Recipient{*observer.member(), observer.incarnation()});
  if (!answers->next)
    answers->next = std::make_shared_for_overwrite<float[]>(executor_.shard().weights().size());
  answers->ready.reset();  // its memory is about to be overwritten
  const auto number = ++answers->ordered;
  executor_.deliver(answers->next.get(), answers->next, [this, answers, reply, number] {
    answers->copied = number;
    if (number < answers->ordered) return;
    answers->ready = reply;
    send_ready(answers);
  });
}

bool WeightDelivery::is_answering(const wire::Member& observer) const {
  const auto answers = answers_.find(observer);
  return answers != answers_.end() && !answers->second->is_idle();
}

void WeightDelivery::send_ready(const std::shared_ptr<Answers>& answers) {
  if (answers->sending || !answers->ready) return;
  const auto reply = *std::exchange(answers->ready, {});
  const auto copy = std::exchange(answers->next, {});
  auto* peer = find(answers->to);
  if (!peer) return;
  answers->sending = true;
  const auto size = executor_.shard().weights().size();
  peer->channel().send(reply, {copy.get(), size}, [this, answers, copy](const Status& sent) {
    answers->sending = false;
    if (!sent.is_ok()) answers->ready.reset();
    send_ready(answers);
  });
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
