// `capstan bench` and the small commands, as a user runs them.

#include <sstream>

#include <gmock/gmock.h>

#include "program.h"

namespace capstan::testing {
namespace {

using ::testing::HasSubstr;

struct WireCase {
  int workers = 1, servers = 1;
  std::string strategy = "sync", optimizer = "sgd", transport = "local", model = "lenet";
};

TEST(BenchWire, EveryStrategyOptimizerAndTransportGivesTheWeightsOfPlainArithmetic) {
  const std::vector<WireCase> cases = {
      {.workers = 3},
      {.workers = 3, .strategy = "async"},
      {.workers = 3, .strategy = "batch:2"},
      {.workers = 2, .servers = 3},
      {.workers = 2, .servers = 2, .strategy = "async", .transport = "ucx"},
      {.workers = 2, .transport = "ucx"},
      {.workers = 2, .optimizer = "adam"},
      {.workers = 2, .optimizer = "adamw"},
      {.workers = 2, .optimizer = "adagrad"},
      {.workers = 2, .optimizer = "rmsprop"},
      {.workers = 2, .optimizer = "none"},
      {.workers = 1, .strategy = "async", .model = "bytes:1024"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.strategy + " " + c.optimizer + " " + c.transport + " " + c.model);
    const Folder folder;
    std::vector<std::string> arguments = {"bench", "wire", "--json", "--iterations=30"};
    // What is the default is not given.
    const WireCase usual;
    if (c.workers != usual.workers) arguments.push_back("--workers=" + std::to_string(c.workers));
    if (c.servers != usual.servers) arguments.push_back("--servers=" + std::to_string(c.servers));
    if (c.strategy != usual.strategy) arguments.push_back("--strategy=" + c.strategy);
    if (c.optimizer != usual.optimizer) arguments.push_back("--optimizer=" + c.optimizer);
    if (c.transport != usual.transport) arguments.push_back("--transport=" + c.transport);
    if (c.model != usual.model) arguments.push_back("--model=" + c.model);
    const auto begin = SteadyClock::now();
    Program run(folder, arguments);
    ASSERT_EQ(run.exit_code(), 0) << run.errors();
    const double whole = seconds(SteadyClock::now() - begin);
    const auto result = run.json();
    EXPECT_EQ(result["ok"], true);
    EXPECT_EQ(result["model"], c.model);
    EXPECT_EQ(result["workers"], c.workers);
    EXPECT_EQ(result["servers"], c.servers);
    EXPECT_EQ(result["strategy"], c.strategy);
    EXPECT_EQ(result["optimizer"], c.optimizer);
    EXPECT_EQ(result["transport"], c.transport);
    EXPECT_EQ(result["iterations"], 30);
    // LeNet: 20 and 50 filters of 5x5, then 800 to 500 to 10.
    const double lenet = 4.0 * (20 * 26 + 50 * (20 * 25 + 1) + 500 * 801 + 10 * 501);
    const double bytes = c.model == "lenet" ? lenet : 1024, n = c.workers;
    EXPECT_EQ(result["bytes"], bytes);
    EXPECT_EQ(result["tensors"], c.model == "lenet" ? 8 : 1);
    for (const char* key :
         {"p50_us", "p99_us", "server_rss_bytes", "server_cpu_seconds", "worker_cpu_seconds"})
      EXPECT_GT(result[key].get<double>(), 0) << key;
    const double took = result["seconds_per_iteration"];
    EXPECT_GT(took, 0);
    EXPECT_LT(30 * took, whole) << "of the whole run";
    EXPECT_NEAR(result["gigabytes_per_second"], n * 2 * bytes / took / 1e9, 1e-6);
    const std::map<std::string, double> states = {{"none", 0},    {"sgd", 1},  {"adagrad", 1},
                                                  {"rmsprop", 1}, {"adam", 2}, {"adamw", 2}};
    const double passes = 2 * (1 + states.at(c.optimizer));
    const double traffic = c.strategy == "async" ? n * (2 + passes) : 2 * n + passes;
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
    eventually([&] {
      found = run_.children(kind);
      return found.size() >= count;
    });
    return found;
  }
  // Both workers have joined: the server maps the weights, and what each of them shares.
  bool have_joined() {
    const auto servers = children(" serve ", 1);
    return servers.size() == 1 && eventually([&] {
             const auto maps = text_of("/proc/" + std::to_string(servers[0]) + "/maps");
             std::size_t segments = 0;
             for (auto at = maps.find("memfd:"); at != std::string::npos; at = maps.find("memfd:", at + 1))
               ++segments;
             return segments >= 3;
           });
  }

  const Folder folder_;
  const fs::path logs_ = folder_ / "tmp";
  const bool made_ = fs::create_directory(logs_);
  Program run_{folder_,
               {"bench", "wire", "--json", "--iterations=10000000", "--workers=2"},
               {"TMPDIR=" + logs_.string()}};
};

TEST_F(LongBench, ALostServerIsCode3) {
  ASSERT_TRUE(have_joined());
  const auto servers = children(" serve ", 1);
  ASSERT_EQ(servers.size(), 1u);
  ::kill(servers[0], SIGKILL);
  EXPECT_EQ(run_.exit_code(), 3) << run_.errors();
  EXPECT_EQ(run_.json()["ok"], false);
}

TEST_F(LongBench, AStoppedWorkerEndsIt) {
  const auto workers = children("--as-worker", 2);
  ASSERT_EQ(workers.size(), 2u);
  ASSERT_TRUE(have_joined());
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
  const std::pair<std::vector<std::string>, std::string> mistakes[] = {
      {{"bench"}, "capstan bench needs the name of a benchmark: ps, wire or data"},
      {{"bench", "wire", "--model=resnet5"},
       "unknown network 'resnet5' (did you mean resnet50?); capstan models lists all"},
      {{"bench", "wire", "--model=bytes:3"},
       "network 'bytes:3': N in bytes:N must be a positive multiple of 4, such as bytes:4096"},
      {{"bench", "wire", "--strategy=single"}, "bench wire measures servers: --strategy single has none"}};
  for (const auto& [arguments, message] : mistakes) {
    Program run(folder, arguments);
    EXPECT_EQ(run.exit_code(), 2) << arguments.back();
    EXPECT_EQ(run.errors(), "capstan: " + message + "\n");
    EXPECT_EQ(run.output(), "");
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
  std::map<std::string, nlohmann::json> by_name;
  for (const auto& m : listed["models"]) {
    EXPECT_THAT(m["input"].get<std::string>(), ::testing::EndsWith("x32x32"));
    by_name[m["name"]] = m;
  }
  ASSERT_TRUE(by_name.contains("mlp") && by_name.contains("resnet50")) << small.output();
  EXPECT_FALSE(by_name.contains("alexnet")) << "it takes no images as small";
  EXPECT_EQ(by_name["mlp"]["parameters"], 1024 * 128 + 128 + 128 * 10 + 10);
  EXPECT_EQ(by_name["resnet50"]["parameters"], 25'557'032) << "its size does not depend on the image's";
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

// The version of the project, as CMake has read it.
std::string project_version() {
  const auto text = text_of(fs::path(CAPSTAN_BINARY_DIR) / "CMakeCache.txt");
  const std::string before = "CMAKE_PROJECT_VERSION:STATIC=";
  const auto begin = text.find(before) + before.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(Commands, HelpVersionAndMistakes) {
  const Folder folder;
  const std::pair<std::vector<std::string>, std::vector<std::string>> helps[] = {
      {{"--help"}, {"train", "serve", "work", "eval", "bench", "compare", "simulate", "doctor"}},
      {{"serve", "--help"}, {"--listen", "--workers", "--token-file"}},
      {{"bench", "wire", "--help"}, {"--iterations", "--model", "--transport"}},
      {{"bench", "data", "--help"}, {"--dataset", "--threads", "--epochs"}}};
  for (const auto& [arguments, words] : helps) {
    Program run(folder, arguments);
    EXPECT_EQ(run.exit_code(), 0) << arguments[0] << run.errors();
    for (const auto& word : words) EXPECT_THAT(run.output(), HasSubstr(word)) << arguments[0];
  }
  Program version(folder, {"--version"});
  EXPECT_EQ(version.exit_code(), 0) << version.errors();
  EXPECT_EQ(version.output(), "capstan " + project_version() + "\n");
  for (const char* flag : {"--help", "--version"}) {
    Program unwritten(folder, {flag}, {}, by_shell("exec \"$0\" \"$@\" > /dev/full"));
    EXPECT_EQ(unwritten.exit_code(), 1) << flag;
    EXPECT_THAT(unwritten.errors(), HasSubstr("cannot write the result")) << flag;
  }
  Program wrong(folder, {"trian"});
  EXPECT_EQ(wrong.exit_code(), 2);
  EXPECT_EQ(wrong.errors(), "capstan: unknown command \"trian\", did you mean train? (see capstan --help)\n");
}

// What it finds depends on the machine.
TEST(Doctor, JudgesEverythingThatARunNeeds) {
  const Folder folder;
  Program doctor(folder, {"doctor", "--json"});
  const auto code = doctor.exit_code();
  const auto result = doctor.json();
  std::vector<std::string> subjects;
  bool is_missing = false;
  for (const auto& finding : result["findings"]) {
    subjects.push_back(finding["subject"]);
    const std::string verdict = finding["verdict"];
    EXPECT_THAT(verdict, ::testing::AnyOf("ok", "warning", "missing"));
    EXPECT_NE(finding["what"], "") << subjects.back();
    EXPECT_EQ(finding["remedy"] == "", verdict == "ok") << subjects.back();
    is_missing |= verdict == "missing";
  }
  EXPECT_THAT(subjects, ::testing::ElementsAre("cores", "memory", "shared memory", "/dev/shm", "ucx",
                                               "open files", "libtorch"));
  EXPECT_EQ(code, is_missing ? 1 : 0) << doctor.errors();
  EXPECT_EQ(result["ok"], !is_missing);
  // Without the part that is linked with libtorch, training is missing.
  const bool trains = fs::exists(path_of("capstan-torch"));
  EXPECT_EQ(result["findings"].back()["verdict"] == "ok", trains);
  const std::string cores = result["findings"][0]["what"];
  EXPECT_THAT(cores, ::testing::MatchesRegex("[0-9]+ cores?.*"));
}

}  // namespace
}  // namespace capstan::testing
