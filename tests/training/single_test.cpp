#include "capstan/training/single.h"

#include <array>
#include <barrier>
#include <cstring>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include "capstan/data/dataset.h"
#include "capstan/data/partition.h"
#include "capstan/models/arena.h"

#include "training/tasks.h"

namespace capstan::training {
namespace {

SingleOptions short_run(std::uint64_t steps) {
  SingleOptions options;
  options.max_steps = steps;
  options.batch_size = 32;
  options.optimizer.first.lr = 0.05;
  options.optimizer.first.momentum = 0.9;
  options.optimizer.first.weight_decay = 1e-4;
  return options;
}

std::vector<float> copy_of(std::span<const float> weights) {
  return {weights.begin(), weights.end()};
}

// The same training in plain libtorch: its modules, its optimizer, NCHW, a sample at a time.
class PlainTraining {
 public:
  explicit PlainTraining(const SingleOptions& options) : options_(options) {
    at::manual_seed(1);
    conv1_ = torch::nn::Conv2d(1, 20, 5);
    conv2_ = torch::nn::Conv2d(20, 50, 5);
    fc1_ = torch::nn::Linear(800, 500);
    fc2_ = torch::nn::Linear(500, 10);
    for (auto* module :
         std::initializer_list<torch::nn::Module*>{conv1_.get(), conv2_.get(), fc1_.get(), fc2_.get()}) {
      for (auto& p : module->parameters()) parameters_.push_back(p);
    }
  }

  // Losses of each step.
  std::vector<double> run(const data::SampleSource& source) {
    torch::optim::SGD sgd(parameters_, torch::optim::SGDOptions(options_.optimizer.first.lr)
                                           .momentum(options_.optimizer.first.momentum)
                                           .weight_decay(options_.optimizer.first.weight_decay));
    std::vector<double> losses;
    for (std::uint64_t epoch = 0; losses.size() < options_.max_steps; ++epoch) {
      const auto order = data::epoch_order(source.count(), options_.seed, epoch);
      for (std::size_t at = 0; at < order.size() && losses.size() < options_.max_steps;
           at += options_.batch_size) {
        const auto end = std::min(at + options_.batch_size, order.size());
        sgd.zero_grad();
        auto loss = loss_of(source, {order.data() + at, end - at});
        loss.backward();
        sgd.step();
        losses.push_back(loss.item<float>());
      }
    }
    return losses;
  }

  const std::vector<at::Tensor>& parameters() const { return parameters_; }

 private:
  at::Tensor loss_of(const data::SampleSource& source, std::span<const std::uint32_t> samples) {
    const auto count = static_cast<std::int64_t>(samples.size());
    auto images = at::zeros({count, 1, 28, 28});
    auto labels = at::zeros({count}, at::kLong);
    for (std::int64_t n = 0; n < count; ++n) {
      const auto sample = samples[static_cast<std::size_t>(n)];
      source.render(sample, 0, images[n].data_ptr<float>());
      labels[n] = source.label(sample);
    }
    auto x = at::max_pool2d(at::relu(conv1_(images)), 2);
    x = at::max_pool2d(at::relu(conv2_(x)), 2);
    x = fc2_(at::relu(fc1_(x.reshape({count, 800}))));
    return at::cross_entropy_loss(x, labels);
  }

  SingleOptions options_;
  torch::nn::Conv2d conv1_{nullptr}, conv2_{nullptr};
  torch::nn::Linear fc1_{nullptr}, fc2_{nullptr};
  std::vector<at::Tensor> parameters_;
};

TEST(Single, EqualsAPlainLibtorchLoop) {
  for (const auto* name : {"digits", "synthetic:1x28x28:10:200"}) {  // 200: a partial batch at an epoch's end
    const auto dataset = data::load({name, "", 1});
    const auto options = short_run(30);
    std::vector<double> losses;
    SingleCallbacks callbacks;
    callbacks.on_step = [&](const SingleStep& step) { losses.push_back(step.loss); };
    const auto task = classify(name);
    const auto result = train_single(options, *task, callbacks);
    EXPECT_EQ(result.steps, 30u);

    PlainTraining plain(options);
    const auto expected = plain.run(*dataset.train);
    EXPECT_THAT(losses, testing::Pointwise(testing::DoubleNear(1e-3), expected)) << name;
    EXPECT_LT(losses.back(), losses.front() / 2) << "the model learns";
    auto weights = copy_of(result.weights);
    for (std::size_t i = 0; i < plain.parameters().size(); ++i) {
      const auto ours = models::tensor_in(result.layout, i, weights.data());
      EXPECT_LT((ours - plain.parameters()[i]).abs().max().item<float>(), 1e-4)
          << name << " " << result.layout.tensors()[i].name;
    }
  }
}

// Sums over the processes of a group, here threads.
class ThreadGroup {
 public:
  explicit ThreadGroup(std::uint32_t workers) : meet_(workers) {}

