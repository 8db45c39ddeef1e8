#include "capstan/config/job_config.h"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

namespace capstan::config {
namespace {

using ::testing::HasSubstr;

TEST(JobConfig, OptionsOfAnotherOptimizerAreRefused) {
  const auto refused = [](const char* name, auto change) -> std::string {
    OptimizerConfig config;
    config.name = name;
    change(config);
    try {
      config.spec();
      return "";
    } catch (const UserError& error) {
      return error.what();
    }
  };
  const auto momentum = [](OptimizerConfig& c) { c.momentum = 0.9; };
  EXPECT_EQ(refused("adam", momentum), "--momentum is an option of sgd and rmsprop, not of optimizer adam");
  EXPECT_EQ(refused("rmsprop", momentum), "");
  EXPECT_EQ(refused("sgd", [](OptimizerConfig& c) { c.beta1 = 0.9; }),
            "--beta1 is an option of adam, adamw and sparse-adam, not of optimizer sgd");
  EXPECT_EQ(refused("adagrad", [](OptimizerConfig& c) { c.nesterov = true; }),
            "--nesterov is an option of sgd, not of optimizer adagrad");
  EXPECT_EQ(refused("adamw", [](OptimizerConfig& c) { c.momentum = 0; }), "") << "as in files";
}

TEST(JobConfig, OptionsApplyToEachOptimizerThatHasThemAndDoesNotSetThem) {
  OptimizerConfig config;
  config.name = "default=sgd,d.*=adam:lr=0.0002:beta1=0.5,b=sgd:momentum=0";
  config.lr = 0.1;
  config.momentum = 0.8;
  config.beta2 = 0.99;
  const auto spec = config.spec();
  EXPECT_EQ(spec[0].lr, 0.1);
  EXPECT_EQ(spec[0].momentum, 0.8);
  EXPECT_EQ(spec[1].lr, 0.0002);
  EXPECT_EQ(spec[1].beta1, 0.5);
  EXPECT_EQ(spec[1].beta2, 0.99);
  EXPECT_EQ(spec[2].lr, 0.1);
  EXPECT_EQ(spec[2].momentum, 0);
  config.alpha = 0.9;
  EXPECT_THAT([&] { (void)config.spec(); },
              ::testing::ThrowsMessage<UserError>(
                  ::testing::StrEq("--alpha is an option of rmsprop, not of optimizer sgd and adam")));
}

TEST(JobConfig, OptimizersOfGroupsHaveTheDefaultsOfTheirKind) {
  OptimizerConfig config;
  config.name = "default=adam,x=sgd";
  config.lr_share = 0.5;
  const auto spec = config.spec();
  EXPECT_EQ(spec[0].lr, 0.5e-3);
  EXPECT_EQ(spec[1].lr, 0.01);
  EXPECT_EQ(spec[1].momentum, 0.9);
}

TEST(JobConfig, WithSeveralOptimizersResolvesToWhatWasGiven) {
  JobConfig config;
  config.optimizer.name = "default=sgd,fc*=adam:lr=0.0002";
  config.optimizer.momentum = 0.8;
  const auto resolved = config.resolved().optimizer;
  EXPECT_EQ(resolved.name, config.optimizer.name);
  EXPECT_EQ(resolved.momentum, 0.8);
  EXPECT_FALSE(resolved.lr) << "each optimizer has its own";
  config.optimizer.name = "adam:lr=0.0002";
  config.optimizer.momentum.reset();
  EXPECT_EQ(config.resolved().optimizer.lr, 0.0002);
  EXPECT_EQ(config.resolved().resolved().optimizer.spec().first.lr, 0.0002);
}

TEST(JobConfig, GroupsAreOneTableOfStrategiesAndOptimizers) {
  JobConfig config;
  config.strategy = "default=sync,fc*=async";
  config.optimizer.name = "default=sgd,*.bias=adam";
  const auto table = config.group_table();
  EXPECT_EQ(table.strategies, (std::vector<std::string>{"fc*"}));
  EXPECT_EQ(table.optimizers, (std::vector<std::string>{"*.bias"}));
  config.strategy = "single";
  EXPECT_TRUE(config.group_table().strategies.empty());
}

TEST(JobConfig, SlowWorkersAreNamedByRank) {
  JobConfig config;
  config.workers = 4;
  EXPECT_EQ(config.slow_down(0), 1);
  config.slow_workers = "1:3x,3:2.5x";
  EXPECT_EQ(config.slow_down(0), 1);
  EXPECT_EQ(config.slow_down(1), 3);
  EXPECT_EQ(config.slow_down(3), 2.5);
  for (const auto* wrong : {"4:3x", "1", "1:3", "1:0.5x", "x:3x", "1:x", "1:3xx", "-1:3x", "1:nanx"}) {
    config.slow_workers = wrong;
    EXPECT_THAT([&] { config.validate(); }, ::testing::ThrowsMessage<UserError>(::testing::HasSubstr(
                                                "must be RANK:TIMESx, such as 1:3x, with a rank below 4")))
        << wrong;
  }
  config.slow_workers = "1:3x,1:2x";
  EXPECT_THAT([&] { config.validate(); },
              ::testing::ThrowsMessage<UserError>(::testing::HasSubstr("worker 1 is named twice")));
}

TEST(JobConfig, AnUpdateFromSomeWorkersUsesThatShareOfTheLearningRate) {
  const auto rate = [](const char* strategy) {
    JobConfig config;
    config.workers = 4;
    config.strategy = strategy;
    config.optimizer.prefer(config.strategy_spec());
    return config.optimizer.spec().first.lr;
  };
  EXPECT_EQ(rate("sync"), 0.02);
  EXPECT_EQ(rate("backup:1"), 0.02);
  EXPECT_EQ(rate("async"), 0.005);
  EXPECT_EQ(rate("batch:2"), 0.01);
  EXPECT_EQ(rate("local-sgd"), 0.02);
  EXPECT_EQ(rate("default=sync,fc*=batch:2"), 0.01) << "the smallest of the groups";
  EXPECT_EQ(rate("default=batch:2,fc*=sync,b=async"), 0.005);
  JobConfig config;
  config.strategy = "diloco";
  config.optimizer.prefer(config.strategy_spec());
  EXPECT_EQ(config.optimizer.spec().first.kind, optimizer::Kind::kAdamW);
  EXPECT_EQ(config.optimizer.spec().first.lr, 1e-3);
  config.optimizer.lr = 0.5;
  EXPECT_EQ(config.optimizer.spec().first.lr, 0.5) << "the user's value";
}

// TOML's largest number is 2^63 - 1.
TEST(JobConfig, ASeedTooLargeForAFileIsRejected) {
  JobConfig config;
  config.seed = std::uint64_t{1} << 63;
  EXPECT_THROW(config.validate(), UserError);
  config.seed = (std::uint64_t{1} << 63) - 1;
  EXPECT_NO_THROW(config.validate());
}

// The documented defaults of PyTorch 2 (torch.optim.SGD, Adam, AdamW, Adagrad and RMSprop) for a user who
// gives only the optimizer. Two are Capstan's: sgd's momentum, and its learning rate, which has no default in
// PyTorch.
TEST(JobConfig, OptimizersHaveTheDefaultsOfPyTorch) {
  struct Expected {
    const char* optimizer;
    std::map<std::string, double> options;
  };
  const Expected documented[] = {
      {"sgd", {{"lr", 0.02}, {"momentum", 0.9}, {"weight-decay", 0}, {"dampening", 0}, {"nesterov", 0}}},
      {"adam", {{"lr", 1e-3}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"weight-decay", 0}}},
      {"adamw", {{"lr", 1e-3}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"weight-decay", 1e-2}}},
      {"adagrad", {{"lr", 1e-2}, {"lr-decay", 0}, {"weight-decay", 0}, {"eps", 1e-10}}},
      {"rmsprop",
       {{"lr", 1e-2}, {"alpha", 0.99}, {"eps", 1e-8}, {"weight-decay", 0}, {"momentum", 0}, {"centered", 0}}},
  };
  for (const auto& expected : documented) {
    OptimizerConfig config;
    config.name = expected.optimizer;
    std::map<std::string, double> found;
    const auto options = config.spec().first;
    optimizer::visit_options(
        [&](const optimizer::OptionInfo& option, const auto& value) {
          if (option.belongs_to(options.kind)) found[std::string(option.name)] = static_cast<double>(value);
        },
        options);
    EXPECT_EQ(found, expected.options) << expected.optimizer;
  }
}

