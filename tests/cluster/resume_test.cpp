// `capstan train` that is interrupted, killed or out of disk space, and resumed, as a user sees it.

#include <map>

#include <gmock/gmock.h>
#include <sys/mount.h>

#include "capstan/checkpoint/checkpoint.h"
#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/checkpoint/safetensors.h"
#include "program.h"

namespace capstan::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Flags train(const fs::path& run, Flags more = {}) {
  Flags arguments = {"train", "--json", "--train-dir=" + run.string(), "--log-interval=60"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

Flags with(Flags flags, const Flags& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

// Lasts a few hundred milliseconds, and leaves a checkpoint at its end.
const Flags kShort = {"--dataset=synthetic:1x28x28:10:256", "--max-steps=6"};

std::uint64_t newest(const fs::path& run) {
  const auto list = checkpoint::list(run);
  return list.empty() ? 0 : list.back().version.value;
}

checkpoint::Manifest manifest_of(const fs::path& run) {
  return checkpoint::read_manifest(checkpoint::folder_of(run, {newest(run)}));
}

// Parameters and optimizer state of a run's newest checkpoint, by name; statistics are left out, because
// workers that stop have computed a step more than became part of the weights.
std::map<std::string, std::vector<float>> state_of(const fs::path& run) {
  const auto folder = checkpoint::folder_of(run, {newest(run)});
  const auto manifest = checkpoint::read_manifest(folder);
  std::map<std::string, std::vector<float>> tensors;
  for (const char* file : {"weights.safetensors", "optimizer.safetensors"}) {
    for (auto& t : checkpoint::read_safetensors(folder / file).tensors) tensors[t.name] = std::move(t.values);
  }
  for (const auto& s : manifest.buffers) tensors.erase(s.name);
  EXPECT_EQ(tensors.size(), manifest.parameters.size() * (1 + manifest.state.size()));
  return tensors;
}

void damage(const fs::path& file) {
  auto bytes = text_of(file);
  ASSERT_FALSE(bytes.empty());
  bytes.back() = static_cast<char>(bytes.back() ^ 0x40);
  std::ofstream(file, std::ios::binary) << bytes;
}

// Every file of a folder with its content.
std::map<std::string, std::string> all_files(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files[entry.path().string()] = text_of(entry.path());
  }
  return files;
}

void expect_one_line(Program& run, int code, const std::string& says) {
  EXPECT_EQ(run.exit_code(), code) << run.errors();
  const auto errors = run.errors();
  EXPECT_THAT(errors, HasSubstr(says));
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 1) << errors;
  EXPECT_EQ(run.json()["ok"], false);
}

// ---- bitwise identical results ----

enum class By { kInterrupt, kKill };

// Interrupts or kills a run that would not end by itself, resumes it, and compares it with a run that was not
// ended. How many steps both make follows from where the first one was ended, so that it need not outlast
// anything.
void expect_the_same_bits(const Flags& job, const std::vector<By>& ways) {
  const Folder folder;
  const auto flags = with(job, {"--epochs=10000"});
  for (const auto by : ways) {
    SCOPED_TRACE(by == By::kKill ? "killed" : "interrupted");
    const auto run = folder / (by == By::kKill ? "killed" : "interrupted");
    const auto command = train(run, with(flags, {"--resume=auto"}));
    Program first(folder, command);
    ASSERT_TRUE(first.said(by == By::kKill ? "checkpoint at step" : "epoch 1 ")) << first.errors();
    if (by == By::kKill) {
      const auto servers = first.children(" serve "), workers = first.children(" work ");
      for (const auto pid : servers) ::kill(pid, SIGKILL);
      first.child().signal(SIGKILL);
      for (const auto pid : workers) ::kill(pid, SIGKILL);
      ASSERT_TRUE(all_ended(servers) && all_ended(workers));
      EXPECT_NE(first.exit_code(), 0);
      EXPECT_FALSE(checkpoint::is_finished(run));
    } else {
      first.child().signal(SIGINT);
      ASSERT_EQ(first.exit_code(), 130) << first.errors();
      EXPECT_THAT(first.errors(), HasSubstr("interrupted; to resume: " + path_of("capstan") +
                                            " train --resume " + run.string()));
      EXPECT_EQ(newest(run), first.json()["steps"]);
      EXPECT_TRUE(checkpoint::is_finished(run));
    }
    const auto reached = newest(run);
    ASSERT_GT(reached, 0u);
    const auto steps = reached + 40;
    const Flags limit = {"--max-steps=" + std::to_string(steps)};
    // After an interrupt what it printed is the whole command, from any folder.
    Program second(
        folder, with(by == By::kKill ? command : Flags{"train", "--resume", run.string(), "--json"}, limit),
        {}, by_shell("cd /; exec \"$0\" \"$@\""));
    ASSERT_EQ(second.exit_code(), 0) << second.errors();
    const auto reference = run.string() + "-whole";
    Program whole(folder, train(reference, with(flags, limit)));
    ASSERT_EQ(whole.exit_code(), 0) << whole.errors();
    EXPECT_THAT(second.errors(), HasSubstr("resuming from step " + std::to_string(reached)));
    EXPECT_EQ(second.json()["resumed_from"], reached);
    EXPECT_EQ(second.json()["steps"], steps);
    EXPECT_EQ(second.json()["checkpoint"], steps);
    EXPECT_DOUBLE_EQ(second.json()["epochs"].get<double>(), whole.json()["epochs"].get<double>());
    EXPECT_TRUE(checkpoint::is_finished(run));
    EXPECT_TRUE(state_of(run) == state_of(reference));
    EXPECT_EQ(manifest_of(run).trained_samples, manifest_of(reference).trained_samples);
  }
}

TEST(Resume, OfLeNetOnDigitsGivesTheBitsOfARunThatWasNotEnded) {
  expect_the_same_bits({"--checkpoint-every=30", "--lr-schedule=step:20:0.9"}, {By::kInterrupt, By::kKill});
}

TEST(Resume, OfANetworkWithBatchNormGivesTheSameWeights) {
  expect_the_same_bits(
      {"--network=resnet20", "--dataset=synthetic:3x8x8:4:256", "--batch-size=16", "--checkpoint-every=10"},
      {By::kInterrupt});
}

TEST(Resume, WithoutServersGivesTheBitsOfARunThatWasNotEnded) {
  expect_the_same_bits({"--strategy=single", "--dataset=synthetic:1x28x28:10:512", "--checkpoint-every=20",
                        "--optimizer=adam", "--lr=0.001"},
                       {By::kInterrupt, By::kKill});
}

TEST(Resume, OfAllreduceGivesTheBitsOfARunThatWasNotEnded) {
  expect_the_same_bits({"--strategy=allreduce", "--workers=2", "--checkpoint-every=20"},
                       {By::kInterrupt, By::kKill});
}

// The rate depends on how many steps the whole job has, so that it must end where it would have ended. Until
// it is interrupted, each step takes a hundred times as long.
TEST(Resume, KeepsTheEndOfACosineSchedule) {
  const Folder folder;
  const auto run = folder / "run";
  const Flags flags = {"--dataset=synthetic:1x28x28:10:512", "--epochs=20", "--lr-schedule=cosine"};
  Program first(folder, train(run, with(flags, {"--checkpoint-every=3", "--slow-worker=0:100x"})));
  ASSERT_TRUE(first.said("checkpoint at step")) << first.errors();
  first.child().signal(SIGINT);
  ASSERT_EQ(first.exit_code(), 130) << first.errors();
  Program second(folder, train(run, with(flags, {"--resume=" + run.string(), "--slow-worker=0:1x"})));
  ASSERT_EQ(second.exit_code(), 0) << second.errors();
  EXPECT_GT(second.json()["resumed_from"], 0);
  Program whole(folder, train(folder / "whole", flags));
  ASSERT_EQ(whole.exit_code(), 0) << whole.errors();
  EXPECT_EQ(second.json()["steps"], 20 * 8);
  EXPECT_TRUE(state_of(run) == state_of(folder / "whole"));
}

// ---- on other machines ----

TEST(Resume, OnOtherNumbersOfWorkersAndServersTrainsEverySampleOfEveryEpochOnce) {
  const Folder folder;
  const Flags job = {"--dataset=synthetic:1x28x28:10:500", "--batch-size=8", "--epochs=6"};
  // The first two end in the middle of an epoch.
  const std::vector<Flags> places = {{"--workers=2", "--servers=1", "--max-steps=40"},
                                     {"--workers=3", "--servers=2", "--max-steps=71"},
                                     {"--workers=1", "--servers=3", "--strategy=async", "--max-steps=0"}};
  std::uint64_t reached = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    Program run(folder, train(folder / "run", with(with(job, places[i]), {"--resume=auto"})));
    ASSERT_EQ(run.exit_code(), 0) << run.errors();
    EXPECT_EQ(run.json()["resumed_from"], reached);
    reached = run.json()["steps"];
    const auto manifest = checkpoint::read_manifest(checkpoint::folder_of(folder / "run", {reached}));
    EXPECT_EQ(manifest.segments.size(), i + 1);
    EXPECT_DOUBLE_EQ(run.json()["epochs"].get<double>(), static_cast<double>(manifest.trained_samples) / 500);
  }
  const auto manifest = checkpoint::read_manifest(checkpoint::folder_of(folder / "run", {reached}));
  EXPECT_EQ(manifest.trained_samples, 6u * 500);
}

