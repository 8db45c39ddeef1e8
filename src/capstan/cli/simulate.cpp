// Predicts a job on a cluster that is not here.

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "capstan/base/time.h"
#include "capstan/base/user_error.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/flags.h"
#include "capstan/cli/output.h"
#include "capstan/layouts/network_layout.h"
#include "capstan/simulate/bottleneck.h"
#include "capstan/simulate/simulation.h"
#include "capstan/simulate/sweep.h"
#include "capstan/simulate/units.h"

namespace capstan::cli {
namespace {

using Json = nlohmann::ordered_json;
using simulate::Cluster;
using simulate::Prediction;
using simulate::quantile;
using simulate::Spent;

constexpr std::uint64_t kMostWorkers = 65536;
constexpr std::uint64_t kMostServers = 4096;
constexpr std::uint64_t kTryPushes = 50'000;     // of a try that looks for the bottleneck
constexpr std::uint64_t kSweepPushes = 100'000;  // of a point, unless --steps says more
constexpr std::size_t kColumns = 80;

struct Flags {
  std::string strategies = "sync,async";
  std::string model = "resnet50";
  std::string compute = "0.1";
  std::string slow_workers, bandwidth, server_bandwidth, latency, memory_rate = "10GB/s";
  std::string failures = "0", repair = "60s";
  std::string sweep;
  std::filesystem::path html = "simulate.html";
  double cores = 0, threads = 1;
  std::uint64_t steps = 0;
  Cluster cluster;
  bool json = false;
};

std::vector<std::string> split(const std::string& flag, const std::string& text) {
  std::vector<std::string> out;
  std::istringstream words(text + ",");
  for (std::string word; std::getline(words, word, ',');) {
    if (word.empty()) throw UserError(fmt::format("{} {}: a name is empty", flag, text));
    if (std::ranges::find(out, word) != out.end())
      throw UserError(fmt::format("{} {}: {} is named twice", flag, text, word));
    out.push_back(word);
  }
  return out;
}

// "1:3x,5:2x".
std::map<std::uint32_t, double> parse_slow_workers(const std::string& text, std::uint32_t workers) {
  std::map<std::uint32_t, double> out;
  if (text.empty()) return out;
  for (const auto& entry : split("--slow-worker", text)) {
    const auto colon = entry.find(':');
    const auto rank = entry.substr(0, colon);
    const bool digits = !rank.empty() && rank.size() < 9 &&
                        std::ranges::all_of(rank, [](char c) { return c >= '0' && c <= '9'; });
    if (colon == std::string::npos || !digits)
      throw UserError(fmt::format("--slow-worker {}: should be RANK:FACTOR, such as 1:3x", entry));
    if (std::stoul(rank) >= workers)
      throw UserError(fmt::format("--slow-worker {}: ranks of {} are 0 to {}", entry,
                                  counted(workers, "worker"), workers - 1));
    out[static_cast<std::uint32_t>(std::stoul(rank))] =
        simulate::parse_factor("--slow-worker", entry.substr(colon + 1));
  }
  return out;
}

// Shows how far a long simulation is, where somebody looks.
class Notice {
 public:
  void show(const std::string& line) {
    if (!terminal_ || SteadyClock::now() - last_ < std::chrono::milliseconds(100)) return;
    last_ = SteadyClock::now();
    fmt::print(stderr, "\r\033[K{}", line);
    std::fflush(stderr);
    shown_ = true;
  }
  ~Notice() {
    if (shown_) fmt::print(stderr, "\r\033[K");
  }

