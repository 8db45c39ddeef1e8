#include "capstan/server/row_store.h"

#include <algorithm>

namespace capstan::server {
namespace {

constexpr std::size_t kRowsPerPiece = 512;

}  // namespace

RowStore::RowStore(ShardExecutor& executor, const ShardRows& rows) : executor_(executor), rows_(rows) {
  for (const auto& part : rows.parts()) changed_.emplace_back(part.first_row, part.end_row);
}

// One update while it runs.
struct RowStore::Update {
  std::vector<Push> pushes;
  std::vector<optimizer::RowContribution> contributions;
  std::vector<std::uint32_t> rows;
};

void RowStore::apply(std::uint32_t group, const optimizer::UpdateIndex& index, double rate,
                     std::vector<Push> pushes, ShardExecutor::Done done) {
  const auto update = std::make_shared<Update>();
  update->pushes = std::move(pushes);
  const auto* const part = rows_.of_group(group);
  const auto begin = [this, update, part, index, rate]() -> ShardExecutor::Work {
    if (!part) return {};
    const auto at = static_cast<std::size_t>(part - rows_.parts().data());
    for (const auto& push : update->pushes)
      update->contributions.push_back(
          {push.arena->gradients().data(), push.factor, push.arena->rows().pushed[at]});
    update->rows = store::merged_rows(update->contributions);
    changed_[at].add(update->rows);
    return {(update->rows.size() + kRowsPerPiece - 1) / kRowsPerPiece,
            part->size(update->rows) * (1 + update->contributions.size()), [=, this](std::size_t piece) {
              const auto all = std::span<const std::uint32_t>(update->rows);
              const auto first = piece * kRowsPerPiece;
              executor_.shard().apply_rows(*part,
                                           all.subspan(first, std::min(kRowsPerPiece, all.size() - first)),
                                           index, update->contributions, rate);
            }};
  };
  executor_.run(true, begin, {update}, std::move(done));
}

bool RowStore::number_answer(WorkerArena& arena, wire::Weights& reply) const {
  auto& rows = arena.rows();
  const bool changes = reply.request == rows.push.value && rows.held == rows.answers && rows.answers > 0;
  reply.rows.emplace();
  reply.rows->number = ++rows.answers;
  return changes;
}

RowLists RowStore::take_changes(WorkerArena& arena) {
  RowLists lists;
  auto& given = arena.rows().given;
  for (std::size_t i = 0; i < changed_.size(); ++i) {
    lists.push_back(changed_[i].since(given[i]));
    given[i] = changed_[i].updates();
  }
  return lists;
}

std::uint64_t RowStore::bytes(const RowLists& lists) const {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < lists.size(); ++i)
    bytes += lists[i].size() * sizeof(std::uint32_t) + rows_.parts()[i].size(lists[i]) * sizeof(float);
  return bytes;
}

std::uint64_t RowStore::all_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& part : rows_.parts()) bytes += part.size() * sizeof(float);
  return bytes;
}

}  // namespace capstan::server
