#include "capstan/lab/metrics_logger.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <tuple>

#include <fmt/format.h>

#include "capstan/base/random.h"

namespace capstan::lab {
namespace {

constexpr std::size_t kFirstSlots = 2048;

[[noreturn]] void fail(std::string_view type, std::string_view name, MetricKey key, const char* problem) {
  throw std::logic_error(fmt::format("metric {}{}{}, key {},{}: {}", type, name.empty() ? "" : ",", name,
                                     key.first, key.second, problem));
}

double milliseconds(MetricsLogger::Clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

}  // namespace

// The slot with this key, or the free one where it belongs.
std::uint32_t& MetricsLogger::Type::slot_of(MetricKey key) {
  const auto mask = slots.size() - 1;
  auto at = mix64(key.first ^ mix64(key.second)) & mask;
  while (slots[at] != 0 && measurements[slots[at] - 1].key != key) at = (at + 1) & mask;
  return slots[at];
}

std::uint32_t MetricsLogger::Type::name_index(std::string_view wanted) {
  const auto index = static_cast<std::size_t>(std::ranges::find(names, wanted) - names.begin());
  if (index == names.size()) names.emplace_back(wanted);
  return static_cast<std::uint32_t>(index);
}

// For one more measurement; at most half of the slots are used.
void MetricsLogger::Type::make_room() {
  if (2 * (measurements.size() + 1) <= slots.size()) return;
  slots.assign(std::max(kFirstSlots, 2 * slots.size()), 0);
  measurements.reserve(slots.size() / 2);
  for (std::size_t i = 0; i < measurements.size(); ++i)
    slot_of(measurements[i].key) = static_cast<std::uint32_t>(i + 1);
}

MetricsLogger::Type& MetricsLogger::type_of(std::string_view name) {
  const auto found = std::ranges::find(types_, name, &Type::name);
  if (found != types_.end()) return *found;
  auto& type = types_.emplace_back();
  type.name = name;
  type.make_room();
  return type;
}

MetricsLogger::Measurement& MetricsLogger::add(std::string_view type_name, MetricKey key,
                                               std::string_view name) {
  auto& type = type_of(type_name);
  type.make_room();
  auto& slot = type.slot_of(key);
  if (slot != 0) fail(type_name, name, key, "started twice");
  type.measurements.push_back({key, type.name_index(name), false, {}, {}});
  slot = static_cast<std::uint32_t>(type.measurements.size());
  return type.measurements.back();
}

void MetricsLogger::record_start(std::string_view type, MetricKey key, std::string_view name) {
  if (!enabled()) return;
  const std::lock_guard lock(mutex_);
  auto& measurement = add(type, key, name);
  measurement.start = now_();  // last, so that the time excludes the work above
}

void MetricsLogger::record(std::string_view type, MetricKey key, std::string_view name,
                           Clock::time_point start, Clock::time_point end) {
  if (!enabled()) return;
  const std::lock_guard lock(mutex_);
  auto& measurement = add(type, key, name);
  measurement.start = start;
  measurement.end = end;
  measurement.ended = true;
}

void MetricsLogger::record_value(std::string_view type, std::string_view name, std::string_view unit,
                                 double value) {
  if (!enabled()) return;
  if (!std::isfinite(value) || value < 0)
    throw std::logic_error(fmt::format("metric {},{}: {} is not a number of at least 0", type, name, value));
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(
      values_, [&](const Series& series) { return series.type == type && series.name == name; });
  auto& series =
      found != values_.end()
          ? *found
          : values_.emplace_back(Series{std::string(type), std::string(name), std::string(unit), {}});
  series.values.push_back(value);
}

void MetricsLogger::record_end(std::string_view type_name, MetricKey key) {
  if (!enabled()) return;
  const auto now = now_();
  const std::lock_guard lock(mutex_);
  auto& type = type_of(type_name);
  const auto slot = type.slot_of(key);
  if (slot == 0) fail(type_name, "", key, "ended without a start");
  auto& measurement = type.measurements[slot - 1];
  if (measurement.ended) fail(type_name, type.names[measurement.name], key, "ended twice");
  measurement.end = now;
  measurement.ended = true;
}

std::vector<Series> MetricsLogger::series() const {
  const std::lock_guard lock(mutex_);
  auto out = values_;
  for (const auto& type : types_) {
    const auto first = out.size();
    for (const auto& name : type.names) out.push_back({type.name, name, "ms", {}});
    for (const auto& m : type.measurements) {
      if (!m.ended) fail(type.name, type.names[m.name], m.key, "not ended");
      out[first + m.name].values.push_back(milliseconds(m.end - m.start));
    }
  }
  std::erase_if(out, [](const Series& s) { return s.values.empty(); });  // names from before clear()
  std::ranges::sort(out, {}, [](const Series& s) { return std::tie(s.type, s.name); });
  return out;
}

void MetricsLogger::clear() {
  const std::lock_guard lock(mutex_);
  for (auto& type : types_) {
    type.measurements.clear();
    std::ranges::fill(type.slots, 0u);
  }
  for (auto& series : values_) series.values.clear();
}

}  // namespace capstan::lab
