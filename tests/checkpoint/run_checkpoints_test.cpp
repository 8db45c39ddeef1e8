#include "capstan/checkpoint/run_checkpoints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "capstan/user_error.h"

#include "checkpoint/written_run.h"
#include "support/temporary_folder.h"

namespace capstan::checkpoint {
namespace {

namespace fs = std::filesystem;
using capstan::testing::contents;
using capstan::testing::TemporaryFolder;
using capstan::testing::write_checkpoint;
using capstan::testing::write_file;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A run with small checkpoints of these versions.
void make_run(const fs::path& run, const std::vector<std::uint64_t>& versions) {
  for (const auto v : versions) write_checkpoint(folder_of(run, {v}), 1, {}, false, {v});
}

std::vector<std::uint64_t> versions(const fs::path& run) {
  std::vector<std::uint64_t> list;
  for (const auto& entry : checkpoint::list(run)) list.push_back(entry.version.value);
  return list;
}

std::vector<std::string> names(const fs::path& run) {
  std::vector<std::string> list;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints"))
    list.push_back(entry.path().filename());
  std::ranges::sort(list);
  return list;
}

TEST(RunCheckpoints, AreFoldersNamedForTheirStep) {
  EXPECT_EQ(folder_of("r", {500}), "r/checkpoints/step-00000500");
  EXPECT_EQ(folder_of("r", {12'345'678'901}), "r/checkpoints/step-12345678901");
}

TEST(RunCheckpoints, ListsCompleteOnesByVersion) {
  const TemporaryFolder run;
  EXPECT_THAT(versions(run.path()), IsEmpty());
  make_run(run.path(), {100'000'000, 20, 3, 99'999'999});
  fs::create_directories(folder_of(run.path(), {21}));  // no manifest
  fs::create_directories(run / "checkpoints/step-7x");
  fs::create_directories(run / "checkpoints/stop-7");
  write_file(run / "checkpoints/step-00000008", "a file");
  EXPECT_THAT(versions(run.path()), ElementsAre(3, 20, 99'999'999, 100'000'000));
}

TEST(RunCheckpoints, TheNewestValidOneIsFoundAndDamageNamed) {
  const TemporaryFolder run;
  std::vector<std::string> complaints;
  EXPECT_FALSE(newest_good(run.path(), complaints));
  make_run(run.path(), {10, 20, 30, 40});
  EXPECT_EQ(newest_good(run.path(), complaints)->manifest.version.value, 40u);
  EXPECT_THAT(complaints, IsEmpty());

  write_file(folder_of(run.path(), {40}) / "manifest.json", "{");
  auto bytes = contents(folder_of(run.path(), {30}) / "weights.safetensors");
  bytes.back() ^= 1;
  write_file(folder_of(run.path(), {30}) / "weights.safetensors", bytes);
  const auto found = newest_good(run.path(), complaints);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->manifest.version.value, 20u);
  EXPECT_EQ(found->folder, folder_of(run.path(), {20}));
  EXPECT_THAT(complaints,
              ElementsAre(HasSubstr("step-00000040/manifest.json"),
                          AllOf(HasSubstr("step-00000030/weights.safetensors"), HasSubstr("damaged"))));

  fs::remove(folder_of(run.path(), {20}) / "weights.safetensors");
  fs::remove_all(folder_of(run.path(), {10}));
  complaints.clear();
  EXPECT_FALSE(newest_good(run.path(), complaints));
  EXPECT_EQ(complaints.size(), 3u);
}

TEST(RunCheckpoints, OldOnesAreRemovedExceptTheBest) {
  const TemporaryFolder run;
  make_run(run.path(), {10, 20, 30, 40, 50});
  link_best(run.path(), {20});
  remove_old(run.path(), 2);
  EXPECT_THAT(names(run.path()), ElementsAre("best", "step-00000020", "step-00000040", "step-00000050"));
  link_best(run.path(), {40});
  remove_old(run.path(), 1);
  EXPECT_THAT(names(run.path()), ElementsAre("best", "step-00000040", "step-00000050"));
  remove_old(run.path(), 7);
  EXPECT_THAT(versions(run.path()), ElementsAre(40, 50));
}

TEST(RunCheckpoints, OldIncompleteOnesAreRemoved) {
  const TemporaryFolder run;
  remove_old(run.path(), 1);  // nothing there yet
  for (const std::uint64_t v : {5, 15, 25}) {
    fs::create_directories(folder_of(run.path(), {v}));
    write_file(folder_of(run.path(), {v}) / "weights.safetensors.tmp-abc", "half");
  }
  remove_old(run.path(), 1);
  EXPECT_EQ(names(run.path()).size(), 3u);  // without a complete one it is unknown which are old
  make_run(run.path(), {20});
  write_file(run / "checkpoints/mine.txt", "of the user");
  remove_old(run.path(), 1);
  EXPECT_THAT(names(run.path()), ElementsAre("mine.txt", "step-00000020", "step-00000025"));
}

// A run that resumes from step 20 keeps newer checkpoints aside until it has passed them.
TEST(RunCheckpoints, SetAsideOnesAreRemovedOnceTheRunHasPassedThem) {
  const TemporaryFolder run;
  make_run(run.path(), {10, 20, 30, 40});
  link_best(run.path(), {30});
  set_newer_aside(run.path(), {20});
  EXPECT_THAT(names(run.path()),
              ElementsAre("aside-step-00000030", "aside-step-00000040", "step-00000010", "step-00000020"))
      << "the best was one of those";
  make_run(run.path(), {35});
  remove_old(run.path(), 9);
  EXPECT_THAT(names(run.path()),
              ElementsAre("aside-step-00000040", "step-00000010", "step-00000020", "step-00000035"));
  link_best(run.path(), {20});
  set_newer_aside(run.path(), {20});
  EXPECT_THAT(names(run.path()), ElementsAre("aside-step-00000035", "aside-step-00000040", "best",
                                             "step-00000010", "step-00000020"));
}

TEST(RunCheckpoints, TwoOfOneVersionHaveDifferentIdentities) {
  const TemporaryFolder run;
  EXPECT_EQ(identity(run / "none"), "");
  make_run(run.path(), {10, 20});
  const auto first = identity(folder_of(run.path(), {10}));
  EXPECT_EQ(first.size(), 16u);
  EXPECT_EQ(identity(folder_of(run.path(), {10})), first);
  EXPECT_NE(identity(folder_of(run.path(), {20})), first);
  auto manifest = read_manifest(folder_of(run.path(), {10}));
  manifest.pieces[0].checksum ^= 1;  // the same step with other weights
  write_manifest(folder_of(run.path(), {10}), manifest);
  EXPECT_NE(identity(folder_of(run.path(), {10})), first);
}

TEST(RunCheckpoints, TheBestIsALinkThatMovesWithTheRun) {
  const TemporaryFolder home;
  const auto run = home / "run";
  make_run(run, {10, 20});
  link_best(run, {10});
  link_best(run, {20});
  EXPECT_EQ(fs::read_symlink(run / "checkpoints/best"), "step-00000020");
  EXPECT_THAT(names(run), ElementsAre("best", "step-00000010", "step-00000020"));
  fs::rename(run, home / "elsewhere");
  EXPECT_EQ(read_manifest(home / "elsewhere/checkpoints/best").version.value, 20u);
  EXPECT_THAT(versions(home / "elsewhere"), ElementsAre(10, 20));  // the link is not counted
  EXPECT_THROW(link_best(home / "nowhere", {10}), UserError);
}

TEST(RunCheckpoints, ARunIsFinishedUntilItResumes) {
  const TemporaryFolder run;
  mark_running(run.path());
  EXPECT_FALSE(is_finished(run.path()));
  mark_finished(run.path(), {30}, "lost");
  EXPECT_TRUE(is_finished(run.path()));
  EXPECT_EQ(nlohmann::json::parse(contents(run / "checkpoints/finished.json")),
            (nlohmann::json{{"version", 30}, {"why", "lost"}}));
  mark_running(run.path());
  EXPECT_FALSE(is_finished(run.path()));
}

}  // namespace
}  // namespace capstan::checkpoint