 private:
  const bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  TimePoint last_ = SteadyClock::now();
  bool shown_ = false;
};

struct Result {
  Prediction prediction;
  double efficiency = 0;
  simulate::Bottleneck bottleneck;
  std::string relief;  // empty where nothing was tried
};

std::string percent(double part) {
  return fmt::format("{:.1f}", 100 * part);
}

std::string number(double value) {
  return fmt::format("{:.{}f}", value, value < 10 ? 2 : value < 100 ? 1 : 0);
}

// Within the terminal's columns, later lines indented.
std::string wrapped(const std::string& text) {
  std::istringstream in(text);
  std::string out, word;
  std::size_t column = 0;
  while (in >> word) {
    const auto width = static_cast<std::size_t>(
        std::ranges::count_if(word, [](unsigned char c) { return (c & 0xc0) != 0x80; }));
    if (column > 0 && column + 1 + width > kColumns) {
      out += "\n  ";
      column = 2;
    } else if (column > 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += width;
  }
  return out + "\n";
}

std::string cluster_text(const Cluster& c, const std::string& model) {
  const double bytes = static_cast<double>(c.elements) * sizeof(float);
  auto out = fmt::format("{} ({}), {}, {}", model, simulate::bytes_text(bytes), counted(c.workers, "worker"),
                         counted(c.servers, "server"));
  if (c.machine)
    out += fmt::format(", one machine of {:g} cores", c.machine->cores);
  else
    out +=
        fmt::format(", links of {} and {}", simulate::rate_text(c.bandwidth), simulate::time_text(c.latency));
  return out + fmt::format("; compute {}", c.compute.text());
}

void print_tables(const std::vector<Result>& results) {
  fmt::print("\n{:<19}{:>10}{:>10}{:>9}{:>21}{:>10}\n", "strategy", "samples/s", "updates/s", "linear %",
             "stale avg/p50/99/max", "dropped %");
  for (const auto& [p, efficiency, bottleneck, relief] : results) {
    const auto stale = fmt::format("{}/{}/{}/{}", number(p.staleness_mean), quantile(p.staleness, 0.5),
                                   quantile(p.staleness, 0.99), p.staleness_max);
    fmt::print("{:<19}{:>10}{:>10}{:>9}{:>21}{:>10}\n", p.strategy, number(p.samples_per_second),
               number(p.updates_per_second), percent(efficiency), stale,
               percent(p.pushes > 0 ? static_cast<double>(p.dropped) / static_cast<double>(p.pushes) : 0));
  }
  fmt::print("\n{:<19}{:>8}{:>8}{:>9}{:>11}{:>8}{:>8}{:>8}\n", "workers' time, %", "compute", "cores",
             "own link", "srv. links", "update", "others", "down");
  for (const auto& r : results) {
    const auto& p = r.prediction;
    const auto part = [&](Spent what) { return percent(p.part(what)); };
    fmt::print("{:<19}{:>8}{:>8}{:>9}{:>11}{:>8}{:>8}{:>8}\n", p.strategy, part(Spent::kCompute),
               part(Spent::kCores), part(Spent::kOwnLink), part(Spent::kServerLink), part(Spent::kUpdate),
               part(Spent::kOthers), part(Spent::kDown));
  }
  fmt::print("\n{:<19}{:>9}{:>9}{:>9}{:>11}{:>11}{:>11}\n", "servers busy, %", "in", "out", "update",
             "pushed", "pulled", "predicted");
  for (const auto& r : results) {
    const auto& p = r.prediction;
    fmt::print("{:<19}{:>9}{:>9}{:>9}{:>11}{:>11}{:>11}\n", p.strategy, percent(p.incoming),
               percent(p.outgoing), percent(p.updating), simulate::bytes_text(p.pushed_bytes),
               simulate::bytes_text(p.pulled_bytes), simulate::time_text(p.seconds));
  }
  fmt::print("\n");
  for (const auto& r : results)
    fmt::print("{}", wrapped(fmt::format("{}: bottleneck: {}{}", r.prediction.strategy, r.bottleneck.sentence,
                                         r.relief.empty() ? "" : ", " + r.relief)));
}

// At most 32 classes of the same width.
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
  for (std::size_t i = 0; i < simulate::kSpentCount; ++i)
    time[simulate::name(static_cast<Spent>(i))] = p.spent[i];
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

int run_once(const Flags& flags, const std::vector<std::string>& strategies) {
  std::vector<Result> results;
  {
    Notice notice;
    for (const auto& strategy : strategies) {
      const auto watch = [&](double part) {
        notice.show(fmt::format("{}: {:.0f} % of {} rounds of each worker", strategy, 100 * part,
                                flags.cluster.rounds));
      };
      Result r;
      r.prediction =
          simulate::simulate(flags.cluster, strategy::parse(strategy, flags.cluster.workers), watch);
      r.efficiency = simulate::efficiency(r.prediction, simulate::speed_alone(flags.cluster, strategy));
      notice.show(fmt::format("{}: what limits it?", strategy));
      r.bottleneck = simulate::find_bottleneck(flags.cluster, strategy, r.prediction, kTryPushes);
      r.relief = simulate::relief(flags.cluster, strategy, r.bottleneck.limit, kTryPushes).value_or("");
      results.push_back(std::move(r));
    }
  }
  if (!flags.json) {
    fmt::print("{}", wrapped(cluster_text(flags.cluster, flags.model)));
    print_tables(results);
    return kSuccess;
  }
  Json out{{"ok", true}, {"model", flags.model}, {"predictions", Json::array()}};
  for (const auto& r : results) {
    out["predictions"].push_back(json_of(r.prediction, r.efficiency, r.bottleneck));
    if (!r.relief.empty()) out["predictions"].back()["relief"] = r.relief;
  }
  fmt::print("{}\n", json_line(out));
  return kSuccess;
}

void finish(Flags& flags) {
  auto& c = flags.cluster;
  c.elements = layouts::network_layout(flags.model).size();
  c.compute = simulate::Distribution::parse("--compute", flags.compute);
  if (c.compute.mean() <= 0)
    throw UserError(fmt::format("--compute {}: should take some time", flags.compute));
  c.slowness = parse_slow_workers(flags.slow_workers, c.workers);
  const bool one_machine = flags.cores > 0;
  const auto or_else = [](const std::string& text, const char* missing) {
    return text.empty() ? missing : text;
  };
  c.bandwidth = simulate::parse_rate("--bandwidth", or_else(flags.bandwidth, one_machine ? "inf" : "10Gbps"));
  c.latency = simulate::parse_time("--latency", or_else(flags.latency, one_machine ? "0s" : "50us"));
  if (!flags.server_bandwidth.empty())
    c.server_bandwidth = simulate::parse_rate("--server-bandwidth", flags.server_bandwidth);
  c.memory_rate = simulate::parse_rate("--memory-rate", flags.memory_rate);
  c.failures = simulate::parse_frequency("--failures", flags.failures);
  c.repair = simulate::parse_time("--repair", flags.repair);
  if (one_machine) {
    c.machine = simulate::SharedMachine{flags.cores, flags.threads};
    c.detection = 0;  // the end of a process is noticed at once
  }
  c.rounds = flags.steps > 0 ? flags.steps : 1000;
}

}  // namespace

int run_simulate(const Arguments& arguments) {
  Flags flags;
  auto& c = flags.cluster;
  CLI::App app(
      "Predicts how a job would run on a cluster that is not here: the strategies and the\n"
      "placement of the real servers, on a fake clock. Nothing is trained.\n\n"
      "  capstan simulate --strategy sync,async,ssp:3 --workers 1000 --servers 16 \\\n"
      "    --model resnet50 --compute \"lognormal(0.2,0.5)\" --bandwidth 10Gbps \\\n"
      "    --latency 50us --failures 1/h\n"
      "  capstan simulate --workers 8 --slow-worker 3:10x --strategy sync,backup:1\n"
      "  capstan simulate --cores 16 --workers 4 --model resnet18-cifar --compute 0.3\n\n"
      "Prints throughput, staleness, dropped work, bytes, how busy servers are, what\n"
      "workers' time goes into, and the bottleneck, which is found by making one thing\n"
      "after the other free and simulating again. docs/simulation.md has the model.\n",
      "simulate");
  const auto text = [&](const char* name, std::string& value, const char* help, const char* kind,
                        const char* group) {
    return app.add_option(name, value, help)->type_name(kind)->group(group);
  };
  text("--strategy", flags.strategies, "One or more, with commas between: sync,async,ssp:3,backup:1 …",
       "LIST", "Job")
      ->capture_default_str();
  app.add_option("--workers", c.workers, "Workers")
      ->check(whole_number_in(1, kMostWorkers))
      ->capture_default_str()
      ->group("Job");
  app.add_option("--servers", c.servers, "Servers that share the weights")
      ->check(whole_number_in(1, kMostServers))
      ->capture_default_str()
      ->group("Job");
  text("--model,--network", flags.model, "A network (capstan models lists all) or bytes:N", "NAME", "Job")
      ->capture_default_str();
  app.add_option("--batch-size", c.batch, "Samples per worker and step")
      ->check(whole_number_in(1, 1u << 20))
      ->capture_default_str()
      ->group("Job");
  app.add_option("--samples", c.samples, "Samples of the training set, for strategies that count epochs")
      ->check(whole_number_in(1, 1'000'000'000'000))
      ->capture_default_str()
      ->group("Job");
  app.add_option("--steps", flags.steps,
                 "Rounds of each worker to simulate, in the mean, from one push to the next (default 1000)")
      ->check(whole_number_in(1, 1'000'000'000))
      ->group("Job");
  app.add_option("--state-tensors", c.state_tensors,
                 "What the servers' optimizer keeps for each weight: sgd 1, adam 2")
      ->check(whole_number_in(0, 16))
      ->capture_default_str()
      ->group("Job");
  text("--compute", flags.compute,
       "Seconds for one batch: a number, lognormal(median,sigma), uniform(a,b), exponential(mean), "
       "normal(mean,sd)",
       "TIME", "Workers")
      ->capture_default_str();
  text("--slow-worker", flags.slow_workers, "Ranks that take longer: 1:3x,5:2x", "LIST", "Workers");
  text("--failures", flags.failures, "How often each worker fails: 1/h, 3/day", "RATE", "Workers")
      ->capture_default_str();
  text("--repair", flags.repair, "How long until it is back", "TIME", "Workers")->capture_default_str();
  text("--bandwidth", flags.bandwidth, "Of every link, each way: 10Gbps, 1.25GB/s, inf (default 10Gbps)",
       "RATE", "Network");
  text("--server-bandwidth", flags.server_bandwidth, "Of servers' links, where it is another", "RATE",
       "Network");
  text("--latency", flags.latency, "One way: 50us, 1ms (default 50us)", "TIME", "Network");
  text("--memory-rate", flags.memory_rate, "Bytes that a server's updates read and write in a second", "RATE",
       "Machines")
      ->capture_default_str();
  app.add_option(
         "--cores", flags.cores,
         "All on one machine of so many cores, which workers and servers share, as they do its memory; "
         "links only where they are given")
      ->check(number_in(0.01, 1e6))
      ->group("Machines");
  app.add_option("--threads", flags.threads, "With --cores: cores that a worker takes where they are free")
      ->check(number_in(0.01, 1e6))
      ->capture_default_str()
      ->group("Machines");
  app.add_option("--seed", c.seed, "Fixes all random times")
      ->check(whole_number_in(0, kMostWhole))
      ->capture_default_str();
  app.add_flag("--json", flags.json, "Print one JSON object on standard output");
  if (!parse_flags(app, arguments)) return kSuccess;

  const auto strategies = split("--strategy", flags.strategies);
  for (const auto& strategy : strategies) {
    if (strategy == "single") throw UserError("single has no servers to simulate: see sync with --workers 1");
    (void)strategy::parse(strategy, c.workers);
  }
  finish(flags);
  return run_once(flags, strategies);
}

}  // namespace capstan::cli