// ---- which checkpoint ----

TEST(Resume, TakesTheNewestGoodCheckpointAndNamesDamage) {
  const Folder folder;
  const auto run = folder / "run";
  const Flags flags = {"--dataset=synthetic:1x28x28:10:256", "--epochs=10", "--keep=2"};
  Program first(folder, train(run, with(flags, {"--max-steps=12"})));
  ASSERT_EQ(first.exit_code(), 0) << first.errors();
  Program second(folder, train(run, with(flags, {"--max-steps=18", "--resume=auto"})));
  ASSERT_EQ(second.exit_code(), 0) << second.errors();
  ASSERT_EQ(checkpoint::list(run).size(), 2u);

  damage(checkpoint::folder_of(run, {18}) / "optimizer.safetensors");
  Program third(folder, train(run, with(flags, {"--max-steps=18", "--resume=auto"})));
  ASSERT_EQ(third.exit_code(), 0) << third.errors();
  EXPECT_THAT(third.errors(), AllOf(HasSubstr("step-00000018/optimizer.safetensors is damaged"),
                                    HasSubstr("resuming from step 12")));
  EXPECT_EQ(third.json()["resumed_from"], 12);
  EXPECT_EQ(newest(run), 18u) << "written again";
  checkpoint::verify(checkpoint::folder_of(run, {18}),
                     checkpoint::read_manifest(checkpoint::folder_of(run, {18})));

  damage(checkpoint::folder_of(run, {18}) / "weights.safetensors");
  std::ofstream(checkpoint::folder_of(run, {12}) / "manifest.json") << "{}";
  const auto before = all_files(run);
  Program all_bad(folder, train(run, with(flags, {"--max-steps=24", "--resume=auto"})));
  expect_one_line(all_bad, 2, "no valid checkpoint in");
  EXPECT_THAT(all_bad.errors(), AllOf(HasSubstr("step-00000018"), HasSubstr("step-00000012")));
  EXPECT_EQ(all_files(run), before);
}

