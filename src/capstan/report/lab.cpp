#include "capstan/report/lab.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "capstan/base/check.h"
#include "capstan/report/lab_fields.h"

namespace capstan::report {
namespace {

Json json_of(const LabOptions& options) {
  auto out = Json::object();
  for (const auto& [name, value] : options)
    out[name] = std::visit([](const auto& v) { return Json(v); }, value);
  return out;
}

template <class T>
Json json_of(const T& value);

template <class T>
Json json_of(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

template <class T>
Json json_of(const std::vector<T>& values) {
  auto out = Json::array();
  for (const auto& value : values) out.push_back(json_of(value));
  return out;
}

template <class T>
Json json_of(const T& value) {
  if constexpr (std::is_constructible_v<Json, const T&>) {
    return Json(value);
  } else {
    Json out;
    visit_fields(value, [&](const char* key, const auto& member) { out[key] = json_of(member); });
    return out;
  }
}

}  // namespace

Json lab_json(const LabResult& result) {
  Json out{{"kind", kLabKind}, {"schema", kLabSchema}};
  visit_fields(result, [&](const char* key, const auto& member) { out[key] = json_of(member); });
  return out;
}

std::string text_of(const LabValue& value) {
  return std::visit(
      []<class T>(const T& v) -> std::string {
        if constexpr (std::is_same_v<T, std::nullptr_t>)
          return "";
        else
          return fmt::format("{}", v);
      },
      value);
}

bool is_measured(const LabConfiguration& configuration) {
  return !configuration.error && !configuration.runs.empty();
}

std::vector<double> throughputs(const LabConfiguration& configuration) {
  std::vector<double> out;
  for (const auto& run : configuration.runs) out.push_back(run.samples_per_second);
  return out;
}

double mean_throughput(const LabConfiguration& configuration) {
  const auto all = throughputs(configuration);
  CAPSTAN_CHECK(!all.empty(), "a configuration with runs");
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

LabStep mean_step(const LabConfiguration& configuration) {
  const auto count = static_cast<double>(configuration.runs.size());
  LabStep out;
  for (const auto& run : configuration.runs) {
    out.data += run.step.data / count;
    out.forward += run.step.forward / count;
    out.backward += run.step.backward / count;
    out.communication += run.step.communication / count;
    out.optimizer += run.step.optimizer / count;
  }
  return out;
}

std::size_t median_run(const LabConfiguration& configuration) {
  CAPSTAN_CHECK(!configuration.runs.empty(), "a configuration with runs");
  std::vector<std::size_t> order(configuration.runs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](auto i) { return configuration.runs[i].samples_per_second; });
  return order[(order.size() - 1) / 2];
}

std::string short_name(const LabResult& result, const LabConfiguration& configuration) {
  const auto& name = configuration.name;
  const auto prefix = result.experiment + " [";
  if (!name.starts_with(prefix) || !name.ends_with("]")) return name;
  return name.substr(prefix.size(), name.size() - prefix.size() - 1);
}

}  // namespace capstan::report
