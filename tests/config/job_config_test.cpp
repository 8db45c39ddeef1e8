#include "capstan/config/job_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <toml++/toml.h>

#include "capstan/base/user_error.h"

namespace capstan::config {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// Reads a file as a user of TOML would, knowing only the flags' names.
JobConfig read(const std::string& text) {
  const auto t = toml::parse(text);
  JobConfig c;
  c.network = t["network"].value<std::string>().value();
  c.dataset = t["dataset"].value<std::string>().value();
  c.data_dir = t["data-dir"].value_or<std::string>("");
  c.num_classes = t["num-classes"].value_or(0u);
  c.image_size = t["image-size"].value_or(0u);
  c.init_seed = t["init-seed"].value<std::uint64_t>();
  c.weights = t["weights"].value_or<std::string>("");
  c.augment = t["augment"].value<std::string>().value();
  c.loader_threads = t["loader-threads"].value<unsigned>().value();
  c.strict = t["strict"].value_or(false);
  c.workers = t["workers"].value<std::uint32_t>().value();
  c.servers = t["servers"].value<std::uint32_t>().value();
  c.strategy = t["strategy"].value<std::string>().value();
  c.batch_size = t["batch-size"].value<std::uint32_t>().value();
  c.epochs = t["epochs"].value<std::uint32_t>().value();
  c.max_steps = t["max-steps"].value<std::uint64_t>().value();
  c.seed = t["seed"].value<std::uint64_t>().value();
  c.device = t["device"].value<std::string>().value();
  c.threads = t["threads"].value<unsigned>().value();
  c.server_threads = t["server-threads"].value<unsigned>().value();
  c.transport = t["transport"].value<std::string>().value();
  auto& o = c.optimizer;
  o.name = t["optimizer"].value<std::string>().value();
  o.lr = t["lr"].value<double>().value();
  o.momentum = t["momentum"].value<double>();
  o.weight_decay = t["weight-decay"].value<double>().value();
  o.lr_schedule = t["lr-schedule"].value<std::string>().value();
  o.warmup = t["warmup"].value<std::uint64_t>().value();
  o.dampening = t["dampening"].value_or(0.0);
  o.nesterov = t["nesterov"].value_or(false);
  o.centered = t["centered"].value_or(false);
  o.beta1 = t["beta1"].value<double>();
  o.beta2 = t["beta2"].value<double>();
  o.eps = t["eps"].value<double>();
  o.alpha = t["alpha"].value<double>();
  o.lr_decay = t["lr-decay"].value<double>();
  return c;
}

void expect_same_job(const JobConfig& a, const JobConfig& b) {
  EXPECT_EQ(a.network, b.network);
  EXPECT_EQ(a.dataset, b.dataset);
  EXPECT_EQ(a.data_dir, b.data_dir);
  EXPECT_EQ(a.num_classes, b.num_classes);
  EXPECT_EQ(a.image_size, b.image_size);
  EXPECT_EQ(a.init_seed, b.init_seed);
  EXPECT_EQ(a.weights, b.weights);
  EXPECT_EQ(a.augment, b.augment);
  EXPECT_EQ(a.threads_per_loader(), b.threads_per_loader());
  EXPECT_EQ(a.strict, b.strict);
  EXPECT_EQ(a.workers, b.workers);
  EXPECT_EQ(a.servers, b.servers);
  EXPECT_EQ(a.strategy, b.strategy);
  EXPECT_EQ(a.batch_size, b.batch_size);
  EXPECT_EQ(a.epochs, b.epochs);
  EXPECT_EQ(a.max_steps, b.max_steps);
  EXPECT_EQ(a.seed, b.seed);
  EXPECT_EQ(a.worker_threads(), b.worker_threads());
  EXPECT_EQ(a.threads_per_server(), b.threads_per_server());
  EXPECT_EQ(a.transport, b.transport);
  const auto x = a.optimizer.options(), y = b.optimizer.options();
  EXPECT_EQ(x.kind, y.kind);
  EXPECT_EQ(x.lr, y.lr);  // to the last bit
  EXPECT_EQ(x.weight_decay, y.weight_decay);
  EXPECT_EQ(x.momentum, y.momentum);
  EXPECT_EQ(x.dampening, y.dampening);
  EXPECT_EQ(x.nesterov, y.nesterov);
  EXPECT_EQ(x.beta1, y.beta1);
  EXPECT_EQ(x.beta2, y.beta2);
  EXPECT_EQ(x.eps, y.eps);
  EXPECT_EQ(x.alpha, y.alpha);
  EXPECT_EQ(x.lr_decay, y.lr_decay);
  EXPECT_EQ(x.centered, y.centered);
  EXPECT_EQ(a.optimizer.lr_schedule, b.optimizer.lr_schedule);
  EXPECT_EQ(a.optimizer.warmup, b.optimizer.warmup);
}

TEST(JobConfig, ADefaultJobComesBackFromItsFile) {
  const JobConfig config;
  expect_same_job(read(config.to_toml()), config);
}

TEST(JobConfig, EverySettingComesBackFromItsFile) {
  JobConfig config;
  config.network = "resnet18";
  config.dataset = "cifar10";
  config.data_dir = "/data/with \"quotes\" and \\ and ü";
  config.num_classes = 100;
  config.image_size = 64;
  config.init_seed = 0;  // not the same as absent
  config.weights = "/data/first.safetensors";
  config.augment = "none";
  config.loader_threads = 9;
  config.strict = true;
  config.workers = 7;
  config.servers = 3;
  config.strategy = "batch:4";
  config.batch_size = 128;
  config.epochs = 90;
  config.max_steps = 123456789012;
  config.seed = 9007199254740993;  // more than a double holds
  config.threads = 3;
  config.server_threads = 2;
  config.transport = "ucx";
  config.optimizer.lr = 0.1 + 0.2;
  config.optimizer.weight_decay = 1e-5;
  config.optimizer.momentum = 0.95;
  config.optimizer.nesterov = true;
  config.optimizer.lr_schedule = "cosine";
  config.optimizer.warmup = 500;
  expect_same_job(read(config.to_toml()), config);
}

TEST(JobConfig, OptionsOfOtherOptimizersComeBackToo) {
  JobConfig adam;
  adam.optimizer.name = "adamw";
  adam.optimizer.lr = 1;
  adam.optimizer.beta1 = 0.8;
  adam.optimizer.beta2 = 0.95;
  adam.optimizer.eps = 1e-7;
  expect_same_job(read(adam.to_toml()), adam);
  JobConfig rmsprop;
  rmsprop.optimizer.name = "rmsprop";
  rmsprop.optimizer.centered = true;
  rmsprop.optimizer.alpha = 0.9;
  rmsprop.optimizer.momentum = 0.5;
  expect_same_job(read(rmsprop.to_toml()), rmsprop);
  JobConfig adagrad;
  adagrad.optimizer.name = "adagrad";
  adagrad.optimizer.lr_decay = 0.25;
  expect_same_job(read(adagrad.to_toml()), adagrad);
}

TEST(JobConfig, OptionsOfAnotherOptimizerAreRefused) {
  const auto refused = [](const char* name, auto change) -> std::string {
    OptimizerConfig config;
    config.name = name;
    change(config);
    try {
      config.options();
      return "";
    } catch (const UserError& error) {
      return error.what();
    }
  };
  const auto momentum = [](OptimizerConfig& c) { c.momentum = 0.9; };
  EXPECT_EQ(refused("adam", momentum), "--momentum is an option of sgd and rmsprop, not of optimizer adam");
  EXPECT_EQ(refused("rmsprop", momentum), "");
  EXPECT_EQ(refused("sgd", [](OptimizerConfig& c) { c.beta1 = 0.9; }),
            "--beta1 is an option of adam and adamw, not of optimizer sgd");
  EXPECT_EQ(refused("adagrad", [](OptimizerConfig& c) { c.nesterov = true; }),
            "--nesterov is an option of sgd, not of optimizer adagrad");
  EXPECT_EQ(refused("adamw", [](OptimizerConfig& c) { c.momentum = 0; }), "") << "as files have it";
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

TEST(JobConfig, AnUpdateOfSomeWorkersHasThatShareOfTheUsualLearningRate) {
  const auto rate = [](const char* strategy) {
    JobConfig config;
    config.workers = 4;
    config.strategy = strategy;
    config.optimizer.prefer(config.plan());
    return config.optimizer.options().lr;
  };
  EXPECT_EQ(rate("sync"), 0.02);
  EXPECT_EQ(rate("backup:1"), 0.02);
  EXPECT_EQ(rate("async"), 0.005);
  EXPECT_EQ(rate("batch:2"), 0.01);
  EXPECT_EQ(rate("local-sgd"), 0.02);
  EXPECT_EQ(rate("default=sync,fc*=batch:2"), 0.01) << "of groups the smallest";
  EXPECT_EQ(rate("default=batch:2,fc*=sync,b=async"), 0.005);
  JobConfig config;
  config.strategy = "diloco";
  config.optimizer.prefer(config.plan());
  EXPECT_EQ(config.optimizer.options().kind, optimizer::Kind::kAdamW);
  EXPECT_EQ(config.optimizer.options().lr, 1e-3);
  config.optimizer.lr = 0.5;
  EXPECT_EQ(config.optimizer.options().lr, 0.5) << "what the user says, counts";
}

// TOML's numbers end at 2^63 - 1.
TEST(JobConfig, ASeedThatAFileCannotHoldIsRefused) {
  JobConfig config;
  config.seed = std::uint64_t{1} << 63;
  EXPECT_THROW(config.validate(), UserError);
  config.seed = (std::uint64_t{1} << 63) - 1;
  EXPECT_NO_THROW(config.validate());
  expect_same_job(read(config.to_toml()), config);
}

TEST(JobConfig, DefaultsAreThoseOfTheDocument) {
  const JobConfig config;
  EXPECT_EQ(config.optimizer.options().momentum, 0.9);
  EXPECT_EQ(config.optimizer.options().lr, 0.02);
  OptimizerConfig rmsprop;
  rmsprop.name = "rmsprop";
  EXPECT_EQ(rmsprop.options().momentum, 0.0);
}

std::string error_of(const JobConfig& config) {
  try {
    config.validate();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(JobConfig, WrongValuesAreErrorsThatNameThem) {
  JobConfig config;
  EXPECT_EQ(error_of(config), "no error");
  config.device = "tpu";
  EXPECT_THAT(error_of(config), HasSubstr("--device tpu"));
  config = {};
  config.image_size = 7;
  EXPECT_THAT(error_of(config), HasSubstr("--image-size 7: must be from 8 to 1024"));
  config = {};
  config.weights = "/no/such/file";
  EXPECT_THAT(error_of(config), HasSubstr("--weights /no/such/file"));
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

TEST(JobConfig, ThreadsAreAtLeastOneAndAsGiven) {
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

TEST(JobConfig, ProcessesGetTheFlagsOfTheirPart) {
  JobConfig config;
  config.strategy = "async";
  config.max_steps = 40;
  config.optimizer.nesterov = true;
  const auto serve = serve_arguments(config, 1000);
  EXPECT_THAT(serve, Contains("--strategy=async"));
  EXPECT_THAT(serve, Contains("--max-steps=40"));
  EXPECT_THAT(serve, Contains("--total-steps=1000"));
  EXPECT_THAT(serve, Contains("--nesterov"));
  EXPECT_THAT(serve, Contains("--momentum=0.9"));
  EXPECT_THAT(serve, Not(Contains("--network=lenet")));
  EXPECT_THAT(work_arguments(config), Not(Contains(HasSubstr("init-seed"))));
  config.num_classes = 12;
  config.image_size = 64;
  config.init_seed = 5;
  config.weights = "/w.safetensors";
  config.augment = "none";
  config.loader_threads = 2;
  EXPECT_THAT(work_arguments(config), Not(Contains("--strict")));
  config.strict = true;
  const auto work = work_arguments(config);
  for (const auto* flag :
       {"--num-classes=12", "--image-size=64", "--init-seed=5", "--weights=/w.safetensors"})
    EXPECT_THAT(work, Contains(flag));
  EXPECT_THAT(work, Contains("--augment=none"));
  EXPECT_THAT(work, Contains("--loader-threads=2"));
  EXPECT_THAT(work, Contains("--strict"));
  EXPECT_THAT(work, Contains("--network=lenet"));
  EXPECT_THAT(work, Contains("--batch-size=32"));
  EXPECT_THAT(work, Not(Contains("--lr=0.02")));
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
                            "infs", "1e99", "1e13s", "Never", "5ms", " 5"}) {
    EXPECT_THROW(CheckpointEvery::parse(wrong), UserError) << wrong;
  }
}

}  // namespace
}  // namespace capstan::config