TEST(Resume, TakesARunOrOneOfItsCheckpointsAndNothingElse) {
  const Folder folder;
  const auto run = folder / "run";
  Program first(folder, train(run, kShort));
  ASSERT_EQ(first.exit_code(), 0) << first.errors();
  const auto checkpoint = checkpoint::folder_of(run, {6}).string();
  const auto before = all_files(run);
  struct Wrong {
    Flags flags;
    std::string says;
  };
  const std::vector<Wrong> cases = {
      {{"--resume=" + (folder / "nowhere").string()}, "neither a checkpoint nor the folder of a run"},
      {{"--resume=" + run.string(), "--network=mlp"}, "cannot be resumed with --network mlp (before: lenet)"},
      {{"--resume=" + run.string(), "--optimizer=adam"}, "--optimizer adam (before: sgd)"},
      {{"--resume=" + run.string(), "--dataset=synthetic:1x28x28:10:255"},
       "--dataset synthetic:1x28x28:10:255 (before: synthetic:1x28x28:10:256)"},
  };
  for (const auto& wrong : cases) {
    Program program(folder, train(run, with(kShort, wrong.flags)));
    expect_one_line(program, 2, wrong.says);
    EXPECT_TRUE(all_files(run) == before) << wrong.flags.back();
  }
  // Another run's folder is not written into.
  Program other(folder, train(folder / "other", kShort));
  ASSERT_EQ(other.exit_code(), 0) << other.errors();
  const auto others = all_files(folder / "other");
  Program mixed(folder, train(folder / "other", with(kShort, {"--resume=" + run.string()})));
  expect_one_line(mixed, 2, "holds a run already");
  EXPECT_TRUE(all_files(folder / "other") == others);

  Program from_folder(folder, train(folder / "a", with(kShort, {"--max-steps=8", "--resume=" + checkpoint})));
  ASSERT_EQ(from_folder.exit_code(), 0) << from_folder.errors();
  EXPECT_EQ(from_folder.json()["resumed_from"], 6);
  EXPECT_EQ(newest(folder / "a"), 8u);
  EXPECT_TRUE(all_files(run) == before) << "a new folder was given: the old run stays as it is";
  // Without --train-dir it continues in the same folder.
  Program in_place(
      folder, with({"train", "--json"}, with(kShort, {"--max-steps=8", "--resume=" + checkpoint + "/"})));
  ASSERT_EQ(in_place.exit_code(), 0) << in_place.errors();
  EXPECT_EQ(newest(run), 8u);
  EXPECT_TRUE(state_of(run) == state_of(folder / "a"));
}

