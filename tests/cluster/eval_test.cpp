// `capstan eval` and `capstan inspect` on real runs, as a user sees them.

#include <set>
#include <sstream>

#include <gmock/gmock.h>

#include "program.h"

namespace capstan::testing {
namespace {

using ::testing::HasSubstr;

using Json = nlohmann::json;
Flags train(const fs::path& run, const Flags& more) {
  Flags arguments = {"train", "--json", "--train-dir=" + run.string(), "--log-interval=60"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<Json> lines_of(const fs::path& file) {
  std::vector<Json> lines;
  std::istringstream in(text_of(file));
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line, nullptr, false));
  return lines;
}

// Images of 28x28 and labels as MNIST's files have them: class c is bright in its own rows.
void write_idx(const fs::path& folder, const std::string& prefix, unsigned count) {
  const auto number = [](std::string& out, unsigned n) {
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(n >> shift));
  };
  std::string images, labels;
  for (const unsigned n : {0x803u, count, 28u, 28u}) number(images, n);
  for (const unsigned n : {0x801u, count}) number(labels, n);
  for (unsigned i = 0; i < count; ++i) {
    const unsigned c = i % 10;
    labels.push_back(static_cast<char>(c));
    for (unsigned p = 0; p < 28 * 28; ++p)
      images.push_back(static_cast<char>(p / 28 / 2 == c ? 255 : (p * 7 + i) % 32));
  }
  fs::create_directories(folder);
  std::ofstream(folder / (prefix + "-images-idx3-ubyte"), std::ios::binary) << images;
  std::ofstream(folder / (prefix + "-labels-idx1-ubyte"), std::ios::binary) << labels;
}

TEST(Eval, EvaluatesEveryCheckpointOnceAndLinksTheBest) {
  const Folder folder;
  const auto run = folder / "run";
  Program trained(folder, train(run, {"--epochs=3", "--checkpoint-every=20", "--keep=10"}));
  ASSERT_EQ(trained.exit_code(), 0) << trained.errors();

  Program eval(folder, {"eval", "--train-dir=" + run.string(), "--json"});
  ASSERT_EQ(eval.exit_code(), 0) << eval.errors();
  const auto lines = lines_of(run / "evaluations.jsonl");
  std::set<std::string> folders, evaluated;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints"))
    if (entry.is_directory() && !entry.is_symlink()) folders.insert(entry.path().filename());
  Json best = lines.at(0);
  for (const auto& line : lines) {
    evaluated.insert(line["checkpoint"].get<std::string>());
    EXPECT_EQ(line["samples"], 359);
    EXPECT_GE(line["test_top5"].get<double>(), line["test_accuracy"].get<double>());
    if (line["test_accuracy"] > best["test_accuracy"]) best = line;
  }
  EXPECT_EQ(evaluated, folders);
  EXPECT_EQ(lines.size(), folders.size());
  // The run's own last evaluation is of the same weights.
  EXPECT_EQ(lines.back()["step"], trained.json()["steps"]);
  EXPECT_EQ(lines.back()["test_accuracy"], trained.json()["test_accuracy"]);
  EXPECT_NEAR(lines.back()["test_loss"], trained.json()["test_loss"], 1e-6);
  EXPECT_EQ(eval.json()["best"], best);
  EXPECT_EQ(fs::read_symlink(run / "checkpoints" / "best"), best["checkpoint"].get<std::string>());

  Program again(folder, {"eval", "--model-dir", run.string(), "--once"});
  EXPECT_EQ(again.exit_code(), 0) << again.errors();
  EXPECT_EQ(lines_of(run / "evaluations.jsonl").size(), lines.size()) << "nothing is evaluated twice";
}

TEST(Eval, WhatARunMakesAgainIsEvaluatedAgain) {
  const Folder folder;
  const auto run = folder / "run";
  const Flags flags = {"--epochs=2", "--checkpoint-every=20", "--keep=10"};
  Program trained(folder, train(run, flags));
  ASSERT_EQ(trained.exit_code(), 0) << trained.errors();
  Program first(folder, {"eval", "--train-dir=" + run.string(), "--json"});
  ASSERT_EQ(first.exit_code(), 0) << first.errors();
  // Steps 20, 40, 46; where the disk is slow, 40 is left out while 20 is still being written.
  std::size_t made = 0;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints"))
    made += entry.path().filename().string().starts_with("step-") ? 1 : 0;
  ASSERT_GE(made, 2u);
  ASSERT_EQ(lines_of(run / "evaluations.jsonl").size(), made);

  // With another learning rate the same steps have other weights.
  Program again(folder,
                {"train", "--json", "--resume=" + (run / "checkpoints/step-00000020").string(), "--lr=0.05"});
  ASSERT_EQ(again.exit_code(), 0) << again.errors();
  Program second(folder, {"eval", "--train-dir=" + run.string(), "--json"});
  ASSERT_EQ(second.exit_code(), 0) << second.errors();
  const auto lines = lines_of(run / "evaluations.jsonl");
  EXPECT_EQ(lines.back()["step"], again.json()["steps"]);
  EXPECT_EQ(lines.back()["test_accuracy"], again.json()["test_accuracy"]);
  EXPECT_EQ(std::ranges::count_if(lines, [](const Json& line) { return line["step"] == 46; }), 2)
      << "the last step of both";
  // The best is one of the run as it is now.
  Json best = lines.at(0);
  for (std::size_t i = made; i < lines.size(); ++i)
    if (lines[i]["test_accuracy"] > best["test_accuracy"]) best = lines[i];
  EXPECT_EQ(second.json()["best"], best);
  EXPECT_EQ(fs::read_symlink(run / "checkpoints" / "best"), best["checkpoint"].get<std::string>());
  EXPECT_TRUE(fs::exists(run / "checkpoints" / "best" / "manifest.json"));
}

TEST(Eval, TwoOfOneRunAreOneTooMany) {
  const Folder folder;
  const auto run = folder / "run";
  Program trained(folder, train(run, {"--max-steps=3", "--checkpoint-every=3"}));
  ASSERT_EQ(trained.exit_code(), 0) << trained.errors();
  fs::remove(run / "checkpoints" / "finished.json");  // as if it still ran
  Program first(folder, {"eval", "--train-dir=" + run.string()});
  ASSERT_TRUE(first.said("step 3")) << first.errors();
  Program second(folder, {"eval", "--train-dir=" + run.string()});
  EXPECT_EQ(second.exit_code(), 2);
  EXPECT_THAT(second.errors(), HasSubstr("is being evaluated by another process"));
  first.child().signal(SIGINT);
  EXPECT_EQ(first.exit_code(), 130);
  EXPECT_EQ(lines_of(run / "evaluations.jsonl").size(), 1u);
}

TEST(Eval, RunsBesideAJobAndEndsWithIt) {
  const Folder folder;
  const auto run = folder / "run";
  Program trained(folder, train(run, {"--epochs=4", "--checkpoint-every=40", "--evaluator"}));
  ASSERT_TRUE(trained.said("epoch 1 ")) << trained.errors();
  const auto evaluators = trained.children(" eval ");
  ASSERT_EQ(evaluators.size(), 1u);
  ASSERT_EQ(trained.exit_code(), 0) << trained.errors();
  EXPECT_TRUE(all_ended(evaluators));
  const auto lines = lines_of(run / "evaluations.jsonl");
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back()["step"], trained.json()["steps"]);
  EXPECT_THAT(trained.errors(), HasSubstr("evaluator: step"));
}

