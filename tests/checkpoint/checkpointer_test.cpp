#include "capstan/checkpoint/checkpointer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

#include "checkpoint/mailbox.h"
#include "checkpoint/written_run.h"
#include "support/temporary_folder.h"

namespace capstan::checkpoint {
namespace {

namespace fs = std::filesystem;
using capstan::testing::buffers_values;
using capstan::testing::flat_values;
using capstan::testing::Mailbox;
using capstan::testing::many_shapes;
using capstan::testing::some_buffers;
using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Writing : public ::testing::Test {
 protected:
  const FlatLayout layout_ = many_shapes();
  const std::vector<std::string> state_ = {"momentum_buffer"};
  const TemporaryFolder folder_;
  const fs::path run_ = folder_ / "run";
  Mailbox mailbox_;
  Background background_{mailbox_.deliverer()};
  int done_ = 0;

  Checkpointer make(std::uint64_t every, Version start = {}, std::size_t keep = 3) {
    return {{run_, every, {}, keep}, start, background_, [this] { ++done_; }};
  }
  Manifest manifest(std::uint64_t version) const {
    Manifest m;
    m.version = {version};
    m.parameters = layout_.tensors();
    m.state = state_;
    return m;
  }
  std::shared_ptr<Snapshot> snapshot(Range range) const {
    auto s = std::make_shared<Snapshot>(2, range.size());
    const auto to = s->destinations();
    for (std::size_t a = 0; a < 2; ++a) std::ranges::copy(flat_values(layout_, a, range), to[a]);
    return s;
  }
  Range whole() const { return {0, layout_.size()}; }
  bool wait(int done) {
    return mailbox_.run_until([&] { return done_ >= done; });
  }
  // Waits for all posted tasks.
  void settle() {
    bool settled = false;
    background_.post([] {}, [&](const std::string&) { settled = true; });
    ASSERT_TRUE(mailbox_.run_until([&] { return settled; }));
  }
  // What the first of so many servers does with its range.
  void write_first(Checkpointer& writer, std::uint64_t version, Range range, std::uint32_t servers = 1,
                   const FlatLayout& buffers = {}) {
    writer.describe_buffers(buffers);
    const auto pieces = std::make_shared<std::vector<Piece>>();
    background_.post(
        [=, this, part = snapshot(range)] {
          *pieces = write_part(folder_of(run_, {version}), layout_, state_, 0, servers, range, *part, buffers,
                               buffers_values(buffers));
        },
        [=, &writer](const std::string& error) { writer.written(0, {version}, error, *pieces); });
  }
  void expect_good(std::uint64_t version) {
    const auto folder = folder_of(run_, {version});
    const auto read = read_manifest(folder);
    verify(folder, read);
    std::vector<float> weights(layout_.size()), state(layout_.size());
    const std::vector<NamedArray> arrays = {{"weights", weights}, {"momentum_buffer", state}};
    load(folder, read, whole(), arrays);
    EXPECT_EQ(weights, flat_values(layout_, 0, whole()));
    EXPECT_EQ(state, flat_values(layout_, 1, whole()));
  }
};

TEST_F(Writing, IsDueAfterAMultipleOfTheSteps) {
  const auto due = [&](std::uint64_t every, std::uint64_t start) {
    std::vector<std::uint64_t> list;
    const auto writer = make(every, {start});
    for (std::uint64_t v = start; v < start + 12; ++v) {
      if (writer.is_due({v})) list.push_back(v);
    }
    return list;
  };
  EXPECT_THAT(due(10, 0), ElementsAre(10, 11));
  EXPECT_THAT(due(10, 20), ElementsAre(30, 31));
  EXPECT_THAT(due(10, 17), ElementsAre(20, 21, 22, 23, 24, 25, 26, 27, 28));
  EXPECT_THAT(due(0, 0), ElementsAre());
  EXPECT_FALSE(Checkpointer({{}, 1, {}, 3}, {}, background_, [] {}).is_due({5}));
}

TEST_F(Writing, IsDueByTimeAfterANewUpdate) {
  const Checkpointer soon({run_, 0, std::chrono::nanoseconds(1), 3}, {4}, background_, [] {});
  EXPECT_FALSE(soon.is_due({4}));
  EXPECT_TRUE(soon.is_due({5}));
  const Checkpointer late({run_, 0, std::chrono::hours(10), 3}, {4}, background_, [] {});
  EXPECT_FALSE(late.is_due({5}));
}

TEST_F(Writing, OfOneServerIsCompleteWithItsPart) {
  auto writer = make(10);
  EXPECT_EQ(writer.begin(manifest(10), 1), folder_of(run_, {10}));
  EXPECT_TRUE(writer.is_saving());
  EXPECT_FALSE(writer.is_due({20})) << "one at a time";
  EXPECT_TRUE(writer.has_tried({10}));
  EXPECT_EQ(writer.state(), CheckpointState::kCollectingBuffers);
  write_first(writer, 10, whole(), 1, some_buffers());
  EXPECT_EQ(writer.state(), CheckpointState::kWriting);
  ASSERT_TRUE(wait(1));
  EXPECT_FALSE(writer.is_saving());
  EXPECT_EQ(writer.newest().value, 10u);
  EXPECT_EQ(writer.error(), "");
  expect_good(10);
  EXPECT_EQ(load_buffers(folder_of(run_, {10}), read_manifest(folder_of(run_, {10}))),
            buffers_values(some_buffers()));
  EXPECT_FALSE(writer.is_due({19}));
  EXPECT_TRUE(writer.is_due({20}));
}

TEST_F(Writing, OfAModelWithoutBuffersHasNone) {
  auto writer = make(1);
  writer.begin(manifest(1), 1);
  write_first(writer, 1, whole());
  ASSERT_TRUE(wait(1));
  expect_good(1);
  EXPECT_TRUE(read_manifest(folder_of(run_, {1})).buffers.empty());
}

TEST_F(Writing, OfSeveralServersEndsWithTheManifest) {
  auto writer = make(10);
  const auto folder = writer.begin(manifest(10), 3);
  const Range first{0, 100}, second{100, 150}, third{150, layout_.size()};
  write_first(writer, 10, first, 3);
  auto part = snapshot(third);
  writer.written(2, {10}, "", write_part(folder, layout_, state_, 2, 3, third, *part));
  writer.written(1, {9}, "", {});  // of an earlier attempt
  settle();
  EXPECT_TRUE(writer.is_saving());
  EXPECT_TRUE(fs::exists(folder / "weights-1-of-3.safetensors"));
  EXPECT_FALSE(fs::exists(folder / kManifestFile)) << "not before the last part is written";
  EXPECT_THAT(list(run_), ::testing::IsEmpty());
  part = snapshot(second);
  writer.written(1, {10}, "", write_part(folder, layout_, state_, 1, 3, second, *part));
  ASSERT_TRUE(wait(1));
  expect_good(10);
}

TEST_F(Writing, APartThatIsNotVisibleHereIsNamed) {
  auto writer = make(10);
  const auto folder = writer.begin(manifest(10), 2);
  const Range first{0, 100}, second{100, layout_.size()};
  write_first(writer, 10, first, 2);
  auto part = snapshot(second);
  writer.written(1, {10}, "", write_part(folder_ / "of another host", layout_, state_, 1, 2, second, *part));
  ASSERT_TRUE(wait(1));
  EXPECT_THAT(writer.error(), HasSubstr("weights-2-of-2.safetensors"));
  EXPECT_THAT(writer.error(), HasSubstr("--train-dir"));
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(Writing, RemovesAFailedCheckpointAndTheNextSucceeds) {
  auto writer = make(10);
  // Failure at another server.
  auto folder = writer.begin(manifest(10), 2);
  write_first(writer, 10, whole(), 2);
  settle();
  EXPECT_TRUE(fs::exists(folder));
  writer.written(1, {10}, "no space left", {});
  EXPECT_TRUE(writer.is_saving()) << "until its files are removed";
  ASSERT_TRUE(wait(1));
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_FALSE(writer.is_saving());
  EXPECT_EQ(writer.error(), "no space left");
  EXPECT_EQ(writer.newest().value, 0u);
  // Loss of a server.
  writer.begin(manifest(20), 2);
  writer.lost(1);
  writer.lost(1);
  writer.written(1, {20}, "", {});
  writer.written(0, {20}, "", {});
  ASSERT_TRUE(wait(2));
  EXPECT_THAT(writer.error(), HasSubstr("server 1 is lost"));
  settle();
  EXPECT_EQ(done_, 2) << "late parts are ignored";
  EXPECT_FALSE(fs::exists(folder_of(run_, {20})));
  // Failure at this server: a file has the folder's name.
  write_file(folder_of(run_, {30}), "in the way");
  writer.begin(manifest(30), 1);
  write_first(writer, 30, whole());
  ASSERT_TRUE(wait(3));
  EXPECT_THAT(writer.error(), HasSubstr("step-00000030"));
  writer.begin(manifest(40), 1);
  write_first(writer, 40, whole());
  ASSERT_TRUE(wait(4));
  EXPECT_EQ(writer.error(), "");
  EXPECT_EQ(writer.newest().value, 40u);
  expect_good(40);
}

TEST_F(Writing, KeepsTheNewestOnes) {
  auto writer = make(10, {}, 2);
  for (std::uint64_t v = 10; v <= 50; v += 10) {
    writer.begin(manifest(v), 1);
    write_first(writer, v, whole());
    ASSERT_TRUE(wait(static_cast<int>(v / 10)));
  }
  const auto left = list(run_);
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0].version.value, 40u);
  EXPECT_EQ(left[1].version.value, 50u);
}

// A run that resumes from a checkpoint before the newest, because that one is damaged or by the user's
// choice, must not treat the newer ones as its own.
TEST_F(Writing, SetsCheckpointsNewerThanTheStartAside) {
  for (const std::uint64_t v : {10, 20, 30}) capstan::testing::write_checkpoint(folder_of(run_, {v}), 1);
  auto writer = make(5, {10}, 1);
  writer.begin(manifest(15), 1);
  write_first(writer, 15, whole());
  ASSERT_TRUE(wait(1));
  ASSERT_EQ(writer.error(), "");
  const auto left = list(run_);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].version.value, 15u);
  expect_good(15);
  // The set-aside checkpoints still exist.
  for (const char* name : {"aside-step-00000020", "aside-step-00000030"}) {
    const auto folder = run_ / "checkpoints" / name;
    ASSERT_TRUE(fs::exists(folder / kManifestFile)) << name;
    verify(folder, read_manifest(folder));
  }
}

}  // namespace
}  // namespace capstan::checkpoint