TEST(Resume, NeedsTheRunsConfigurationButNotItsInitialWeights) {
  const Folder folder;
  const auto run = folder / "run";
  Program other(folder, train(folder / "other", kShort));
  ASSERT_EQ(other.exit_code(), 0) << other.errors();
  const auto weights = folder / "first.safetensors";
  fs::copy_file(folder / "other" / "weights.safetensors", weights);
  Program first(folder, train(run, with(kShort, {"--weights=" + weights.string()})));
  ASSERT_EQ(first.exit_code(), 0) << first.errors();
  fs::remove(weights);
  const Flags resume = {"train", "--json", "--log-interval=60", "--max-steps=8", "--resume=" + run.string()};
  Program second(folder, resume);
  ASSERT_EQ(second.exit_code(), 0) << second.errors();
  EXPECT_EQ(newest(run), 8u);

  fs::rename(run / "config.toml", folder / "kept.toml");
  Program with_older(folder, resume);
  expect_one_line(with_older, 2, run.string() + " has no config.toml");
  EXPECT_THAT(with_older.errors(), HasSubstr("--config " + (run / "config.1.toml").string()));
  Program with_file(folder, with(resume, {"--max-steps=10", "--config=" + (folder / "kept.toml").string()}));
  EXPECT_EQ(with_file.exit_code(), 0) << with_file.errors();
  EXPECT_EQ(newest(run), 10u);
}

// In a folder of its own, as `capstan train --resume auto` looks for runs below.
TEST(Resume, AutoFindsTheNewestRunOfTheSameConfiguration) {
  const Folder folder;
  const auto here = by_shell("cd '" + (folder / "").string() + "'; exec \"$0\" \"$@\"");
  const auto run = [&](Flags more) {
    auto program =
        std::make_unique<Program>(folder, with({"train", "--json"}, with(kShort, more)), Flags{}, here);
    EXPECT_EQ(program->exit_code(), 0) << program->errors();
    return program;
  };
  const auto first = run({"--resume=auto"});  // nothing there: it begins
  EXPECT_EQ(first->json()["resumed_from"], 0);
  const auto other = run({"--resume=auto", "--lr=0.01"});
  EXPECT_EQ(other->json()["resumed_from"], 0);
  EXPECT_THAT(other->errors(), HasSubstr("the closest is runs/"));
  EXPECT_THAT(other->errors(), HasSubstr("--lr is 0.02 in that run, 0.01 in this job"));
  const auto second = run({"--resume=auto", "--max-steps=8", "--workers=1"});
  EXPECT_EQ(second->json()["resumed_from"], 6);
  EXPECT_EQ(second->json()["run_dir"], first->json()["run_dir"]);
  EXPECT_THAT(second->errors(), HasSubstr("resuming with --workers 1 (before: 2)"));
}

