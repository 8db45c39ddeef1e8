#include "capstan/job/checkpoint_evaluator.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/base/failure.h"
#include "capstan/user_error.h"

#include "checkpoint/written_run.h"
#include "job/fakes.h"
#include "support/evaluations.h"
#include "support/temporary_folder.h"

namespace capstan::job {
namespace {

using testing::contents;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

namespace fs = std::filesystem;

// The loss of a checkpoint is its first weight; the test sets the accuracy of each step.
class CheckpointEvaluatorTest : public ::testing::Test {
 protected:
  void write(std::uint64_t step, float first_weight, std::uint64_t trained = 0) {
    const auto folder = checkpoint::folder_of(run_, {step});
    fs::remove_all(folder);
    fs::create_directories(folder);
    std::vector<float> weights(layout_.size(), first_weight);
    checkpoint::Shard shard{0, 1, {0, layout_.size()}, {{"weights", weights}}, {}, {}};
    checkpoint::Manifest manifest;
    manifest.version = {step};
    manifest.parameters = layout_.tensors();
    manifest.samples = 100;
    manifest.trained_samples = trained;
    manifest.pieces = checkpoint::write_shard(folder, layout_, shard);
    checkpoint::write_manifest(folder, manifest);
  }
  CheckpointEvaluator::Options once() const {
    return {run_, "net", layout_, {}, testing::classification_metrics(), 0, 1, true};
  }
  std::string best_link() const { return fs::read_symlink(run_ / "checkpoints/best").string(); }
  std::vector<std::string> lines() const {
    std::vector<std::string> out;
    std::istringstream in(contents(run_ / "evaluations.jsonl"));
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
  }
  std::vector<std::uint64_t> steps() const {
    std::vector<std::uint64_t> out;
    for (const auto& line : lines())
      out.push_back(CheckpointEvaluation::parse(line, testing::classification_metrics())->step);
    return out;
  }

