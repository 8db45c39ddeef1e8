#include "capstan/averaging/rules.h"

#include "capstan/averaging/combine.h"

namespace capstan::averaging {
namespace {

void write_average(Slot& slot, std::span<const Gradient> inputs) {
  const auto factor = static_cast<float>(1.0 / slot.trainers());
  if (!slot.is_sparse()) return combine(inputs, factor, slot.values(), slot.pool());
  slot.set_rows(unite_rows(inputs, slot.rows()));
  const auto rows = slot.result().rows;
  combine_rows(inputs, factor, slot.columns(), rows, slot.values(), slot.pool());
}

}  // namespace

std::size_t AverageOnArrival::work(const Slot& slot, std::uint32_t arrival) const {
  return arrival == 1 || arrival == slot.trainers() ? 0 : slot.elements();
}

void AverageOnArrival::process_gradient(Slot& slot, std::uint32_t, const Gradient& gradient) {
  auto& sum = sums_[slot.bucket()];
  if (slot.arrived() == 1) {
    sum.sum = gradient;
  } else if (slot.is_complete()) {
    sum.last = gradient;
  } else if (slot.is_sparse()) {
    add_rows(slot, sum, gradient);
  } else {
    add_dense(slot, sum, gradient);
  }
}

void AverageOnArrival::add_dense(Slot& slot, Sum& sum, const Gradient& gradient) {
  auto& buffer = sum.buffers[0].values;
  if (slot.arrived() > 2) return add(gradient, buffer, slot.pool());
  buffer.resize(slot.elements());
  const Gradient inputs[] = {sum.sum, gradient};
  combine(inputs, 1, buffer, slot.pool());
  sum.sum.values = buffer;
}

void AverageOnArrival::add_rows(Slot& slot, Sum& sum, const Gradient& gradient) {
  sum.current = 1 - sum.current;
  auto& buffer = sum.buffers[sum.current];
  const Gradient inputs[] = {sum.sum, gradient};
  const auto most = std::min<std::size_t>(slot.part().size(), sum.sum.rows.size() + gradient.rows.size());
  buffer.rows.resize(most);
  buffer.rows.resize(unite_rows(inputs, buffer.rows));
  buffer.values.resize(buffer.rows.size() * slot.columns());
  combine_rows(inputs, 1, slot.columns(), buffer.rows, buffer.values, slot.pool());
  sum.sum = {buffer.rows, buffer.values};
}

void AverageOnArrival::average(Slot& slot) {
  const auto& sum = sums_[slot.bucket()];
  const Gradient inputs[] = {sum.sum, sum.last};
  write_average(slot, std::span(inputs).first(slot.trainers() == 1 ? 1 : 2));
}

void AverageInRankOrder::process_gradient(Slot& slot, std::uint32_t trainer, const Gradient& gradient) {
  auto& kept = kept_[slot.bucket()];
  kept.resize(slot.trainers());
  kept[trainer] = gradient;
}

void AverageInRankOrder::average(Slot& slot) {
  write_average(slot, kept_[slot.bucket()]);
}

}  // namespace capstan::averaging