// Otherwise it would wait for finished.json.
TEST(Eval, EndsWithAJobThatCannotBeMarkedFinished) {
  const Folder folder;
  for (const char* strategy : {"sync", "single"}) {
    const auto run = folder / strategy;
    fs::create_directories(run);
    std::ofstream(run / "checkpoints") << "in the way";
    Program trained(folder, train(run, {"--dataset=synthetic:1x28x28:10:128", "--max-steps=2", "--evaluator",
                                        std::string("--strategy=") + strategy}));
    EXPECT_EQ(trained.exit_code(), 0) << trained.errors();
    EXPECT_THAT(trained.errors(), HasSubstr("the evaluator was stopped")) << strategy;
  }
}

TEST(Eval, OfABatchNormNetworkUsesTheSameStatisticsAsTheRun) {
  const Folder folder;
  const auto run = folder / "run";
  Program trained(folder, train(run, {"--network=resnet20", "--dataset=synthetic:3x16x16:4:128", "--epochs=3",
                                      "--checkpoint-every=2"}));
  ASSERT_EQ(trained.exit_code(), 0) << trained.errors();
  Program eval(folder, {"eval", "--train-dir=" + run.string(), "--once"});
  ASSERT_EQ(eval.exit_code(), 0) << eval.errors();
  EXPECT_NEAR(lines_of(run / "evaluations.jsonl").back()["test_loss"], trained.json()["test_loss"], 1e-5);
}

