#include "capstan/report/simulation.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "capstan/base/json.h"
#include "capstan/base/text.h"
#include "capstan/report/columns.h"
#include "capstan/simulate/units.h"

namespace capstan::report {
namespace {

using simulate::Prediction;
using simulate::quantile;
using simulate::TimeCategory;

// A strategy's spelling, shortened for the first column.
std::string short_name(const std::string& name) {
  return cut(name, 18);
}

double dropped(const Prediction& p) {
  return p.pushes > 0 ? static_cast<double>(p.dropped) / static_cast<double>(p.pushes) : 0;
}

std::string percent(double part) {
  return fmt::format("{:.1f}", 100 * part);
}

std::string number(double value) {
  return fmt::format("{:.{}f}", value, value < 10 ? 2 : value < 100 ? 1 : 0);
}

// A paragraph of the report.
std::string paragraph(const std::string& text) {
  return wrapped(text, 0, 2) + "\n";
}

std::string cluster_text(const Scenario& scenario) {
  const auto& c = scenario.cluster;
  const double bytes = static_cast<double>(c.elements) * sizeof(float);
  auto out = fmt::format("{} ({}), {}, {}", scenario.model, simulate::bytes_text(bytes),
                         counted(c.workers, "worker"), counted(c.servers, "server"));
  if (c.machine)
    out += fmt::format(", one machine of {:g} cores", c.machine->cores);
  else
    out +=
        fmt::format(", links of {} and {}", simulate::rate_text(c.bandwidth), simulate::time_text(c.latency));
  return out + fmt::format("; compute {}", c.compute.text());
}

Settings settings_of(const Scenario& scenario, const simulate::SweepRange& range) {
  const auto& c = scenario.cluster;
  Settings out = {
      {"model", fmt::format("{}, {}", scenario.model,
                            simulate::bytes_text(static_cast<double>(c.elements) * sizeof(float)))}};
  if (range.axis != simulate::SweepRange::Axis::kWorkers)
    out.emplace_back("workers", fmt::format("{}", c.workers));
  if (range.axis != simulate::SweepRange::Axis::kServers)
    out.emplace_back("servers", fmt::format("{}", c.servers));
  out.emplace_back("batch size", fmt::format("{}", c.batch));
  out.emplace_back("compute", c.compute.text() + " s a batch");
  if (c.machine)
    out.emplace_back("cores", fmt::format("{:g}, {:g} of a worker", c.machine->cores, c.machine->threads));
  out.emplace_back("bandwidth", simulate::rate_text(c.bandwidth));
  if (c.server_bandwidth) out.emplace_back("of servers", simulate::rate_text(*c.server_bandwidth));
  out.emplace_back("latency", simulate::time_text(c.latency));
  out.emplace_back("memory rate", simulate::rate_text(c.memory_rate));
  if (c.failures > 0)
    out.emplace_back("failures", fmt::format("{:g} an hour and worker, back after {}", 3600 * c.failures,
                                             simulate::time_text(c.repair)));
  if (!scenario.slow_workers.empty()) out.emplace_back("slow workers", scenario.slow_workers);
  if (!scenario.calibrated.empty()) out.emplace_back("calibrated", scenario.calibrated);
  out.emplace_back("seed", fmt::format("{}", c.seed));
  return out;
}

std::string tables(const std::vector<simulate::Forecast>& results) {
  std::string out;
  out += fmt::format("\n{:<19}{:>10}{:>10}{:>9}{:>21}{:>10}\n", "strategy", "samples/s", "updates/s",
                     "linear %", "stale avg/p50/99/max", "dropped %");
  for (const auto& [p, efficiency, bottleneck, relief] : results) {
    const auto stale = fmt::format("{}/{}/{}/{}", number(p.staleness_mean), quantile(p.staleness, 0.5),
                                   quantile(p.staleness, 0.99), p.staleness_max);
    out += fmt::format("{:<19}{:>10}{:>10}{:>9}{:>21}{:>10}\n", short_name(p.strategy),
                       number(p.samples_per_second), number(p.updates_per_second), percent(efficiency), stale,
                       percent(dropped(p)));
  }
  out += fmt::format("\n{:<19}{:>8}{:>8}{:>9}{:>11}{:>8}{:>8}{:>8}\n", "workers' time, %", "compute", "cores",
                     "own link", "srv. links", "update", "others", "down");
  for (const auto& r : results) {
    const auto& p = r.prediction;
    const auto part = [&](TimeCategory what) { return percent(p.part(what)); };
    out += fmt::format("{:<19}{:>8}{:>8}{:>9}{:>11}{:>8}{:>8}{:>8}\n", short_name(p.strategy),
                       part(TimeCategory::kCompute), part(TimeCategory::kCores), part(TimeCategory::kOwnLink),
                       part(TimeCategory::kServerLink), part(TimeCategory::kUpdate),
                       part(TimeCategory::kOthers), part(TimeCategory::kDown));
  }
  out += fmt::format("\n{:<19}{:>9}{:>9}{:>9}{:>11}{:>11}{:>11}\n", "servers busy, %", "in", "out", "update",
                     "pushed", "pulled", "predicted");
  for (const auto& r : results) {
    const auto& p = r.prediction;
    out +=
        fmt::format("{:<19}{:>9}{:>9}{:>9}{:>11}{:>11}{:>11}\n", short_name(p.strategy), percent(p.incoming),
                    percent(p.outgoing), percent(p.updating), simulate::bytes_text(p.pushed_bytes),
                    simulate::bytes_text(p.pulled_bytes), simulate::time_text(p.seconds));
  }
  out += "\n";
  for (const auto& r : results)
    out += paragraph(fmt::format("{}: bottleneck: {}{}", r.prediction.strategy, r.bottleneck.sentence,
                                 r.relief.empty() ? "" : ", " + r.relief));
  return out;
}

// At most 32 bins of the same width.
Json json_of(const simulate::Histogram& histogram) {
  constexpr std::size_t kClasses = 32;
  const auto width = std::max<std::size_t>(1, (histogram.size() + kClasses - 1) / kClasses);
  auto out = Json::array();
  for (std::size_t from = 0; from < histogram.size(); from += width) {
    const auto end = std::min(histogram.size(), from + width);
    const auto begin = histogram.begin() + static_cast<std::ptrdiff_t>(from);
    const auto count =
        std::accumulate(begin, histogram.begin() + static_cast<std::ptrdiff_t>(end), std::uint64_t{0});
    out.push_back({{"from", from}, {"to", end - 1}, {"pushes", count}});
  }
  return out;
}

Json json_of(const Prediction& p, double efficiency, const simulate::Bottleneck& bottleneck) {
  Json time;
  for (std::size_t i = 0; i < simulate::kTimeCategories; ++i)
    time[simulate::name(static_cast<TimeCategory>(i))] = p.spent[i];
  return {{"strategy", p.strategy},
          {"workers", p.workers},
          {"samples_per_second", p.samples_per_second},
          {"updates_per_second", p.updates_per_second},
          {"scaling_efficiency", efficiency},
          {"seconds", p.seconds},
          {"updates", p.updates},
          {"pushes", p.pushes},
          {"dropped_pushes", p.dropped},
          {"failures", p.failures},
          {"lost_rounds", p.lost_rounds},
          {"bytes_pushed", p.pushed_bytes},
          {"bytes_pulled", p.pulled_bytes},
          {"staleness_mean", p.staleness_mean},
          {"staleness_p50", quantile(p.staleness, 0.5)},
          {"staleness_p99", quantile(p.staleness, 0.99)},
          {"staleness_max", p.staleness_max},
          {"staleness_histogram", json_of(p.staleness)},
          {"server_busy", {{"incoming", p.incoming}, {"outgoing", p.outgoing}, {"update", p.updating}}},
          {"cores_busy", p.cores},
          {"worker_time", time},
          {"bottleneck", simulate::name(bottleneck.limit)},
          {"bottleneck_text", bottleneck.sentence}};
}

// In bytes, seconds and bytes/s; unlimited values are null.
Json json_of(const Scenario& scenario) {
  const auto& c = scenario.cluster;
  Json out{{"model", scenario.model},      {"bytes", c.elements * sizeof(float)},
           {"workers", c.workers},         {"servers", c.servers},
           {"batch_size", c.batch},        {"compute", c.compute.text()},
           {"bandwidth", c.bandwidth},     {"latency", c.latency},
           {"memory_rate", c.memory_rate}, {"failures_per_second", c.failures},
           {"repair", c.repair},           {"seed", c.seed}};
  if (c.machine) {
    out["cores"] = c.machine->cores;
    out["threads"] = c.machine->threads;
  }
  if (!scenario.calibrated.empty()) out["calibrated"] = scenario.calibrated;
  return out;
}

}  // namespace

std::string simulation_text(const Scenario& scenario, const std::vector<simulate::Forecast>& results) {
  auto out = paragraph(cluster_text(scenario));
  if (!scenario.calibrated.empty()) out += paragraph(scenario.calibrated);
  return out + tables(results);
}

std::string simulation_json(const Scenario& scenario, const std::vector<simulate::Forecast>& results) {
  Json out{{"ok", true}, {"cluster", json_of(scenario)}, {"predictions", Json::array()}};
  for (const auto& r : results) {
    auto prediction = json_of(r.prediction, r.efficiency, r.bottleneck);
    if (!r.relief.empty()) prediction["relief"] = r.relief;
    out["predictions"].push_back(std::move(prediction));
  }
  return json_line(out);
}

std::string sweep_text(const simulate::SweepRange& range, const std::vector<simulate::Curve>& curves) {
  std::string out;
  for (const auto& curve : curves) {
    out += fmt::format("{}\n{:<10}{:>12}{:>11}{:>10}{:>12}  {}\n", curve.strategy, range.name(), "samples/s",
                       "updates/s", "linear %", "stale avg", "limited by");
    for (const auto& p : curve.points)
      out +=
          fmt::format("{:<10}{:>12}{:>11}{:>10}{:>12}  {}\n", p.at, number(p.prediction.samples_per_second),
                      number(p.prediction.updates_per_second), percent(p.efficiency),
                      number(p.prediction.staleness_mean), simulate::name(p.bottleneck.limit));
    if (!curve.missing.empty()) out += paragraph("left out: " + curve.missing);
    out += "\n";
  }
  for (const auto& curve : curves) out += paragraph(curve.strategy + ": " + curve.verdict);
  return out;
}

std::string sweep_json(const Scenario& scenario, const simulate::SweepRange& range,
                       const std::vector<simulate::Curve>& curves, const std::string& page) {
  Json out{{"ok", true}, {"cluster", json_of(scenario)}, {"sweep", range.name()}, {"curves", Json::array()}};
  for (const auto& curve : curves) {
    auto points = Json::array();
    for (const auto& p : curve.points) {
      auto point = json_of(p.prediction, p.efficiency, p.bottleneck);
      point[range.name()] = p.at;
      points.push_back(std::move(point));
    }
    Json object{{"strategy", curve.strategy}, {"verdict", curve.verdict}, {"points", points}};
    if (!curve.missing.empty()) object["missing"] = curve.missing;
    out["curves"].push_back(std::move(object));
  }
  out["page"] = page;
  return json_line(out);
}

Scaling sweep_page(const Scenario& scenario, const simulate::SweepRange& range,
                   const std::vector<simulate::Curve>& curves) {
  Scaling out;
  std::vector<std::string> names;
  for (const auto& curve : curves) {
    names.push_back(curve.strategy);
    auto& shown = out.curves.emplace_back(Scaling::Curve{curve.strategy, {}, curve.verdict});
    for (const auto& p : curve.points)
      shown.points.push_back({static_cast<double>(p.at), p.prediction.samples_per_second, p.efficiency,
                              p.prediction.staleness_mean, dropped(p.prediction),
                              simulate::name(p.bottleneck.limit)});
  }
  out.axis = range.name();
  out.title = fmt::format("{} on {} to {} {}: {}", scenario.model, range.values.front(), range.values.back(),
                          range.name(), fmt::join(names, ", "));
  out.settings = settings_of(scenario, range);
  return out;
}

}  // namespace capstan::report
