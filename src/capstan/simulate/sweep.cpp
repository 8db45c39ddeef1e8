#include "capstan/simulate/sweep.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "capstan/base/text.h"
#include "capstan/simulate/simulation.h"
#include "capstan/user_error.h"

namespace capstan::simulate {
namespace {

constexpr std::uint32_t kMost[] = {65536, 4096};  // by axis
constexpr std::uint64_t kLeastRounds = 20;
constexpr std::uint64_t kTryPushes = 25'000;  // per simulation in the search for the bottleneck
constexpr double kScales = 0.8;               // of linear
constexpr double kNearly = 0.97;              // of the maximum

bool read(std::string_view text, std::uint32_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string verdict(const Curve& curve, SweepRange::Axis axis) {
  const auto& last = curve.points.back();
  const auto made = [](const Point& p) { return p.prediction.samples_per_second; };
  const double most = made(*std::ranges::max_element(curve.points, {}, made));
  const auto enough =
      std::ranges::find_if(curve.points, [&](const Point& p) { return made(p) >= kNearly * most; });
  auto out = fmt::format("at most {:.0f} samples/s, nearly reached with {}", most,
                         counted(enough->at, axis == SweepRange::Axis::kWorkers ? "worker" : "server"));
  if (axis == SweepRange::Axis::kWorkers) {
    const auto scales = [](const Point& p) { return p.efficiency >= kScales; };
    const auto good = std::find_if(curve.points.rbegin(), curve.points.rend(), scales);
    if (good == curve.points.rend())
      out += fmt::format("; never {:.0f} % of linear", 100 * kScales);
    else
      out += fmt::format("; scales to {} ({:.0f} % of linear)", counted(good->at, "worker"),
                         100 * good->efficiency);
  }
  return out + fmt::format(". Bottleneck at {}: {}", last.at, last.bottleneck.sentence);
}

}  // namespace

double speed_alone(const Cluster& cluster, const std::string& strategy) {
  auto c = cluster;
  c.workers = 1;
  c.slowness.clear();
  c.failures = 0;
  c.rounds = std::min<std::uint64_t>(c.rounds, 1000);
  std::unique_ptr<strategy::Strategy> alone;
  try {
    alone = strategy::parse(strategy, 1);
  } catch (const UserError&) {
    // The strategy's options need several workers; for a single one only the push frequency matters.
    const auto round = strategy::parse(strategy, cluster.workers)->local_steps();
    alone = strategy::parse(round.uses_local_steps()
                                ? fmt::format("local-sgd:{}", std::max<std::uint64_t>(1, round.steps))
                                : "sync",
                            1);
  }
  return simulate(c, std::move(alone)).samples_per_second;
}

double efficiency(const Prediction& prediction, double alone) {
  return alone > 0 ? prediction.samples_per_second / (alone * prediction.workers) : 0;
}

SweepRange SweepRange::parse(const std::string& text) {
  const auto fail = [&](const std::string& why) {
    return UserError(fmt::format("--sweep {}: {}, such as workers=1..4096 or servers=1..64", text, why));
  };
  SweepRange range;
  const auto equals = text.find('='), dots = text.find("..");
  const auto name = text.substr(0, equals);
  if (name == "servers")
    range.axis = Axis::kServers;
  else if (name != "workers")
    throw fail("should be workers or servers and their range");
  const auto most = kMost[static_cast<std::size_t>(range.axis)];
  std::uint32_t first = 0, last = 0;
  if (equals == std::string::npos || dots == std::string::npos || dots < equals ||
      !read(std::string_view(text).substr(equals + 1, dots - equals - 1), first) ||
      !read(std::string_view(text).substr(dots + 2), last) || first < 1 || first > last || last > most)
    throw fail(fmt::format("should be a range within 1 and {}", most));
  for (std::uint64_t value = first; value < last; value *= 2)
    range.values.push_back(static_cast<std::uint32_t>(value));
  range.values.push_back(last);
  return range;
}

std::vector<Curve> sweep(const Cluster& cluster, const std::vector<std::string>& strategies,
                         const SweepRange& range, std::uint64_t pushes, const SweepWatch& watch) {
  std::vector<Curve> curves;
  const auto all = strategies.size() * range.values.size();
  std::size_t done = 0;
  for (const auto& strategy : strategies) {
    Curve curve{strategy, {}, "", ""};
    for (const auto value : range.values) {
      if (watch) watch(done, all, fmt::format("{}, {} {}", strategy, value, range.name()));
      ++done;
      auto c = cluster;
      (range.axis == SweepRange::Axis::kWorkers ? c.workers : c.servers) = value;
      std::unique_ptr<strategy::Strategy> made;
      try {
        made = strategy::parse(strategy, c.workers);
      } catch (const UserError& error) {  // batch:8 with 4 workers
        curve.missing = error.what();
        continue;
      }
      c.rounds = std::min(c.rounds, std::max(kLeastRounds, pushes / c.workers));
      Point point{value, simulate(c, std::move(made)), 0, {}};
      point.efficiency = efficiency(point.prediction, speed_alone(c, strategy));
      point.bottleneck = find_bottleneck(c, strategy, point.prediction, std::min(pushes, kTryPushes));
      curve.points.push_back(std::move(point));
    }
    if (curve.points.empty()) throw UserError(curve.missing);  // also for an unknown strategy
    curve.verdict = verdict(curve, range.axis);
    curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace capstan::simulate
