#include "capstan/training/single.h"

#include <barrier>
#include <cstring>
#include <mutex>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include "capstan/base/user_error.h"
#include "capstan/data/dataset.h"
#include "capstan/data/partition.h"
#include "capstan/models/arena.h"

namespace capstan::training {
namespace {

SingleOptions short_run(std::uint64_t steps) {
  SingleOptions options;
  options.max_steps = steps;
  options.batch_size = 32;
  options.optimizer.lr = 0.05;
  options.optimizer.momentum = 0.9;
  options.optimizer.weight_decay = 1e-4;
  return options;
}

std::vector<float> copy_of(std::span<const float> weights) {
  return {weights.begin(), weights.end()};
}

// The same training in plain libtorch: its modules, its optimizer, NCHW, a sample at a time.
class PlainTraining {
 public:
  explicit PlainTraining(const SingleOptions& options) : options_(options) {
    at::manual_seed(options.network.init_seed);
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
  std::vector<double> run(const data::ImageSource& source) {
    torch::optim::SGD sgd(parameters_, torch::optim::SGDOptions(options_.optimizer.lr)
                                           .momentum(options_.optimizer.momentum)
                                           .weight_decay(options_.optimizer.weight_decay));
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
  at::Tensor loss_of(const data::ImageSource& source, std::span<const std::uint32_t> samples) {
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
    const auto result = train_single(options, dataset, callbacks);
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

// Three processes, here threads, that share every step.
TEST(Single, AGroupEqualsAPlainLibtorchLoopOverTheWholeBatch) {
  constexpr std::uint32_t kWorkers = 3;
  const auto dataset =
      data::load({"synthetic:1x28x28:10:200", "", 1});  // the last step of an epoch is smaller
  auto options = short_run(10);
  options.batch_size = 24;
  options.optimizer.lr = 0.01;
  PlainTraining plain(options);
  const auto first = models::layout_of(*make_network(options.network, dataset.train->shape(), 24));
  std::vector<float> initial(first.size());
  for (std::size_t i = 0; i < plain.parameters().size(); ++i)
    models::tensor_in(first, i, initial.data()).copy_(plain.parameters()[i].detach());
  const auto losses = plain.run(*dataset.train);

  std::mutex mutex;
  std::vector<float> sum;
  std::barrier meet(kWorkers);
  const auto add_up = [&](std::span<float> values) {
    {
      const std::lock_guard lock(mutex);
      sum.resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) sum[i] += values[i];
    }
    meet.arrive_and_wait();
    std::ranges::copy(sum, values.begin());
    meet.arrive_and_wait();
    {
      const std::lock_guard lock(mutex);
      std::ranges::fill(sum, 0.0f);
    }
    meet.arrive_and_wait();
  };
  std::vector<std::vector<float>> weights(kWorkers);
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t rank = 0; rank < kWorkers; ++rank) {
      threads.emplace_back([&, rank] {
        auto own = options;
        own.batch_size = 8;
        own.group = {rank, kWorkers, add_up};
        own.start = SingleStart{{}, {}, {}, [&](std::span<float> to, const std::vector<std::span<float>>&) {
                                  std::ranges::copy(initial, to.begin());
                                }};
        SingleCallbacks callbacks;
        callbacks.on_step = [&](const SingleStep& step) {
          EXPECT_NEAR(step.loss, losses[step.step - 1], 1e-5) << step.step;
        };
        weights[rank] = copy_of(train_single(own, dataset, callbacks).weights);
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

TEST(Single, TheSameSeedGivesTheSameBitsAndAnotherSeedOthers) {
  const auto dataset = data::load({"digits", "", 1});
  auto options = short_run(10);
  const auto first = copy_of(train_single(options, dataset, {}).weights);
  const auto second = copy_of(train_single(options, dataset, {}).weights);
  ASSERT_EQ(first.size(), second.size());
  EXPECT_EQ(std::memcmp(first.data(), second.data(), first.size() * sizeof(float)), 0);
  options.network.init_seed = 2;
  EXPECT_NE(copy_of(train_single(options, dataset, {}).weights), first);
}

TEST(Single, ReportsStepsAndEpochs) {
  const auto dataset = data::load({"synthetic:1x4x4:3:70", "", 1});
  SingleOptions options;
  options.network.name = "mlp";
  options.batch_size = 32;
  options.epochs = 2;
  std::vector<std::uint64_t> steps, samples, epochs;
  std::vector<float> last;
  SingleCallbacks callbacks;
  callbacks.on_step = [&](const SingleStep& s) { steps.push_back(s.step), samples.push_back(s.samples); };
  callbacks.on_epoch = [&](std::uint64_t epoch, std::span<const float> w, models::Model&) {
    epochs.push_back(epoch), last = copy_of(w);
  };
  const auto result = train_single(options, dataset, callbacks);
  EXPECT_THAT(steps, testing::ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(samples, testing::ElementsAre(32, 32, 6, 32, 32, 6));
  EXPECT_THAT(epochs, testing::ElementsAre(0, 1));
  EXPECT_EQ(last, copy_of(result.weights));
  EXPECT_EQ(result.samples, 140u);
  EXPECT_FALSE(result.stopped);
}

TEST(Single, StopsOnRequest) {
  const auto dataset = data::load({"synthetic:1x4x4:3:70", "", 1});
  SingleOptions options;
  options.network.name = "mlp";
  options.batch_size = 8;
  std::atomic<bool> stop = false;
  SingleCallbacks callbacks;
  callbacks.on_step = [&](const SingleStep& s) { stop = s.step == 4; };
  callbacks.stop = &stop;
  const auto result = train_single(options, dataset, callbacks);
  EXPECT_EQ(result.steps, 4u);
  EXPECT_TRUE(result.stopped);
}

TEST(Single, ANetworkThatDoesNotFitTheDatasetIsAUserError) {
  EXPECT_THROW(train_single({}, data::load({"synthetic:3x8x8:2:8", "", 1}), {}), UserError);
}

}  // namespace
}  // namespace capstan::training