  const TemporaryFolder folder_;
  const fs::path run_ = folder_.path();
  const FlatLayout layout_{std::vector<TensorShape>{{"weight", {3}}}};
  RecordedEvents events_;
  FakeStop stop_;
  FakeClock clock_;
  const Environment environment_{events_, stop_, clock_.now()};
  const CheckpointEvaluator::Evaluate evaluate_ = [this](auto weights, auto) {
    clock_.advance(std::chrono::seconds(3));
    return testing::classified(weights[0], 1 - weights[0], 1, 50);
  };
};

TEST_F(CheckpointEvaluatorTest, EvaluatesCheckpointsAndLinksTheBest) {
  write(10, 0.5f, 150);
  write(20, 0.25f, 300);
  write(30, 0.75f, 450);
  CheckpointEvaluator evaluator(once(), evaluate_, environment_);
  evaluator.run();
  EXPECT_THAT(steps(), ElementsAre(10, 20, 30));
  EXPECT_THAT(evaluator.json().dump(), ::testing::HasSubstr(R"("evaluations":3,"best":{"step":20,)"));
  EXPECT_THAT(evaluator.text(), ::testing::StartsWith("best: step 20 with "));
  EXPECT_EQ(evaluator.best()->step, 20u);
  EXPECT_EQ(best_link(), "step-00000020");
  EXPECT_THAT(
      lines()[0],
      ::testing::StartsWith(
          R"({"step":10,"epoch":1.5,"test_accuracy":0.5,"test_loss":0.5,"test_top5":1.0,"samples":50,)"
          R"("seconds":3.0,"checkpoint":"step-00000010","id":")"));
  EXPECT_THAT(
      events_.messages(),
      ElementsAre("step 10  epoch 1.50  test accuracy 50.00 %  test loss 0.5000  test top5 100.00 %  best",
                  "step 20  epoch 3.00  test accuracy 75.00 %  test loss 0.2500  test top5 100.00 %  best",
                  "step 30  epoch 4.50  test accuracy 25.00 %  test loss 0.7500  test top5 100.00 %"));
}

TEST_F(CheckpointEvaluatorTest, ReevaluatesOnlyRepeatedSteps) {
  write(10, 0.5f);
  write(20, 0.25f);
  CheckpointEvaluator(once(), evaluate_, environment_).run();
  CheckpointEvaluator(once(), evaluate_, environment_).run();
  EXPECT_THAT(steps(), ElementsAre(10, 20));
  write(20, 0.625f);  // another checkpoint of the same step
  CheckpointEvaluator again(once(), evaluate_, environment_);
  EXPECT_EQ(again.best()->step, 10u) << "the previous best no longer exists";
  again.run();
  EXPECT_THAT(steps(), ElementsAre(10, 20, 20));
  EXPECT_EQ(best_link(), "step-00000010");
}

TEST_F(CheckpointEvaluatorTest, TakesMultiplesOnly) {
  write(10, 0.5f);
  write(15, 0.25f);
  auto options = once();
  options.every = 10;
  CheckpointEvaluator(options, evaluate_, environment_).run();
  EXPECT_THAT(steps(), ElementsAre(10));
}

TEST_F(CheckpointEvaluatorTest, WatchesUntilTheRunIsFinished) {
  write(10, 0.5f);
  auto options = once();
  options.once = false;
  int calls = 0;
  CheckpointEvaluator evaluator(
      options,
      [&](auto weights, auto buffers) {
        if (++calls == 1) write(20, 0.25f);  // while the first is evaluated
        if (calls == 2) checkpoint::mark_finished(run_, {20}, "finished");
        return evaluate_(weights, buffers);
      },
      environment_);
  evaluator.run();
  EXPECT_THAT(steps(), ElementsAre(10, 20));
}

// With inotify: a checkpoint is complete when its manifest is renamed in its folder.
TEST_F(CheckpointEvaluatorTest, IsWokenByACompleteCheckpoint) {
  write(10, 0.5f);
  auto options = once();
  options.once = false;
  options.poll_interval = 3600;
  int calls = 0;
  std::jthread writer;
  CheckpointEvaluator evaluator(
      options,
      [&](auto weights, auto buffers) {
        // Most likely written while the evaluator waits.
        if (++calls < 4) writer = std::jthread([&, next = 10 * (calls + 1)] { write(next, 0.25f); });
        if (calls == 4) checkpoint::mark_finished(run_, {40}, "finished");
        return evaluate_(weights, buffers);
      },
      environment_);
  evaluator.run();
  EXPECT_THAT(steps(), ElementsAre(10, 20, 30, 40));
}

TEST_F(CheckpointEvaluatorTest, EndsOnRequest) {
  write(10, 0.5f);
  write(20, 0.25f);
  auto options = once();
  options.once = false;
  CheckpointEvaluator evaluator(
      options,
      [&](auto weights, auto buffers) {
        stop_.request();
        return evaluate_(weights, buffers);
      },
      environment_);
  evaluator.run();
  EXPECT_THAT(steps(), ElementsAre(10));
  EXPECT_THAT(json_line(evaluator.json()), HasSubstr(R"("ok":false)"));
  EXPECT_THAT(json_line(evaluator.json()), HasSubstr(R"("error":"interrupted")"));
  EXPECT_EQ(evaluator.exit_code(), kInterrupted);
}

TEST_F(CheckpointEvaluatorTest, ADamagedCheckpointIsReportedAndSkipped) {
  write(10, 0.5f);
  write(20, 0.25f);
  const auto file = checkpoint::folder_of(run_, {10}) / "weights.safetensors";
  auto bytes = contents(file);
  bytes.back() ^= 1;
  testing::write_file(file, bytes);
  checkpoint::mark_finished(run_, {20}, "finished");
  auto options = once();
  options.once = false;
  CheckpointEvaluator(options, evaluate_, environment_).run();
  EXPECT_THAT(steps(), ElementsAre(20));
  EXPECT_THAT(events_.messages()[0], HasSubstr("weights.safetensors is damaged"));
}

TEST_F(CheckpointEvaluatorTest, OnceADamagedCheckpointDoesNotHideTheOthers) {
  write(10, 0.5f);
  write(20, 0.25f);
  write(30, 0.5f);
  testing::write_file(checkpoint::folder_of(run_, {10}) / "manifest.json", "");
  testing::write_file(checkpoint::folder_of(run_, {20}) / "weights.safetensors", "x");
  CheckpointEvaluator evaluator(once(), evaluate_, environment_);
  evaluator.run();
  EXPECT_THAT(steps(), ElementsAre(30));
  const auto messages = events_.messages();
  ASSERT_EQ(messages.size(), 4u);
  EXPECT_THAT(messages[0], HasSubstr("step-00000010"));
  EXPECT_THAT(messages[1], HasSubstr("step-00000020"));
  EXPECT_EQ(messages[3], "capstan: 2 checkpoints could not be read");
  EXPECT_THAT(json_line(evaluator.json()), HasSubstr(R"("ok":false)"));
  EXPECT_THAT(json_line(evaluator.json()), HasSubstr(R"("error":"2 checkpoints could not be read")"));
  EXPECT_EQ(evaluator.exit_code(), kFailed);
}

TEST_F(CheckpointEvaluatorTest, WithoutAMultipleTheNumberIsNamed) {
  write(10, 0.5f);
  write(15, 0.25f);
  auto options = once();
  options.every = 1000;
  EXPECT_THAT([&] { CheckpointEvaluator(options, evaluate_, environment_).run(); },
              ::testing::ThrowsMessage<UserError>("--eval-freq 1000: none of the checkpoints of " +
                                                  run_.string() + " (2) is at a multiple of 1000 updates"));
}

TEST_F(CheckpointEvaluatorTest, MistakesAreReported) {
  EXPECT_THROW(CheckpointEvaluator(once(), evaluate_, environment_).run(), UserError) << "no checkpoint yet";
  write(10, 0.5f);
  auto other = once();
  other.layout = FlatLayout({{"weight", {4}}});
  try {
    CheckpointEvaluator(other, evaluate_, environment_).run();
    ADD_FAILURE() << "a checkpoint of another network was accepted";
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("does not match network net"));
  }
  const CheckpointEvaluator first(once(), evaluate_, environment_);
  EXPECT_THROW(CheckpointEvaluator(once(), evaluate_, environment_), UserError)
      << "two evaluators of one run";
}

TEST(CheckpointEvaluation, ReadsOnlyItsOwnLines) {
  const CheckpointEvaluation line{7, 1.5, testing::classified(0.25, 0.75, 1, 50), 3, "step-00000007", "abc"};
  const auto read = CheckpointEvaluation::parse(json_line(line.json()), testing::classification_metrics());
  ASSERT_TRUE(read);
  EXPECT_EQ(json_line(read->json()), json_line(line.json()));
  for (const auto* other :
       {"", "{", "[]", "{}", R"({"step":-1,"test_accuracy":0.5,"id":"a"})",
        R"({"step":1,"test_accuracy":"0.5","id":"a"})", R"({"step":1,"test_accuracy":0.5})"})
    EXPECT_FALSE(CheckpointEvaluation::parse(other, testing::classification_metrics())) << other;
}

}  // namespace
}  // namespace capstan::job
