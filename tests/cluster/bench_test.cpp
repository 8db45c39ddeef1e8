// `capstan bench` and the small commands, as a user runs them.

#include <sstream>

#include <gmock/gmock.h>

#include "program.h"

namespace capstan::testing {
namespace {

using ::testing::HasSubstr;

TEST(BenchWire, EveryStrategyOptimizerAndTransportGivesTheWeightsOfPlainArithmetic) {
  const std::vector<std::vector<std::string>> cases = {
      {"--workers=3"},
      {"--workers=3", "--strategy=async"},
      {"--workers=3", "--strategy=batch:2"},
      {"--workers=2", "--servers=3"},
      {"--workers=2", "--servers=2", "--strategy=async", "--transport=ucx"},
      {"--workers=2", "--transport=ucx"},
      {"--workers=2", "--optimizer=adam"},
      {"--workers=2", "--optimizer=adamw"},
      {"--workers=2", "--optimizer=adagrad"},
      {"--workers=2", "--optimizer=rmsprop"},
      {"--workers=2", "--optimizer=none"},
      {"--model=bytes:1024", "--strategy=async"},
  };
  for (const auto& flags : cases) {
    const Folder folder;
    std::vector<std::string> arguments = {"bench", "wire", "--json", "--iterations=30"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    Program run(folder, arguments);
    EXPECT_EQ(run.exit_code(), 0) << flags.back() << ": " << run.errors();
    const auto result = run.json();
    EXPECT_EQ(result["ok"], true) << flags.back();
    for (const char* key : {"model", "bytes", "tensors", "workers", "servers", "strategy", "optimizer",
                            "transport", "iterations", "seconds_per_iteration", "p50_us", "p99_us",
                            "gigabytes_per_second", "memcpy_gigabytes_per_second", "floor_seconds",
                            "floor_ratio", "server_rss_bytes", "server_cpu_seconds", "worker_cpu_seconds"}) {
      EXPECT_TRUE(result.contains(key)) << key;
    }
    const double n = result["workers"], bytes = result["bytes"], took = result["seconds_per_iteration"];
    EXPECT_NEAR(result["gigabytes_per_second"], n * 2 * bytes / took / 1e9, 1e-6);
    const std::map<std::string, double> states = {{"none", 0},    {"sgd", 1},  {"adagrad", 1},
                                                  {"rmsprop", 1}, {"adam", 2}, {"adamw", 2}};
    const double passes = 2 * (1 + states.at(result["optimizer"]));
    const double traffic = result["strategy"] == "async" ? n * (2 + passes) : 2 * n + passes;
    const double floor = traffic * bytes / (2e9 * result["memcpy_gigabytes_per_second"].get<double>());
    EXPECT_NEAR(result["floor_seconds"], floor, 1e-6 * floor);
    EXPECT_NEAR(result["floor_ratio"], took / floor, 1e-6 * took / floor);
  }
}

class LongBench : public ::testing::Test {
 protected:
  // The children of this kind, once there are so many.
  std::vector<pid_t> children(const std::string& kind, std::size_t count) {
    std::vector<pid_t> found;
    for (int i = 0; found.size() < count && i < 1000; ++i) {
      found = run_.children(kind);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return found;
  }

  const Folder folder_;
  const fs::path logs_ = folder_ / "tmp";
  const bool made_ = fs::create_directory(logs_);
  Program run_{folder_,
               {"bench", "wire", "--json", "--iterations=10000000", "--workers=2"},
               {"TMPDIR=" + logs_.string()}};
};

TEST_F(LongBench, ALostServerIsCode3) {
  ASSERT_EQ(children("--as-worker", 2).size(), 2u);
  const auto servers = children(" serve ", 1);
  ASSERT_EQ(servers.size(), 1u);
  ::kill(servers[0], SIGKILL);
  EXPECT_EQ(run_.exit_code(), 3) << run_.errors();
  EXPECT_EQ(run_.json()["ok"], false);
}

TEST_F(LongBench, AStoppedWorkerEndsIt) {
  const auto workers = children("--as-worker", 2);
  ASSERT_EQ(workers.size(), 2u);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // time to join
  ::kill(workers[1], SIGSTOP);
  EXPECT_EQ(run_.exit_code(), 1) << run_.errors();
  EXPECT_THAT(run_.errors(), HasSubstr("worker 1 is lost"));
  EXPECT_TRUE(all_ended(workers));
}

TEST_F(LongBench, AnInterruptEndsItAndLeavesNothing) {
  const auto workers = children("--as-worker", 2);
  ASSERT_EQ(workers.size(), 2u);
  run_.child().signal(SIGTERM);
  EXPECT_EQ(run_.exit_code(), 130) << run_.errors();
  EXPECT_EQ(run_.json()["ok"], false);
  EXPECT_TRUE(all_ended(workers));
  EXPECT_TRUE(fs::is_empty(logs_));
}

TEST(BenchWire, WrongInputIsSaid) {
  const Folder folder;
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"bench"},
                                                    {"bench", "wire", "--model=resnet5"},
                                                    {"bench", "wire", "--model=bytes:3"},
                                                    {"bench", "wire", "--strategy=single"}}) {
    Program run(folder, arguments);
    EXPECT_EQ(run.exit_code(), 2) << arguments.back();
    EXPECT_FALSE(run.errors().empty());
  }
}

TEST(Models, AreListedWithTheirPublishedSizes) {
  const Folder folder;
  Program run(folder, {"models", "--json"});
  EXPECT_EQ(run.exit_code(), 0) << run.errors();
  const auto result = run.json();
  ASSERT_TRUE(result["models"].is_array()) << run.output();
  const auto named = [&](const std::string& name) {
    for (const auto& m : result["models"])
      if (m["name"] == name) return m;
    return nlohmann::json();
  };
  EXPECT_EQ(named("resnet50"), (nlohmann::json{{"name", "resnet50"},
                                               {"parameters", 25'557'032},
                                               {"buffers", 53'120},
                                               {"bytes", 102'228'128},
                                               {"input", "3x224x224"}}));
  EXPECT_EQ(named("lenet")["buffers"], 0);
  EXPECT_EQ(named("inception-v3")["input"], "3x299x299");
  EXPECT_EQ(named("resnet18-cifar")["input"], "3x32x32");
}

TEST(Models, FollowClassesAndImageSize) {
  const Folder folder;
  Program ten(folder, {"models", "resnet50", "--json", "--num-classes=10"});
  EXPECT_EQ(ten.exit_code(), 0) << ten.errors();
  ASSERT_EQ(ten.json()["models"].size(), 1u);
  EXPECT_EQ(ten.json()["models"][0]["parameters"], 25'557'032 - 990 * 2049);
  Program small(folder, {"models", "--json", "--image-size", "32"});
  EXPECT_EQ(small.exit_code(), 0) << small.errors();
  const auto listed = small.json();
  for (const auto& m : listed["models"]) {
    EXPECT_THAT(m["input"].get<std::string>(), ::testing::EndsWith("x32x32"));
    EXPECT_NE(m["name"], "alexnet") << "it takes no images as small";
    if (m["name"] == "mlp") {
      EXPECT_EQ(m["parameters"], 1024 * 128 + 128 + 128 * 10 + 10);
    }
  }
}

TEST(Models, TablesFitEightyColumns) {
  const Folder folder;
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"models"},
                                                    {"models", "--num-classes=100000"},
                                                    {"models", "densenet121"},
                                                    {"models", "vgg19-bn"},
                                                    {"models", "--help"}}) {
    Program run(folder, arguments);
    EXPECT_EQ(run.exit_code(), 0) << run.errors();
    std::istringstream lines(run.output());
    int count = 0;
    for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 80u) << line;
    EXPECT_GT(count, 10);
  }
}

