#include "capstan/report/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace capstan::report {
namespace {

using simulate::Limit;
using simulate::TimeCategory;

// 25 million floats on four workers and two servers.
Scenario scenario() {
  Scenario s;
  s.model = "resnet50";
  s.cluster.workers = 4;
  s.cluster.servers = 2;
  s.cluster.elements = 25'000'000;
  s.cluster.batch = 32;
  s.cluster.compute = simulate::Distribution::constant(0.25);
  s.cluster.bandwidth = 1.25e9;
  s.cluster.latency = 50e-6;
  s.cluster.memory_rate = 10e9;
  s.cluster.seed = 7;
  return s;
}

simulate::Prediction prediction() {
  simulate::Prediction p;
  p.strategy = "async";
  p.workers = 4;
  p.seconds = 80;
  p.samples_per_second = 400;
  p.updates_per_second = 12.5;
  p.updates = 1000;
  p.rounds = 1004;
  p.pushes = 1000;
  p.applied = 985;
  p.dropped = 15;
  p.failures = 3;
  p.lost_rounds = 2;
  p.pushed_bytes = 100e9;
  p.pulled_bytes = 100.4e9;
  p.staleness = {100, 200, 600, 100};
  p.staleness_mean = 1.7;
  p.staleness_max = 3;
  p.incoming = 0.5;
  p.outgoing = 0.502;
  p.updating = 0.25;
  p.cores = 0.75;
  const auto spend = [&](TimeCategory what, double part) { p.spent[static_cast<std::size_t>(what)] = part; };
  spend(TimeCategory::kCompute, 0.6);
  spend(TimeCategory::kCores, 0.01);
  spend(TimeCategory::kOwnLink, 0.2);
  spend(TimeCategory::kServerLink, 0.1);
  spend(TimeCategory::kUpdate, 0.05);
  spend(TimeCategory::kOthers, 0.03);
  spend(TimeCategory::kDown, 0.01);
  return p;
}

simulate::Forecast forecast() {
  return {prediction(),
          0.781,
          {Limit::kOwnLinks, 1.5, "the workers' own links"},
          "with links of 2.5 GB/s 1.3 times"};
}

TEST(SimulationText, HasEveryFigureUnderItsHeading) {
  auto other = forecast();
  other.prediction.strategy = "decoupled-diloco:500:4:0.25s";
  other.prediction.samples_per_second = 9.876;
  other.prediction.updates_per_second = 123.4;
  other.relief.clear();
  EXPECT_EQ(simulation_text(scenario(), {forecast(), other}),
            "resnet50 (100 MB), 4 workers, 2 servers, links of 1.25 GB/s and 50 µs; compute\n"
            "  constant(0.25)\n"
            "\n"
            "strategy            samples/s updates/s linear % stale avg/p50/99/max dropped %\n"
            "async                     400      12.5     78.1           1.70/2/3/3       1.5\n"
            "decoupled-diloco:…       9.88       123     78.1           1.70/2/3/3       1.5\n"
            "\n"
            "workers' time, %    compute   cores own link srv. links  update  others    down\n"
            "async                  60.0     1.0     20.0       10.0     5.0     3.0     1.0\n"
            "decoupled-diloco:…     60.0     1.0     20.0       10.0     5.0     3.0     1.0\n"
            "\n"
            "servers busy, %           in      out   update     pushed     pulled  predicted\n"
            "async                   50.0     50.2     25.0     100 GB     100 GB       80 s\n"
            "decoupled-diloco:…      50.0     50.2     25.0     100 GB     100 GB       80 s\n"
            "\n"
            "async: bottleneck: the workers' own links, with links of 2.5 GB/s 1.3 times\n"
            "decoupled-diloco:500:4:0.25s: bottleneck: the workers' own links\n");
}

TEST(SimulationText, NamesASharedMachineAndTheRunThatCalibrated) {
  auto s = scenario();
  s.cluster.servers = 1;
  s.cluster.machine = simulate::SharedMachine{8, 2, 0};
  s.calibrated = "calibrated by runs/a: 0.25 s a batch";
  const auto text = simulation_text(s, {});
  EXPECT_EQ(text.substr(0, text.find("\n\n")),
            "resnet50 (100 MB), 4 workers, 1 server, one machine of 8 cores; compute\n"
            "  constant(0.25)\n"
            "calibrated by runs/a: 0.25 s a batch");
}

// What json_of gives for prediction(), written by hand.
nlohmann::json expected_prediction() {
  return {{"strategy", "async"},
          {"workers", 4},
          {"samples_per_second", 400.0},
          {"updates_per_second", 12.5},
          {"scaling_efficiency", 0.781},
          {"seconds", 80.0},
          {"updates", 1000},
          {"pushes", 1000},
          {"dropped_pushes", 15},
          {"failures", 3},
          {"lost_rounds", 2},
          {"bytes_pushed", 100e9},
          {"bytes_pulled", 100.4e9},
          {"staleness_mean", 1.7},
          {"staleness_p50", 2},
          {"staleness_p99", 3},
          {"staleness_max", 3},
          {"staleness_histogram",
           {{{"from", 0}, {"to", 0}, {"pushes", 100}},
            {{"from", 1}, {"to", 1}, {"pushes", 200}},
            {{"from", 2}, {"to", 2}, {"pushes", 600}},
            {{"from", 3}, {"to", 3}, {"pushes", 100}}}},
          {"server_busy", {{"incoming", 0.5}, {"outgoing", 0.502}, {"update", 0.25}}},
          {"cores_busy", 0.75},
          {"worker_time",
           {{"compute", 0.6},
            {"cores", 0.01},
            {"own_link", 0.2},
            {"server_link", 0.1},
            {"update", 0.05},
            {"others", 0.03},
            {"down", 0.01}}},
          {"bottleneck", "own links"},
          {"bottleneck_text", "the workers' own links"}};
}

TEST(SimulationJson, HasTheClusterAndEveryFigure) {
  auto second = forecast();
  second.relief.clear();
  auto result = nlohmann::json::parse(simulation_json(scenario(), {forecast(), second}));
  EXPECT_EQ(result["ok"], true);
  EXPECT_EQ(result["cluster"], (nlohmann::json{{"model", "resnet50"},
                                               {"bytes", 100'000'000},
                                               {"workers", 4},
                                               {"servers", 2},
                                               {"batch_size", 32},
                                               {"compute", "constant(0.25)"},
                                               {"bandwidth", 1.25e9},
                                               {"latency", 50e-6},
                                               {"memory_rate", 10e9},
                                               {"failures_per_second", 0.0},
                                               {"repair", 60.0},
                                               {"seed", 7}}));
  ASSERT_EQ(result["predictions"].size(), 2u);
  auto with_relief = expected_prediction();
  with_relief["relief"] = "with links of 2.5 GB/s 1.3 times";
  EXPECT_EQ(result["predictions"][0], with_relief);
  EXPECT_EQ(result["predictions"][1], expected_prediction());
}

TEST(SimulationJson, HasTheMachineAndNullForWhatHasNoLimit) {
  auto s = scenario();
  s.cluster.bandwidth = simulate::Cluster::kUnlimited;
  s.cluster.machine = simulate::SharedMachine{8, 2, 0};
  s.calibrated = "by a run";
  auto cluster = nlohmann::json::parse(simulation_json(s, {}))["cluster"];
  EXPECT_EQ(cluster["bandwidth"], nullptr);
  EXPECT_EQ(cluster["cores"], 8);
  EXPECT_EQ(cluster["threads"], 2);
  EXPECT_EQ(cluster["calibrated"], "by a run");
}

// 70 values in at most 32 bins: three to a bin, and one in the last. No push is lost.
TEST(SimulationJson, JoinsALongHistogramInBins) {
  auto f = forecast();
  f.prediction.staleness.assign(70, 0);
  f.prediction.staleness[0] = 5;
  f.prediction.staleness[2] = 6;
  f.prediction.staleness[3] = 7;
  f.prediction.staleness[69] = 8;
  auto bins =
      nlohmann::json::parse(simulation_json(scenario(), {f}))["predictions"][0]["staleness_histogram"];
  ASSERT_EQ(bins.size(), 24u);
  EXPECT_EQ(bins[0], (nlohmann::json{{"from", 0}, {"to", 2}, {"pushes", 11}}));
  EXPECT_EQ(bins[1], (nlohmann::json{{"from", 3}, {"to", 5}, {"pushes", 7}}));
  EXPECT_EQ(bins[23], (nlohmann::json{{"from", 69}, {"to", 69}, {"pushes", 8}}));
}

// Two points of a curve; a third was left out.
std::vector<simulate::Curve> curves() {
  auto small = prediction();
  small.samples_per_second = 120;
  small.updates_per_second = 3.75;
  small.staleness_mean = 0;
  return {{"async",
           {{1, small, 1, {Limit::kComputing, 1, "computing"}},
            {4, prediction(), 0.781, {Limit::kOwnLinks, 1.5, "the workers' own links"}}},
           "async cannot be 8 workers",
           "at most 400 samples/s, nearly reached with 4 workers"}};
}

TEST(SweepText, HasALineForEachPointAndTheVerdict) {
  EXPECT_EQ(sweep_text(simulate::SweepRange::parse("workers=1..4"), curves()),
            "async\n"
            "workers      samples/s  updates/s  linear %   stale avg  limited by\n"
            "1                  120       3.75     100.0        0.00  computing\n"
            "4                  400       12.5      78.1        1.70  own links\n"
            "left out: async cannot be 8 workers\n"
            "\n"
            "async: at most 400 samples/s, nearly reached with 4 workers\n");
}

TEST(SweepJson, HasEveryPointOfEveryCurve) {
  auto result = nlohmann::json::parse(
      sweep_json(scenario(), simulate::SweepRange::parse("servers=1..4"), curves(), "page.html"));
  EXPECT_EQ(result["ok"], true);
  EXPECT_EQ(result["sweep"], "servers");
  EXPECT_EQ(result["page"], "page.html");
  EXPECT_EQ(result["cluster"]["model"], "resnet50");
  ASSERT_EQ(result["curves"].size(), 1u);
  auto& curve = result["curves"][0];
  EXPECT_EQ(curve["strategy"], "async");
  EXPECT_EQ(curve["verdict"], "at most 400 samples/s, nearly reached with 4 workers");
  EXPECT_EQ(curve["missing"], "async cannot be 8 workers");
  ASSERT_EQ(curve["points"].size(), 2u);
  EXPECT_EQ(curve["points"][0]["servers"], 1);
  EXPECT_EQ(curve["points"][0]["bottleneck"], "computing");
  auto last = expected_prediction();
  last["servers"] = 4;
  EXPECT_EQ(curve["points"][1], last);
}

TEST(SweepPage, HasTheCurvesAndTheClusterWithoutWhatIsSwept) {
  auto s = scenario();
  s.cluster.server_bandwidth = 5e9;
  s.cluster.failures = 1.0 / 3600;
  s.slow_workers = "0:2x";
  const auto page = sweep_page(s, simulate::SweepRange::parse("workers=1..4"), curves());
  EXPECT_EQ(page.title, "resnet50 on 1 to 4 workers: async");
  EXPECT_EQ(page.axis, "workers");
  ASSERT_EQ(page.curves.size(), 1u);
  EXPECT_EQ(page.curves[0].verdict, "at most 400 samples/s, nearly reached with 4 workers");
  ASSERT_EQ(page.curves[0].points.size(), 2u);
  const auto& last = page.curves[0].points[1];
  EXPECT_EQ(last.at, 4);
  EXPECT_EQ(last.samples_per_second, 400);
  EXPECT_EQ(last.efficiency, 0.781);
  EXPECT_EQ(last.staleness_mean, 1.7);
  EXPECT_EQ(last.dropped, 0.015);
  EXPECT_EQ(last.bottleneck, "own links");
  const Settings expected = {{"model", "resnet50, 100 MB"},
                             {"servers", "2"},
                             {"batch size", "32"},
                             {"compute", "constant(0.25) s a batch"},
                             {"bandwidth", "1.25 GB/s"},
                             {"of servers", "5 GB/s"},
                             {"latency", "50 µs"},
                             {"memory rate", "10 GB/s"},
                             {"failures", "1 an hour and worker, back after 60 s"},
                             {"slow workers", "0:2x"},
                             {"seed", "7"}};
  EXPECT_EQ(page.settings, expected);
}

}  // namespace
}  // namespace capstan::report
