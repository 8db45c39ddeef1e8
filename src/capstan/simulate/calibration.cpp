#include "capstan/simulate/calibration.h"

#include <cmath>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <toml++/toml.h>

#include "capstan/strategy/strategy_spec.h"
#include "capstan/user_error.h"

namespace capstan::simulate {
namespace {

using Json = nlohmann::json;

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& why) {
  throw UserError(fmt::format("--calibrate: {}: {}", file.string(), why));
}

// A resumed run has several results; the last one is used.
Json read_result(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) fail(file, "cannot be read: give the run folder of a finished capstan train");
  Json result;
  for (std::string line; std::getline(in, line);) {
    auto json = Json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("compute_seconds")) result = std::move(json);
  }
  if (result.is_null()) fail(file, "has no result: the run did not end");
  return result;
}

toml::table read_config(const std::filesystem::path& file) {
  try {
    return toml::parse_file(file.string());
  } catch (const toml::parse_error& error) {
    fail(file, fmt::format("cannot be read: {}", error.description()));
  }
}

}  // namespace

Calibration Calibration::read(const std::filesystem::path& run) {
  const auto file = run / "metrics.jsonl";
  const auto result = read_result(file);
  const auto config = read_config(run / "config.toml");
  const auto number = [&](const char* key) {
    const auto found = result.find(key);
    if (found == result.end() || !found->is_number() || !(found->get<double>() >= 0))
      fail(file, fmt::format("the result has no {}", key));
    return found->get<double>();
  };
  const auto text = [&](const char* key) {
    const auto found = result.find(key);
    if (found == result.end() || !found->is_string()) fail(file, fmt::format("the result has no {}", key));
    return found->get<std::string>();
  };
  const auto whole = [&](const char* key) {
    // Values that the run derived from its machine are in a separate table.
    const auto given = config[key], derived = config["derived"][key];
    const auto value = given.value<std::int64_t>().value_or(derived.value_or(std::int64_t{0}));
    if (value < 1 || value > 1 << 20) fail(run / "config.toml", fmt::format("has no {}", key));
    return static_cast<std::uint32_t>(value);
  };

  Calibration out;
  out.network = text("network");
  out.strategy = text("strategy");
  const double workers = number("workers");
  if (workers < 1 || workers > 65536) fail(file, "the result has no workers");
  out.workers = static_cast<std::uint32_t>(workers);
  out.batch = whole("batch-size");
  out.threads = whole("threads");
  out.state_tensors = text("optimizer").starts_with("adam") ? 2 : 1;
  out.samples_per_second = number("samples_per_second");
  const double samples = out.samples_per_second * number("seconds");
  if (samples <= 0) fail(file, "the run has trained nothing");
  // The last batches may have been smaller, so time is measured per sample.
  const double batches = samples / workers / out.batch;
  out.compute = (number("compute_seconds") + number("data_seconds")) / batches;
  if (out.compute <= 0) fail(file, "the run has computed nothing");
  // With several workers, waiting for each other cannot be separated from the exchange.
  const double updates = number("steps") - number("resumed_from");
  if (out.workers == 1 && out.strategy != "single" && updates > 0) {
    // With groups of tensors, steps count the updates of the default group.
    const double pushes =
        updates * strategy::parse_strategy_spec(out.strategy, 1).first->pushes_per_update(1);
    out.exchange = number("communication_seconds") / pushes;
    out.elements = static_cast<std::uint64_t>(std::llround(number("bytes_pushed") / pushes / sizeof(float)));
  }
  return out;
}

void Calibration::set_exchange(Cluster& cluster) const {
  if (exchange <= 0) return;
  const double bytes = (1 + 2 * (1 + cluster.state_tensors)) * static_cast<double>(elements) * sizeof(float);
  cluster.memory_rate = std::max(cluster.memory_rate, bytes / exchange);
  cluster.latency = std::max(0.0, exchange - bytes / cluster.memory_rate) / 2;
}

}  // namespace capstan::simulate
