#include "capstan/server/weight_delivery.h"

#include <algorithm>
#include <utility>

#include "capstan/kernels/copy.h"
#include "capstan/store/dense_shard.h"

namespace capstan::server {
namespace {

// A part of the dense ranges, and where it goes.
struct Copy {
  Range from;  // relative to the shard's begin
  std::uint64_t to = 0;
};

// `packed`: one range behind the other.
std::vector<Copy> copies_of(std::span<const Range> ranges, bool packed) {
  std::vector<Copy> copies;
  std::uint64_t at = 0;
  for (const auto& range : ranges) {
    for (auto begin = range.begin; begin < range.end; begin += store::DenseShard::kChunk) {
      const Range part{begin, std::min<std::uint64_t>(begin + store::DenseShard::kChunk, range.end)};
      copies.push_back({part, packed ? at : part.begin});
      at += part.size();
    }
  }
  return copies;
}

}  // namespace

void WeightDelivery::to_worker(const Peer& worker, const std::shared_ptr<WorkerArena>& arena,
                               wire::Weights reply) {
  const Recipient to{*worker.member(), worker.incarnation()};
  const bool changes = rows_ && rows_->number_answer(*arena, reply);
  if (options_.in_place && arena->shares_gradients()) return read_in_place(to, arena, reply, changes);
  const bool has_copy = arena->shares_weights();
  if (changes && (has_copy || !options_.keeps_copy)) return send_changes(to, arena, reply);
  if (options_.in_place) return read_in_place(to, arena, reply, false);
  if (!has_copy) return send_copy(to, arena->outgoing_weights(), reply, arena);
  executor_.deliver(arena->shared_weights().data(), arena, [this, to, arena, reply] {
    const auto sent = with_rows(reply, *arena, false);
    if (auto* peer = find(to)) peer->channel().send(sent);
    report_answer(to, sent);
  });
}

// Counts elements that the worker reads in shared memory, too.
void WeightDelivery::report_answer(const Recipient& to, const wire::Weights& sent) const {
  if (!options_.on_answer) return;
  const auto elements = sent.rows ? total_size(rows_->rows().dense()) : executor_.shard().weights().size();
  options_.on_answer({to.member.index}, elements * sizeof(float) + (sent.rows ? sent.rows->bytes : 0));
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

wire::Weights WeightDelivery::with_rows(wire::Weights reply, WorkerArena& arena, bool changes) {
  if (!rows_) return reply;
  const auto lists = rows_->take_changes(arena);
  reply.rows->bytes = changes ? rows_->bytes(lists) : rows_->all_bytes();
  return reply;
}

void WeightDelivery::read_in_place(const Recipient& to, const std::shared_ptr<WorkerArena>& arena,
                                   const wire::Weights& reply, bool changes) {
  executor_.deliver(nullptr, arena, [this, to, arena, reply, changes] {
    const auto sent = with_rows(reply, *arena, changes);
    auto* peer = find(to);
    if (peer && peer->channel().shares_memory()) {
      peer->channel().send(sent);
    } else if (peer) {
      executor_.pin();
      peer->channel().send(sent, executor_.shard().weights(), [this](Status) { executor_.unpin(); });
    }
    report_answer(to, sent);
  });
}

void WeightDelivery::send_copy(const Recipient& to, std::shared_ptr<float[]> copy, const wire::Weights& reply,
                               const std::shared_ptr<WorkerArena>& arena) {
  auto* const destination = copy.get();
  executor_.deliver(destination, copy, [this, to, arena, reply, copy = std::move(copy)] {
    const auto sent = with_rows(reply, *arena, false);
    const auto size = executor_.shard().weights().size();
    if (auto* peer = find(to)) peer->channel().send(sent, {copy.get(), size}, [copy](Status) {});
    report_answer(to, sent);
  });
}

// Copies the dense ranges and the changed rows to the worker's memory, or packs them into a payload.
void WeightDelivery::send_changes(const Recipient& to, const std::shared_ptr<WorkerArena>& arena,
                                  const wire::Weights& reply) {
  struct Changes {
    wire::Weights reply;
    RowLists lists;
    std::vector<std::span<const std::uint32_t>> rows;
    std::vector<Copy> copies;
    std::vector<float> payload;
  };
  const auto changes = std::make_shared<Changes>();
  changes->reply = reply;
  const bool shares = arena->shares_weights();
  const auto begin = [this, changes, arena, shares]() -> ShardExecutor::Work {
    auto& c = *changes;
    const auto& all = rows_->rows();
    c.lists = rows_->take_changes(*arena);
    c.rows.assign(c.lists.begin(), c.lists.end());
    c.reply.rows->whole = false;
    c.reply.rows->bytes = rows_->bytes(c.lists);
    for (const auto& list : c.lists) c.reply.rows->counts.push_back(static_cast<std::uint32_t>(list.size()));
    c.copies = copies_of(all.dense(), !shares);
    if (!shares) c.payload.resize(RowPayload{all.dense(), parts_of(all)}.size(c.rows));
    const auto run = [this, changes, arena, shares](std::size_t piece) {
      const auto weights = executor_.shard().weights();
      auto* const to_floats = shares ? arena->shared_weights().data() : changes->payload.data();
      if (piece < changes->copies.size()) {
        const auto& copy = changes->copies[piece];
        return kernels::copy(weights.subspan(copy.from.begin, copy.from.size()),
                             {to_floats + copy.to, copy.from.size()}, kernels::Stores::kCached);
      }
      const auto& tensors = rows_->rows();
      if (!shares)
        return RowPayload{tensors.dense(), parts_of(tensors)}.pack(changes->rows, weights.data(),
                                                                   changes->payload, false);
      for (std::size_t i = 0; i < changes->rows.size(); ++i) {
        for (const auto row : changes->rows[i]) {
          const auto range = tensors.parts()[i].elements(row);
          std::copy_n(weights.data() + range.begin, range.size(), to_floats + range.begin);
        }
      }
    };
    return {c.copies.size() + 1, total_size(all.dense()) + c.reply.rows->bytes / sizeof(float), run};
  };
  executor_.run(false, begin, {arena, changes}, [this, to, changes, shares] {
    auto* peer = find(to);
    if (peer && shares) peer->channel().send(changes->reply);
    if (peer && !shares) peer->channel().send(changes->reply, changes->payload, [changes](Status) {});
    report_answer(to, changes->reply);
  });
}

}  // namespace capstan::server
