#include "capstan/report/lab_charts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "capstan/report/bootstrap.h"
#include "capstan/report/html.h"

namespace capstan::report {
namespace {

constexpr const char* kTrainers = "trainers";

// A configuration with runs, and what identifies it in all plots.
struct Shown {
  const LabConfiguration* configuration;
  std::size_t file;
  std::string label;
  const char* colour;
};

std::vector<Shown> shown_of(std::span<const LabFile> files) {
  std::vector<Shown> out;
  std::size_t index = 0;  // counts all, as the tables do
  for (std::size_t file = 0; file < files.size(); ++file) {
    for (const auto& c : files[file].result.configurations) {
      const auto* its_colour = colour(index++);
      if (is_measured(c)) out.push_back({&c, file, chart_label(files, file, c), its_colour});
    }
  }
  return out;
}

// The mean throughput with its interval.
Json throughput_json(const LabConfiguration& c) {
  Json out{{"mean", mean_throughput(c)}};
  const auto interval = mean_interval(throughputs(c));
  out["low"] = interval ? Json(interval->low) : Json();
  out["high"] = interval ? Json(interval->high) : Json();
  return out;
}

Json bars(const std::vector<Shown>& all) {
  auto out = Json::array();
  for (const auto& s : all) {
    const auto step = mean_step(*s.configuration);
    auto bar = throughput_json(*s.configuration);
    bar["label"] = s.label;
    bar["colour"] = s.colour;
    bar["step"] =
        std::vector<double>{step.data, step.forward, step.backward, step.communication, step.optimizer};
    out.push_back(std::move(bar));
  }
  return out;
}

// Configurations of different models may be so far apart that a linear axis hides all but one.
bool needs_logarithm(const std::vector<Shown>& all) {
  constexpr double kMostRatio = 20;
  double low = INFINITY, high = 0;
  for (const auto& s : all) {
    const auto mean = mean_throughput(*s.configuration);
    low = std::min(low, mean);
    high = std::max(high, mean);
  }
  return low > 0 && high > kMostRatio * low;
}

constexpr double kLeastStraggler = 1e-3;  // ms; shorter times are not resolved

// Of all runs; none if no gradient was late, as with a single trainer.
std::vector<double> straggler_times(const LabConfiguration& c) {
  std::vector<double> out;
  for (const auto& run : c.runs) out.insert(out.end(), run.straggler_ms.begin(), run.straggler_ms.end());
  if (std::ranges::none_of(out, [](double v) { return v >= kLeastStraggler; })) out.clear();
  return out;
}

// Ascending limits of at most kMost bins that contain [low, high], low > 0. A few outliers are usually much
// later than the rest, so the bins have equal ratios, about.
std::vector<double> bin_limits(double low, double high) {
  constexpr std::size_t kMost = 30;
  std::vector<double> out;
  for (const auto& steps : {std::vector<double>{1, 1.5, 2, 3, 5, 7}, {1, 2, 5}, {1}}) {
    out.clear();
    for (double decade = std::pow(10, std::floor(std::log10(low))); out.empty() || out.back() <= high;
         decade *= 10)
      for (const double step : steps) out.push_back(step * decade);
    const auto first = std::ranges::upper_bound(out, low);  // low is at least the first limit
    out.erase(out.begin(), first - (first == out.begin() ? 0 : 1));
    const auto last = std::ranges::upper_bound(out, high);
    if (last != out.end()) out.erase(last + 1, out.end());
    if (out.size() <= kMost + 1) break;
  }
  return out;
}

// Values below the first limit are in the first bin.
std::vector<double> percentages(const std::vector<double>& values, const std::vector<double>& limits) {
  std::vector<double> out(limits.size() - 1, 0);
  for (const double v : values) {
    const auto above = std::ranges::upper_bound(limits, v) - limits.begin();
    const auto bin = std::clamp<std::ptrdiff_t>(above - 1, 0, static_cast<std::ptrdiff_t>(out.size()) - 1);
    out[static_cast<std::size_t>(bin)] += 100.0 / static_cast<double>(values.size());
  }
  return out;
}

Json straggler(const std::vector<Shown>& all) {
  double low = INFINITY, high = 0;
  for (const auto& s : all) {
    for (const double v : straggler_times(*s.configuration)) {
      low = std::min(low, std::max(v, kLeastStraggler));
      high = std::max(high, std::max(v, kLeastStraggler));
    }
  }
  if (high == 0) return {};
  const auto limits = bin_limits(low, high);
  auto bins = Json::array(), series = Json::array();
  for (std::size_t i = 0; i + 1 < limits.size(); ++i)
    bins.push_back(fmt::format("{:g}–{:g}", limits[i], limits[i + 1]));
  for (const auto& s : all) {
    const auto values = straggler_times(*s.configuration);
    if (!values.empty())
      series.push_back({{"label", s.label}, {"colour", s.colour}, {"percent", percentages(values, limits)}});
  }
  return {{"bins", bins}, {"series", series}};
}

std::optional<double> trainers_of(const LabConfiguration& c) {
  for (const auto& [name, value] : c.axis)
    if (const auto* count = std::get_if<std::int64_t>(&value); name == kTrainers && count && *count > 0)
      return static_cast<double>(*count);
  return {};
}

// The experiment and the other values that vary make a curve.
std::string curve_name(std::span<const LabFile> files, const Shown& s) {
  std::vector<std::string> parts;
  const auto& name = s.configuration->name;
  const auto experiment = name.substr(0, name.find(" ["));
  if (experiment != files[s.file].result.experiment) parts.push_back(experiment);
  for (const auto& [option, value] : s.configuration->axis)
    if (option != kTrainers) parts.push_back(fmt::format("{}={}", option, text_of(value)));
  auto out = parts.empty() ? experiment : fmt::format("{}", fmt::join(parts, " "));
  return files.size() > 1 ? out + " · " + result_letter(s.file) : out;
}

Json scaling(std::span<const LabFile> files, const std::vector<Shown>& all) {
  std::map<std::string, std::map<double, const LabConfiguration*>> curves;
  std::set<double> counts;
  for (const auto& s : all) {
    const auto trainers = trainers_of(*s.configuration);
    if (!trainers) continue;
    curves[curve_name(files, s)][*trainers] = s.configuration;
    counts.insert(*trainers);
  }
  if (counts.size() < 2) return {};
  auto shown = Json::array();
  double per_trainer = 0;  // of the fastest curve, with the fewest trainers
  std::size_t index = 0;
  for (const auto& [name, points] : curves) {
    auto list = Json::array();
    for (const auto& [trainers, c] : points) {
      auto point = throughput_json(*c);
      point["trainers"] = trainers;
      list.push_back(std::move(point));
      if (trainers == *counts.begin()) per_trainer = std::max(per_trainer, mean_throughput(*c) / trainers);
    }
    shown.push_back({{"label", name}, {"colour", colour(index++)}, {"points", list}});
  }
  auto ideal = Json::array();
  for (const double x : {*counts.begin(), *counts.rbegin()})
    ideal.push_back({{"x", x}, {"y", per_trainer * x}});
  return {{"curves", shown}, {"ideal", ideal}};
}

}  // namespace

std::string result_letter(std::size_t index) {
  return index < 26 ? std::string(1, static_cast<char>('A' + index)) : fmt::format("{}", index + 1);
}

std::string chart_label(std::span<const LabFile> files, std::size_t file,
                        const LabConfiguration& configuration) {
  const auto name = short_name(files[file].result, configuration);
  return files.size() > 1 ? fmt::format("{} · {}", name, result_letter(file)) : name;
}

LabCharts lab_charts(std::span<const LabFile> files) {
  const auto all = shown_of(files);
  const auto stragglers = straggler(all);
  const auto curves = scaling(files, all);
  return {.data = {{"bars", bars(all)},
                   {"logarithmic", needs_logarithm(all)},
                   {"straggler", stragglers},
                   {"scaling", curves}},
          .bars = all.size(),
          .has_straggler = stragglers.contains("bins"),
          .has_scaling = curves.contains("curves")};
}

}  // namespace capstan::report