// Killed before there was anything to keep: the same command begins again.
TEST(Resume, AutoBeginsAgainWhereARunLeftNoCheckpoint) {
  const Folder folder;
  const auto run = folder / "run";
  Program first(folder, train(run, {"--resume=auto", "--epochs=10000", "--checkpoint-every=1h"}));
  ASSERT_TRUE(first.said("epoch 1 ")) << first.errors();
  const auto workers = first.children(" work "), servers = first.children(" serve ");
  first.child().signal(SIGKILL);
  ASSERT_TRUE(all_ended(workers) && all_ended(servers));
  ASSERT_EQ(newest(run), 0u);
  Program again(folder, train(run, {"--resume=auto", "--max-steps=3"}));
  EXPECT_EQ(again.exit_code(), 0) << again.errors();
  EXPECT_EQ(again.json()["resumed_from"], 0);
  EXPECT_EQ(newest(run), 3u);
}

// ---- how many, and how often ----

TEST(Checkpoints, AreKeptAsManyAsTold) {
  const Folder folder;
  Program run(folder, train(folder / "run", {"--dataset=synthetic:1x28x28:10:256", "--epochs=10", "--keep=1",
                                             "--checkpoint-every=3"}));
  ASSERT_EQ(run.exit_code(), 0) << run.errors();
  const auto list = checkpoint::list(folder / "run");
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].version.value, 40u);
  Program never(folder, train(folder / "never", with(kShort, {"--checkpoint-every=never"})));
  ASSERT_EQ(never.exit_code(), 0) << never.errors();
  EXPECT_FALSE(fs::exists(folder / "never" / "checkpoints"));
  EXPECT_EQ(never.json()["checkpoint"], 0);
  Program again(folder, train(folder / "never", with(kShort, {"--resume=auto"})));
  expect_one_line(again, 2, "holds a run already");
}

TEST(Checkpoints, WrongIntervalsAreOneLine) {
  const Folder folder;
  const std::pair<const char*, const char*> cases[] = {
      {"--checkpoint-every=0", "--checkpoint-every 0"},
      {"--checkpoint-every=often", "--checkpoint-every often"},
      {"--keep=0", "--keep"},
  };
  for (const auto& [flag, says] : cases) {
    Program run(folder, train(folder / "run", {flag}));
    expect_one_line(run, 2, says);
    EXPECT_FALSE(fs::exists(folder / "run"));
  }
}

// A disk with room for the weights, but not for the optimizer's state beside them.
class SmallDisk {
 public:
  explicit SmallDisk(const fs::path& path) : path_(path) {
    fs::create_directories(path);
    is_mounted_ = ::mount("none", path.c_str(), "tmpfs", 0, "size=3m") == 0;
  }
  ~SmallDisk() {
    if (is_mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  bool is_mounted() const { return is_mounted_; }

 private:
  fs::path path_;
  bool is_mounted_ = false;
};

TEST(Checkpoints, ThatADiskHasNoRoomForDoNotEndTheRun) {
  for (const char* strategy : {"sync", "single"}) {
    const Folder folder;
    const SmallDisk disk(folder / "disk");
    if (!disk.is_mounted()) GTEST_SKIP() << "only root mounts file systems";
    const auto run = folder / "disk" / "run";
    Program program(folder, train(run, {"--dataset=synthetic:1x28x28:10:256", "--epochs=3",
                                        "--checkpoint-every=4", std::string("--strategy=") + strategy}));
    EXPECT_EQ(program.exit_code(), 0) << program.errors();
    EXPECT_THAT(program.errors(), AllOf(HasSubstr("a checkpoint could not be written"),
                                        HasSubstr("optimizer.safetensors"), HasSubstr("No space left")))
        << strategy;
    EXPECT_EQ(program.json()["ok"], true);
    EXPECT_EQ(program.json()["checkpoint"], 0);
    EXPECT_EQ(newest(run), 0u);
    EXPECT_TRUE(fs::exists(run / "weights.safetensors"));
  }
}

TEST(Checkpoints, ThatCannotBeWrittenAtAllDoNotEndTheRun) {
  for (const char* strategy : {"sync", "single"}) {
    const Folder folder;
    fs::create_directories(folder / "run");
    std::ofstream(folder / "run" / "checkpoints") << "in the way";
    Program program(folder, train(folder / "run", with(kShort, {std::string("--strategy=") + strategy})));
    EXPECT_EQ(program.exit_code(), 0) << program.errors();
    EXPECT_THAT(program.errors(), HasSubstr("a checkpoint could not be written")) << strategy;
    EXPECT_EQ(program.json()["ok"], true);
  }
}

}  // namespace
}  // namespace capstan::testing