  void sum(std::span<float> values) {
    {
      const std::lock_guard lock(mutex_);
      sum_.resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) sum_[i] += values[i];
    }
    meet_.arrive_and_wait();
    std::ranges::copy(sum_, values.begin());
    meet_.arrive_and_wait();
    {
      const std::lock_guard lock(mutex_);
      std::ranges::fill(sum_, 0.0f);
    }
    meet_.arrive_and_wait();
  }

 private:
  std::barrier<> meet_;
  std::mutex mutex_;
  std::vector<float> sum_;
};

TEST(Single, AGroupEqualsAPlainLibtorchLoopOverTheWholeBatch) {
  constexpr std::uint32_t kWorkers = 3;
  const auto dataset =
      data::load({"synthetic:1x28x28:10:200", "", 1});  // the last step of an epoch is smaller
  auto options = short_run(10);
  options.batch_size = 24;
  options.optimizer.first.lr = 0.01;
  PlainTraining plain(options);
  const auto first = models::layout_of(classify("synthetic:1x28x28:10:200")->parameters());
  std::vector<float> initial(first.size());
  for (std::size_t i = 0; i < plain.parameters().size(); ++i)
    models::tensor_in(first, i, initial.data()).copy_(plain.parameters()[i].detach());
  const auto losses = plain.run(*dataset.train);

  ThreadGroup group(kWorkers);
  std::vector<std::vector<float>> weights(kWorkers);
  std::vector<std::unique_ptr<Classification>> tasks;
  for (std::uint32_t i = 0; i < kWorkers; ++i) tasks.push_back(classify("synthetic:1x28x28:10:200"));
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
      threads.emplace_back([&, rank] {
        auto own = options;
        own.batch_size = 8;
        own.group = {rank, kWorkers, [&](std::span<float> values) { group.sum(values); }};
        own.start = SingleStart{{}, {}, {}, [&](std::span<float> to, const std::vector<std::span<float>>&) {
                                  std::ranges::copy(initial, to.begin());
                                }};
        SingleCallbacks callbacks;
        callbacks.on_step = [&](const SingleStep& step) {
          EXPECT_NEAR(step.loss, losses[step.step - 1], 1e-5) << step.step;
        };
        weights[rank] = copy_of(train_single(own, *tasks[rank], callbacks).weights);
      });
    }
  }
  for (std::size_t i = 0; i < plain.parameters().size(); ++i) {
    const auto expected = plain.parameters()[i].detach();
    const auto ours = models::tensor_in(first, i, weights[0].data());
    EXPECT_LT(((ours - expected).abs() / expected.abs().clamp_min(1)).max().item<float>(), 1e-6) << i;
  }
  EXPECT_EQ(weights[1], weights[0]);
  EXPECT_EQ(weights[2], weights[0]);
}

// The mean and the variance of the first convolution's output, by channel, as batch norm sees them.
std::pair<at::Tensor, at::Tensor> statistics_of(const data::SampleSource& source,
                                                std::span<const std::uint32_t> samples,
                                                const at::Tensor& weight) {
  const auto count = static_cast<std::int64_t>(samples.size());
  auto images = at::zeros({count, 8, 8, 3});
  for (std::int64_t n = 0; n < count; ++n)
    source.render(samples[static_cast<std::size_t>(n)], 0, images[n].data_ptr<float>());
  const auto y = at::conv2d(images.permute({0, 3, 1, 2}), weight, {}, 1, 1);
  return {y.mean({0, 2, 3}), y.var({0, 2, 3}, /*unbiased=*/true)};
}