TEST(JobConfig, TheOptimizerOfAStrategyHasTheDefaultsOfPyTorch) {
  JobConfig config;
  config.strategy = "diloco";
  config.optimizer.prefer(config.strategy_spec());
  EXPECT_EQ(config.optimizer.spec().first.weight_decay, 0.01);
  config.optimizer.weight_decay = 0;
  EXPECT_EQ(config.optimizer.spec().first.weight_decay, 0);
}

std::string error_of(const JobConfig& config) {
  try {
    config.validate();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(JobConfig, WrongValuesAreErrorsWithTheFlag) {
  JobConfig config;
  EXPECT_EQ(error_of(config), "no error");
  config.device = "tpu";
  EXPECT_EQ(error_of(config), "--device tpu: should be cpu or cuda");
  config = {};
  config.workers = 0;
  EXPECT_EQ(error_of(config), "--workers 0: should be a whole number from 1 to 4096");
  config = {};
  config.image_size = 7;
  EXPECT_THAT(error_of(config), HasSubstr("--image-size 7: must be from 8 to 1024"));
  config = {};
  config.weights = "/no/such/file";
  EXPECT_THAT(error_of(config), HasSubstr("--weights /no/such/file"));
  config.resume = "runs/a";
  EXPECT_EQ(error_of(config), "no error") << "the checkpoint has the weights";
  config = {};
  config.evaluator = true;
  EXPECT_EQ(error_of(config), "no error");
  config.checkpoint_every = "never";
  EXPECT_EQ(error_of(config), "--evaluator evaluates checkpoints, but --checkpoint-every never writes none");
  config = {};
  config.data_dir = "caf\xe9";
  EXPECT_EQ(error_of(config), "--data-dir: is not UTF-8 text");
  config = {};
  config.init_seed = std::uint64_t{1} << 63;
  EXPECT_THAT(error_of(config), HasSubstr("--init-seed"));
  config = {};
  config.strategy = "batch:5";
  EXPECT_THAT(error_of(config), HasSubstr("at most 2"));
  config = {};
  config.optimizer.name = "sdg";
  EXPECT_THAT(error_of(config), HasSubstr("sdg"));
  config = {};
  config.optimizer.lr = -1;
  EXPECT_THAT(error_of(config), HasSubstr("lr"));
  config = {};
  config.strategy = "single";
  EXPECT_EQ(error_of(config), "no error");
}

TEST(JobConfig, ThreadsAreGivenOrAtLeastOne) {
  JobConfig config;
  config.workers = 100000;
  EXPECT_EQ(config.worker_threads(), 1u);
  config.threads = 5;
  EXPECT_EQ(config.worker_threads(), 5u);
  EXPECT_EQ(config.threads_per_loader(), 1u);
  config.loader_threads = 6;
  EXPECT_EQ(config.threads_per_loader(), 6u);
  config.servers = 100000;
  EXPECT_EQ(config.threads_per_server(), 1u);
}

TEST(CheckpointEvery, IsUpdatesOrTimeOrNever) {
  const auto parse = [](const char* text) {
    const auto every = CheckpointEvery::parse(text);
    return std::pair(every.steps, every.seconds);
  };
  using Pair = std::pair<std::uint64_t, double>;
  EXPECT_EQ(parse("500"), Pair(500, 0));
  EXPECT_EQ(parse("1"), Pair(1, 0));
  EXPECT_EQ(parse("90s"), Pair(0, 90));
  EXPECT_EQ(parse("0.5s"), Pair(0, 0.5));
  EXPECT_EQ(parse("5m"), Pair(0, 300));
  EXPECT_EQ(parse("2h"), Pair(0, 7200));
  EXPECT_EQ(parse("never"), Pair(0, 0));
  for (const char* wrong : {"", "0", "-5", "1.5", "0s", "-1m", "often", "10x", "5 m", "m", "nan", "inf",
                            "infs", "1e99", "1e13s", "300000h", "Never", "5ms", " 5"}) {
    EXPECT_THROW(CheckpointEvery::parse(wrong), UserError) << wrong;
  }
}

TEST(OptimizerConfig, AFlagThatEveryOptimizerSetsItselfIsRejected) {
  OptimizerConfig config;
  config.name = "default=adam:lr=0.1,fc*=adam:lr=0.2";
  config.lr = 0.3;
  EXPECT_THAT([&] { (void)config.spec(); },
              ::testing::ThrowsMessage<UserError>(::testing::HasSubstr("--lr has no effect")));
  config.name = "default=adam,fc*=adam:lr=0.2";
  EXPECT_EQ(config.spec().first.lr, 0.3);
  config.name = "adam:lr=0.3";
  EXPECT_EQ(config.spec().first.lr, 0.3) << "the same value twice is no contradiction";
}

}  // namespace
}  // namespace capstan::config
