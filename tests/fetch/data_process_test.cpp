// `capstan data` as a user runs it.

#include <gmock/gmock.h>

#include "cluster/program.h"
#include "http_server.h"

namespace capstan::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Data, ListFitsATerminal) {
  const Folder folder;
  Program run(folder, {"data", "list"});
  ASSERT_EQ(run.exit_code(), 0) << run.errors();
  std::istringstream lines(run.output());
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(line.size(), 80u);
  EXPECT_EQ(count, 9);
  EXPECT_THAT(run.output(), AllOf(HasSubstr("built in"), HasSubstr("your own"), HasSubstr("cifar100")));
}

TEST(Data, ListsAsJson) {
  const Folder folder;
  fs::create_directories(folder / "data/mnist");
  for (const char* name : {"train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte",
                           "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"})
    std::ofstream(folder / "data/mnist" / name) << "x";
  std::ofstream(folder / "data/cifar10.part");
  std::ofstream(folder / "data/cifar-10-binary.tar.gz.part") << "x";
  Program run(folder, {"data", "list", "--json", "--data-dir=" + (folder / "data").string()});
  ASSERT_EQ(run.exit_code(), 0) << run.errors();
  std::map<std::string, std::string> here;
  const auto result = run.json();
  for (const auto& row : result["datasets"]) here[row["name"]] = row["here"];
  EXPECT_EQ(here["mnist"], "yes");
  EXPECT_EQ(here["fashion-mnist"], "no");
  EXPECT_EQ(here["cifar10"], "in part");
  EXPECT_EQ(here["digits"], "built in");
}

TEST(Data, WrongInputIsOneLineAndCode2) {
  const Folder folder;
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"data", "--json"}, "list, get NAME or verify NAME"},
      {{"data", "fetch", "mnist", "--json"}, "list, get NAME or verify NAME"},
      {{"data", "get", "--json"}, "needs a dataset's name"},
      {{"data", "get", "mnits", "--json"}, "did you mean mnist?"},
      {{"data", "verify", "cifar", "--json"}, "did you mean cifar10?"},
      {{"data", "get", "mnist", "--mirrors=x", "--json"}, "did you mean --mirror?"},
      {{"data", "get", "mnist", "--mirror=/no/such/folder", "--json"}, "--mirror /no/such/folder"},
      {{"data", "get", "imagefolder", "--json"}, "--data-dir"},
      {{"data", "list", "mnist", "--json"}, "unexpected argument"},
  };
  for (const auto& [arguments, says] : cases) {
    Program run(folder, arguments);
    EXPECT_EQ(run.exit_code(), 2) << says;
    const auto errors = run.errors();
    EXPECT_THAT(errors, HasSubstr(says));
    EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
    EXPECT_EQ(run.json()["ok"], false) << run.output();
  }
}

TEST(Data, BuiltInDatasetsNeedNoDownload) {
  const Folder folder;
  Program run(folder, {"data", "get", "digits", "--json"});
  EXPECT_EQ(run.exit_code(), 0) << run.errors();
  EXPECT_EQ(run.json()["ok"], true);
}

TEST(Data, VerifyNamesMissingFilesAndFails) {
  const Folder folder;
  Program run(folder, {"data", "verify", "mnist", "--json", "--data-dir=" + (folder / "data").string()});
  EXPECT_EQ(run.exit_code(), 1);
  EXPECT_EQ(run.json()["ok"], false);
  EXPECT_EQ(run.json()["problems"].size(), 4u);
  EXPECT_THAT(run.errors(), HasSubstr("t10k-labels-idx1-ubyte.gz is missing"));
}

TEST(Data, GetWithoutANetworkExplainsWhereToPlaceFiles) {
  const Folder folder;
  const auto data = (folder / "data").string();
  Program run(folder,
              {"data", "get", "mnist", "--json", "--data-dir=" + data, "--mirror=http://127.0.0.1:1"});
  EXPECT_EQ(run.exit_code(), 1);
  EXPECT_EQ(run.json()["ok"], false);
  EXPECT_THAT(run.errors(), AllOf(HasSubstr("place train-images-idx3-ubyte.gz"), HasSubstr(data + "/mnist"),
                                  HasSubstr("--mirror")));
}

class Interrupted : public ::testing::Test {
 protected:
  std::vector<std::string> get() {
    return {"data", "get", "cifar10", "--data-dir=" + (folder_ / "data").string(),
            "--mirror=" + server_.url()};
  }
  // Waits until the server has sent all it sends.
  bool has_downloaded(std::uint64_t bytes) {
    return eventually([&] {
      std::error_code error;
      return fs::file_size(part_, error) == bytes && !error;
    });
  }

  const Folder folder_;
  const fs::path part_ = folder_ / "data" / "cifar-10-binary.tar.gz.part";
  HttpServer server_;
};

TEST_F(Interrupted, ByCtrlCKeepsThePartAndResumes) {
  server_.set("/cifar-10-binary.tar.gz",
              Answer{.body = std::string(100'000, 'x'), .stop_after = 60'000, .stalls = true});
  Program first(folder_, get());
  ASSERT_TRUE(has_downloaded(60'000)) << first.errors();
  first.child().signal(SIGINT);
  EXPECT_EQ(first.exit_code(), 130) << first.errors();
  EXPECT_THAT(first.errors(), HasSubstr("run the same command again"));
  EXPECT_TRUE(has_downloaded(60'000));
  Program second(folder_, get());
  EXPECT_EQ(second.exit_code(), 1);
  // It requested the rest, found a wrong checksum, started over once, and kept nothing.
  const auto requests = server_.requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[1].range, "60000-");
  EXPECT_EQ(requests[2].range, "");
  EXPECT_THAT(second.errors(), AllOf(HasSubstr("expected sha256:c4a38c50"), HasSubstr("found sha256:")));
  EXPECT_FALSE(fs::exists(part_));
}

TEST_F(Interrupted, ByAnotherProcessOnlyForTheSameDataset) {
  server_.set("/cifar-10-binary.tar.gz",
              Answer{.body = std::string(100'000, 'x'), .stop_after = 60'000, .stalls = true});
  Program first(folder_, get());
  ASSERT_TRUE(has_downloaded(60'000)) << first.errors();
  Program second(folder_, get());
  EXPECT_EQ(second.exit_code(), 1);
  EXPECT_THAT(second.errors(), HasSubstr("another capstan data get is working"));
  first.child().signal(SIGTERM);
  EXPECT_EQ(first.exit_code(), 130);
}

}  // namespace
}  // namespace capstan::testing
