#include "capstan/report/lab_comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "capstan/user_error.h"

namespace capstan::report {
namespace {

// Options that say where something is, not what was measured.
constexpr std::string_view kPlaces[] = {
    "data_config_path",  "data_dir", "filestore",          "master_addr",        "master_port",
    "model_config_path", "save",     "server_config_path", "trainer_config_path"};

// Names and values that differ, in the order of names.
std::vector<std::string> differences(const LabOptions& options, const LabOptions& first) {
  const std::map<std::string, LabValue> mine(options.begin(), options.end());
  const std::map<std::string, LabValue> others(first.begin(), first.end());
  std::set<std::string> names;
  for (const auto& [name, value] : mine) names.insert(name);
  for (const auto& [name, value] : others) names.insert(name);
  for (const auto place : kPlaces) names.erase(std::string(place));
  const auto text = [](const auto& values, const std::string& name) {
    const auto found = values.find(name);
    const auto value = found == values.end() ? "" : text_of(found->second);
    return value.empty() ? std::string("none") : value;
  };
  std::vector<std::string> out;
  for (const auto& name : names)
    if (text(mine, name) != text(others, name))
      out.push_back(fmt::format("{} {} instead of {}", name, text(mine, name), text(others, name)));
  return out;
}

// The kernel keeps a part of the memory, which depends on its version.
bool is_same_memory(std::uint64_t a, std::uint64_t b) {
  const auto mine = static_cast<double>(a), other = static_cast<double>(b);
  return std::abs(mine - other) <= 0.01 * std::max(mine, other);
}

const LabConfiguration* find(const LabResult& result, const std::string& name) {
  const auto found = std::ranges::find(result.configurations, name, &LabConfiguration::name);
  return found == result.configurations.end() ? nullptr : &*found;
}

LabVerdict verdict_of(const std::optional<Interval>& interval) {
  if (!interval) return LabVerdict::kTooFewRepeats;
  if (interval->low > 1) return LabVerdict::kFaster;
  return interval->high < 1 ? LabVerdict::kSlower : LabVerdict::kWithinNoise;
}

// Whether it has a throughput to compare; if not, says why.
bool is_comparable(const LabConfiguration& c, const std::string& path, std::vector<std::string>& notes) {
  const bool comparable = is_measured(c) && mean_throughput(c) > 0;
  if (!comparable)
    notes.push_back(fmt::format("{}: no result in {}{}", c.name, path, c.error ? ": " + *c.error : ""));
  return comparable;
}

void compare_configuration(const LabConfiguration& later, const LabConfiguration& first, const LabFile& file,
                           const LabFile& first_file, LabComparison& out) {
  // Both are called, so that both are named.
  const bool has_first = is_comparable(first, first_file.path, out.notes);
  if (!is_comparable(later, file.path, out.notes) || !has_first) return;
  LabDifference d;
  d.configuration = later.name;
  d.title = short_name(file.result, later);
  d.path = file.path;
  d.first = mean_throughput(first);
  d.later = mean_throughput(later);
  d.ratio = d.later / d.first;
  d.interval = ratio_interval(throughputs(later), throughputs(first));
  d.verdict = verdict_of(d.interval);
  out.differences.push_back(std::move(d));
  if (const auto options = differences(later.options, first.options); !options.empty())
    out.notes.push_back(
        fmt::format("{}: other options in {}: {}", later.name, file.path, fmt::join(options, ", ")));
}

}  // namespace

const char* text_of(LabVerdict verdict) {
  switch (verdict) {
    case LabVerdict::kFaster:
      return "faster";
    case LabVerdict::kSlower:
      return "slower";
    case LabVerdict::kWithinNoise:
      return "within noise";
    case LabVerdict::kTooFewRepeats:
      return "not enough repeats to tell";
  }
  return "";
}

std::vector<std::string> environment_differences(const LabResult& result, const LabResult& first) {
  const auto &mine = result.machine, &other = first.machine;
  std::vector<std::string> out;
  if (mine.cpu != other.cpu) out.push_back(fmt::format("cpu {} instead of {}", mine.cpu, other.cpu));
  if (mine.cores != other.cores)
    out.push_back(fmt::format("cores {} instead of {}", mine.cores, other.cores));
  if (!is_same_memory(mine.memory_bytes, other.memory_bytes))
    out.push_back(fmt::format("memory_bytes {} instead of {}", mine.memory_bytes, other.memory_bytes));
  auto versions = differences(result.versions, first.versions);
  if (mine.cores != other.cores)  // the versions of a run list them, too
    std::erase_if(versions, [](const auto& line) { return line.starts_with("cores "); });
  out.insert(out.end(), versions.begin(), versions.end());
  return out;
}

LabComparison compare(std::span<const LabFile> files, bool force) {
  LabComparison out;
  for (std::size_t i = 1; i < files.size(); ++i) {
    const auto &first = files.front(), &file = files[i];
    if (const auto other = environment_differences(file.result, first.result); !other.empty()) {
      const auto what = fmt::format("{}: measured on another machine or version than {}: {}", file.path,
                                    first.path, fmt::join(other, ", "));
      if (!force) throw UserError(what + "; --force compares anyway");
      out.notes.push_back(what);
    }
    for (const auto& c : file.result.configurations) {
      if (const auto* same = find(first.result, c.name))
        compare_configuration(c, *same, file, first, out);
      else
        out.notes.push_back(fmt::format("{}: only in {}", c.name, file.path));
    }
    for (const auto& c : first.result.configurations)
      if (!find(file.result, c.name)) out.notes.push_back(fmt::format("{}: not in {}", c.name, file.path));
  }
  return out;
}

Json json_of(const LabComparison& comparison) {
  auto differences = Json::array();
  for (const auto& d : comparison.differences) {
    Json interval;
    if (d.interval) interval = Json{{"low", d.interval->low}, {"high", d.interval->high}};
    differences.push_back({{"configuration", d.configuration},
                           {"path", d.path},
                           {"first_samples_per_second", d.first},
                           {"samples_per_second", d.later},
                           {"ratio", d.ratio},
                           {"interval", interval},
                           {"verdict", text_of(d.verdict)}});
  }
  return {{"differences", differences}, {"notes", comparison.notes}};
}

}  // namespace capstan::report