TEST(Models, MistakesAreSaid) {
  const Folder folder;
  const std::pair<std::vector<std::string>, std::string> mistakes[] = {
      {{"models", "resnet81"}, "did you mean resnet18?"},
      {{"models", "alexnet", "--image-size=32"}, "at least 63x63"},
      {{"models", "--image-size=x"}, "--image-size"},
  };
  for (const auto& [arguments, said] : mistakes) {
    Program run(folder, arguments);
    EXPECT_EQ(run.exit_code(), 2) << arguments[1];
    EXPECT_THAT(run.errors(), HasSubstr(said));
    EXPECT_EQ(run.output(), "");
  }
}

TEST(BenchData, CountsWhatItRenders) {
  const Folder folder;
  Program run(folder, {"bench", "data", "--dataset=synthetic:3x8x8:4:100", "--augment=crop-flip",
                       "--epochs=3", "--threads=2", "--json"});
  ASSERT_EQ(run.exit_code(), 0) << run.errors();
  const auto result = run.json();
  EXPECT_EQ(result["ok"], true);
  EXPECT_EQ(result["images"], 300);
  EXPECT_EQ(result["unreadable"], 0);
  const double rate = result["images_per_second"], seconds = result["seconds"];
  EXPECT_NEAR(rate * seconds, 300, 1e-6);
  EXPECT_DOUBLE_EQ(result["images_per_second_per_core"], rate / 2);
  Program wrong(folder, {"bench", "data", "--dataset=imagefolder", "--data-dir=/nowhere"});
  EXPECT_EQ(wrong.exit_code(), 2);
  EXPECT_THAT(wrong.errors(), HasSubstr("there is no train in /nowhere"));
}

TEST(Commands, HelpVersionAndMistakes) {
  const Folder folder;
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--help"},
                                                    {"--version"},
                                                    {"serve", "--help"},
                                                    {"bench", "wire", "--help"},
                                                    {"bench", "data", "--help"}}) {
    Program run(folder, arguments);
    EXPECT_EQ(run.exit_code(), 0) << arguments[0] << run.errors();
    EXPECT_FALSE(run.output().empty());
  }
  // Without the part that is linked with libtorch, training is missing, and doctor says so.
  Program doctor(folder, {"doctor", "--json"});
  EXPECT_EQ(doctor.exit_code(), fs::exists(path_of("capstan-torch")) ? 0 : 1) << doctor.errors();
  EXPECT_EQ(doctor.json()["findings"].size(), 7u);
  Program wrong(folder, {"trian"});
  EXPECT_EQ(wrong.exit_code(), 2);
  EXPECT_THAT(wrong.errors(), HasSubstr("train"));
}

}  // namespace
}  // namespace capstan::testing