// PyTorch's rule on each rank, running = 0.9 running + 0.1 batch, then the mean over the ranks, each with the
// same weight though the last batches are of 4 and 3 samples. With a learning rate of 0 the weights stay.
TEST(Single, AGroupHasTheMeanOfItsRanksRunningStatistics) {
  const at::NoGradGuard no_grad;
  constexpr std::uint32_t kWorkers = 2;
  const auto dataset = data::load({"synthetic:3x8x8:4:23", "", 1});
  SingleOptions options;
  options.batch_size = 8;
  options.epochs = 1;
  options.optimizer.first.lr = 0;
  const auto network = classify("synthetic:3x8x8:4:23", "resnet20");
  ASSERT_EQ(network->parameters()[0].name, "conv1.weight");
  const auto weight = network->parameters()[0].tensor.detach();
  // Given to all: threads that initialise a network at the same time share one random generator.
  const auto layout = models::layout_of(network->parameters());
  std::vector<float> initial(layout.size());
  models::copy_parameters_out(network->parameters(), layout, initial);
  const auto order = data::epoch_order(23, options.seed, 0);
  auto mean = at::zeros({16}), variance = at::ones({16}), mean_of_first = at::zeros({16});
  for (const auto& [begin, middle, end] : {std::array{0, 8, 16}, std::array{16, 20, 23}}) {
    const auto part = [&](int from, int to) {
      return statistics_of(
          *dataset.train,
          std::span(order).subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from)),
          weight);
    };
    const auto [mean_0, variance_0] = part(begin, middle);
    const auto [mean_1, variance_1] = part(middle, end);
    mean = 0.9 * mean + 0.1 * (mean_0 + mean_1) / 2;
    variance = 0.9 * variance + 0.1 * (variance_0 + variance_1) / 2;
    mean_of_first = 0.9 * mean_of_first + 0.1 * mean_0;
  }
  const auto difference = [](const at::Tensor& a, const at::Tensor& b) {
    return (a - b).abs().max().item<float>();
  };
  ASSERT_GT(difference(mean_of_first, mean), 1e-3) << "one rank alone has other statistics";

  ThreadGroup group(kWorkers);
  std::vector<std::unique_ptr<Classification>> trained;
  for (std::uint32_t i = 0; i < kWorkers; ++i)
    trained.push_back(classify("synthetic:3x8x8:4:23", "resnet20"));
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
      threads.emplace_back([&, rank] {
        auto own = options;
        own.group = {rank, kWorkers, [&](std::span<float> values) { group.sum(values); }};
        own.start = SingleStart{{}, {}, {}, [&](std::span<float> to, const std::vector<std::span<float>>&) {
                                  std::ranges::copy(initial, to.begin());
                                }};
        (void)train_single(own, *trained[rank], {});
      });
    }
  }
  for (const auto& model : trained) {
    const auto& buffers = model->buffers();
    ASSERT_EQ(buffers[0].name, "bn1.running_mean");
    ASSERT_EQ(buffers[1].name, "bn1.running_var");
    ASSERT_EQ(buffers[2].name, "bn1.num_batches_tracked");
    EXPECT_LT(difference(buffers[0].tensor, mean), 1e-5);
    EXPECT_LT(difference(buffers[1].tensor, variance), 1e-5);
    EXPECT_EQ(buffers[2].tensor.item<std::int64_t>(), 2);
  }
}

TEST(Single, TheSameSeedGivesTheSameBitsAndAnotherSeedOthers) {
  const auto options = short_run(10);
  const auto trained = [&](std::uint64_t init_seed) {
    return copy_of(train_single(options, *classify("digits", "lenet", init_seed), {}).weights);
  };
  const auto first = trained(1), second = trained(1);
  ASSERT_EQ(first.size(), second.size());
  EXPECT_EQ(std::memcmp(first.data(), second.data(), first.size() * sizeof(float)), 0);
  EXPECT_NE(trained(2), first);
}

TEST(Single, ReportsStepsAndEpochs) {
  const auto task = classify("synthetic:1x4x4:3:70", "mlp");
  SingleOptions options;
  options.batch_size = 32;
  options.epochs = 2;
  std::vector<std::uint64_t> steps, samples, epochs;
  std::vector<float> last;
  SingleCallbacks callbacks;
  callbacks.on_step = [&](const SingleStep& s) { steps.push_back(s.step), samples.push_back(s.samples); };
  callbacks.on_epoch = [&](std::uint64_t epoch, std::span<const float> w) {
    epochs.push_back(epoch), last = copy_of(w);
  };
  const auto result = train_single(options, *task, callbacks);
  EXPECT_THAT(steps, testing::ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(samples, testing::ElementsAre(32, 32, 6, 32, 32, 6));
  EXPECT_THAT(epochs, testing::ElementsAre(0, 1));
  EXPECT_EQ(last, copy_of(result.weights));
  EXPECT_EQ(result.samples, 140u);
  EXPECT_FALSE(result.stopped);
}

TEST(Single, StopsOnRequest) {
  const auto task = classify("synthetic:1x4x4:3:70", "mlp");
  SingleOptions options;
  options.batch_size = 8;
  std::atomic<bool> stop = false;
  SingleCallbacks callbacks;
  callbacks.on_step = [&](const SingleStep& s) { stop = s.step == 4; };
  callbacks.stop = &stop;
  const auto result = train_single(options, *task, callbacks);
  EXPECT_EQ(result.steps, 4u);
  EXPECT_TRUE(result.stopped);
}

}  // namespace
}  // namespace capstan::training
