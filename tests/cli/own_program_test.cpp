// Programs with a task of their own: their flags, and what their factory may return.

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>

#include "capstan/cli/command_line.h"
#include "capstan/job/task_factory.h"
#include "capstan/torch/run.h"
#include "capstan/user_error.h"

namespace capstan::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

// One weight; the members are what a test changes.
struct SmallTask final : Task {
  NamedTensors parameters_ = {{"w", at::ones({3}).requires_grad_()}}, buffers_;
  std::vector<Metric> metrics_ = {{"loss"}};
  std::uint64_t test_samples = 4;

  const NamedTensors& parameters() const override { return parameters_; }
  const NamedTensors& buffers() const override { return buffers_; }
  void train(bool) override {}
  SplitInfo split(Split split) const override { return {split == Split::kTrain ? 8 : test_samples}; }
  Batch batch(Split, const BatchRequest& request) override { return {{}, {}, {}, request.samples.size()}; }
  at::Tensor loss(std::size_t, const Batch&) override { return parameters_[0].tensor.sum(); }
  std::vector<Metric> metrics() const override { return metrics_; }
  std::vector<MetricSum> evaluate(const Batch&) override { return {{1, 1}}; }
};

job::Program own_program(const TaskFactory& make = [](const auto&) {
  return std::make_unique<SmallTask>();
}) {
  job::Program program;
  program.name = "spirals";
  program.make_task = make;
  program.defaults = {{"epochs", "3"}, {"lr", "0.25"}, {"dataset", "two"}};
  return program;
}

config::JobConfig parsed_by(const job::Program& program, const Arguments& arguments) {
  config::JobConfig job;
  CommandLine line("train", "", program);
  line.add(job, config::kTrain);
  EXPECT_TRUE(line.parse(arguments));
  return job;
}

TEST(OwnProgram, HasItsOwnNameAndDefaults) {
  const auto job = parsed_by(own_program(), {"--epochs", "5"});
  EXPECT_EQ(job.program, "spirals");
  EXPECT_EQ(job.network, "spirals");
  EXPECT_EQ(job.dataset, "two");
  EXPECT_EQ(job.epochs, 5u);
  EXPECT_EQ(job.optimizer.lr, 0.25);
  EXPECT_THAT(job.given, ::testing::ElementsAre("epochs"));
}

TEST(OwnProgram, HasNoFlagsForNetworks) {
  const auto program = own_program();
  for (const auto* flag : {"--network=lenet", "--task=gan", "--num-classes=3", "--augment=none", "--strict"})
    EXPECT_THAT([&] { (void)parsed_by(program, {flag}); },
                ThrowsMessage<UserError>(HasSubstr("(see spirals train --help)")))
        << flag;
  config::JobConfig job;
  CommandLine line("train", "", program);
  line.add(job, config::kTrain);
  EXPECT_THAT(line.help(), HasSubstr("Usage: spirals train [FLAGS]"));
  EXPECT_THAT(line.help(), HasSubstr("Passes over the training set [3]"));
  EXPECT_THAT(line.help(), Not(HasSubstr("--network")));
}

TEST(OwnProgram, WrongDefaultsAreOneLine) {
  auto program = own_program();
  program.defaults = {{"epoch", "3"}};
  EXPECT_THAT([&] { (void)parsed_by(program, {}); },
              ThrowsMessage<UserError>("RunOptions::defaults: unknown flag epoch, did you mean epochs?"));
  program.defaults = {{"network", "lenet"}};
  EXPECT_THAT([&] { (void)parsed_by(program, {}); },
              ThrowsMessage<UserError>(HasSubstr("RunOptions::defaults: unknown flag network")));
  program.defaults = {{"epochs", "many"}};
  EXPECT_THAT([&] { (void)parsed_by(program, {}); },
              ThrowsMessage<UserError>(HasSubstr("RunOptions::defaults: epochs: ")));
}

TEST(OwnTask, GetsTheOptionsOfTheJob) {
  std::vector<TaskOptions> seen;
  const auto program = own_program([&](const TaskOptions& options) {
    seen.push_back(options);
    return std::make_unique<SmallTask>();
  });
  const auto job = parsed_by(program, {"--seed=7", "--data-dir=here"});
  const auto made = job::make_task(job, program);
  EXPECT_EQ(made.layout.parameters(), 3u);
  EXPECT_EQ(made.training_samples(), 8u);
  (void)job::make_test_task(job, program);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].seed, 7u);
  EXPECT_EQ(seen[0].dataset, "two");
  EXPECT_EQ(seen[0].data_dir, "here");
  EXPECT_FALSE(seen[0].test_only);
  EXPECT_TRUE(seen[1].test_only);
}

// The one line for a task that the factory makes.
std::string refused(const TaskFactory& make) {
  const auto program = own_program(make);
  try {
    (void)job::make_task(parsed_by(program, {}), program);
    return {};
  } catch (const UserError& error) {
    return error.what();
  }
}

std::string refused(const std::function<void(SmallTask&)>& change) {
  return refused(TaskFactory([&](const TaskOptions&) {
    auto task = std::make_unique<SmallTask>();
    change(*task);
    return task;
  }));
}

TEST(OwnTask, ThatCannotBeTrainedIsOneLine) {
  EXPECT_EQ(refused([](const TaskOptions&) -> std::unique_ptr<Task> { throw std::runtime_error("no data"); }),
            "the factory of the task failed: no data");
  EXPECT_EQ(refused([](const TaskOptions&) { return std::unique_ptr<Task>(); }),
            "the factory of the task returned no task");
  EXPECT_THAT(refused([](SmallTask& task) { task.metrics_.clear(); }),
              HasSubstr("metrics() of the task is empty"));
  EXPECT_THAT(refused([](SmallTask& task) { task.parameters_.clear(); }),
              HasSubstr("parameters() of the task is empty"));
  EXPECT_THAT(refused([](SmallTask& task) { task.test_samples = 0; }), HasSubstr("has no samples"));
  EXPECT_THAT(refused([](SmallTask& task) { task.parameters_[0].tensor = at::ones({3}, at::kDouble); }),
              HasSubstr("parameter w has the type Double"));
  EXPECT_THAT(refused([](SmallTask& task) {
                task.buffers_ = {{"mean", at::ones({1}), {"w"}}};
              }),
              HasSubstr("parameters() and buffers() of the task have w twice"));
}

TEST(OwnTask, MayHaveATensorWithSeveralNames) {
  const auto program = own_program([](const TaskOptions&) {
    auto task = std::make_unique<SmallTask>();
    task->parameters_[0].aliases = {"v", "u"};
    task->buffers_ = {{"mean", at::ones({1}), {"average"}}};
    return task;
  });
  const auto made = job::make_task(parsed_by(program, {}), program);
  EXPECT_EQ(made.layout.tensors().size(), 1u);
  EXPECT_EQ(made.aliases, (checkpoint::Aliases{{"v", "w"}, {"u", "w"}, {"average", "mean"}}));
}

TEST(OwnTask, BelongsToItsProgram) {
  const auto program = own_program();
  auto job = parsed_by(program, {});
  EXPECT_THAT(
      [&] { (void)job::make_task(job); },
      ThrowsMessage<UserError>("the task is one of the program spirals: use spirals instead of capstan"));
  EXPECT_THAT(
      [&] { (void)job::make_task({}, program); },
      ThrowsMessage<UserError>("this is a job of lenet, not of spirals: use the program that started it"));
}

}  // namespace
}  // namespace capstan::cli