TEST(Eval, NeedsTheTestSetOnly) {
  const Folder folder;
  const auto run = folder / "run", data = folder / "mnist";
  write_idx(data, "train", 200);
  write_idx(data, "t10k", 50);
  Program trained(folder, train(run, {"--dataset=mnist", "--data-dir=" + data.string(), "--epochs=2"}));
  ASSERT_EQ(trained.exit_code(), 0) << trained.errors();
  fs::remove(data / "train-images-idx3-ubyte");
  fs::remove(data / "train-labels-idx1-ubyte");
  Program eval(folder, {"eval", "--train-dir=" + run.string(), "--once", "--json"});
  ASSERT_EQ(eval.exit_code(), 0) << eval.errors();
  EXPECT_EQ(eval.json()["best"]["samples"], 50);
  EXPECT_EQ(eval.json()["best"]["test_accuracy"], trained.json()["test_accuracy"]);
}

TEST(Eval, MistakesAreSaid) {
  const Folder folder;
  const auto run = folder / "run";
  Program trained(folder, train(run, {"--dataset=synthetic:1x28x28:10:128", "--max-steps=2"}));
  ASSERT_EQ(trained.exit_code(), 0) << trained.errors();
  fs::create_directories(folder / "empty");
  const std::pair<Flags, std::string> mistakes[] = {
      {{"eval"}, "--train-dir is required"},
      {{"eval", "--train-dir=/nowhere"}, "no such folder"},
      {{"eval", "--train-dir=" + (folder / "empty").string(), "--once"}, "has no checkpoint yet"},
      {{"eval", "--train-dir=" + run.string(), "--once", "--network=mlp"}, "does not match network mlp"},
  };
  for (const auto& [arguments, said] : mistakes) {
    Program eval(folder, arguments);
    EXPECT_EQ(eval.exit_code(), 2) << said;
    EXPECT_THAT(eval.errors(), HasSubstr(said));
  }
}

TEST(Inspect, ShowsACheckpointAndExportsWhatTheRunEndedWith) {
  const Folder folder;
  const auto run = folder / "run", file = folder / "model.safetensors";
  Program trained(folder, train(run, {"--network=resnet20", "--dataset=synthetic:3x16x16:4:128", "--epochs=1",
                                      "--servers=2"}));
  ASSERT_EQ(trained.exit_code(), 0) << trained.errors();
  Program shown(folder, {"inspect", run.string(), "--export=" + file.string(), "--json"});
  ASSERT_EQ(shown.exit_code(), 0) << shown.errors();
  EXPECT_EQ(shown.json()["version"], trained.json()["steps"]);
  EXPECT_EQ(shown.json()["trained_samples"], 128);
  EXPECT_EQ(text_of(file), text_of(run / "weights.safetensors"));

  Program list(folder, {"inspect", run.string()});
  EXPECT_EQ(list.exit_code(), 0);
  EXPECT_THAT(list.output(), HasSubstr("good"));
  const auto part = fs::path(shown.json()["path"].get<std::string>()) / "weights-2-of-2.safetensors";
  auto bytes = text_of(part);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(part, std::ios::binary) << bytes;
  Program damaged(folder, {"inspect", run.string()});
  EXPECT_EQ(damaged.exit_code(), 1);
  EXPECT_THAT(damaged.output(), HasSubstr("weights-2-of-2.safetensors is damaged"));
}

TEST(Inspect, MistakesAreSaid) {
  const Folder folder;
  fs::create_directories(folder / "empty");
  const std::pair<Flags, std::string> mistakes[] = {
      {{"inspect"}, "PATH is required"},
      {{"inspect", "/nowhere"}, "does not exist"},
      {{"inspect", (folder / "empty").string()}, "neither a checkpoint nor a run"},
      {{"inspect", (folder / "empty").string(), "--export=model.onnx"}, "must end in .safetensors or .pt"},
  };
  for (const auto& [arguments, said] : mistakes) {
    Program shown(folder, arguments);
    EXPECT_EQ(shown.exit_code(), 2) << said;
    EXPECT_THAT(shown.errors(), HasSubstr(said));
  }
}

}  // namespace
}  // namespace capstan::testing
