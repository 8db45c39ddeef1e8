// The adversarial network against plain libtorch optimizers, and on servers.

#include "capstan/workloads/gan.h"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>

#include "capstan/data/partition.h"
#include "capstan/training/evaluator.h"
#include "capstan/training/single.h"
#include "capstan/training/step.h"
#include "capstan/user_error.h"

#include "support/temporary_folder.h"
#include "training/loopback_training.h"

namespace capstan::workloads {
namespace {

data::Dataset images(const std::string& name = "digits") {
  data::DatasetOptions options;
  options.name = name;
  options.normalize = data::Normalize::kNone;
  return data::load(options);
}

std::unique_ptr<Gan> make() {
  return std::make_unique<Gan>(images(), Gan::Options{16, 8, 3});
}

TEST(Gan, GeneratesImagesOfTheDatasetsShape) {
  const at::NoGradGuard no_grad;
  const auto gan = make();
  const auto generated = gan->generate(5);
  EXPECT_EQ(generated.sizes(), (at::IntArrayRef{5, 1, 28, 28}));
  EXPECT_GE(generated.min().item<float>(), 0);
  EXPECT_LE(generated.max().item<float>(), 1);
  EXPECT_EQ(gan->discriminate(generated).sizes(), (at::IntArrayRef{5, 1}));
}

TEST(Gan, ImagesThatItCannotHalveTwiceAreRejected) {
  EXPECT_THAT([] { Gan(images("synthetic:1x30x28:10:20"), {}); },
              ::testing::ThrowsMessage<UserError>(::testing::HasSubstr("30x28")));
}

TEST(Gan, NeedsTwoTestImages) {
  EXPECT_THAT([] { Gan(images("synthetic:1x8x8:2:4"), {}); },
              ::testing::ThrowsMessage<UserError>(::testing::HasSubstr("at least two test images")));
}

TEST(Gan, DataThatIsNotImagesIsRejected) {
  const capstan::testing::TemporaryFolder folder;
  capstan::testing::write_file(folder / "d.csv", "a,b,y\n1,2,3\n2,3,4\n3,4,5\n4,5,6\n5,6,7\n");
  EXPECT_THAT(
      [&] { Gan(images("csv:" + (folder / "d.csv").string() + ":target=y"), {}); },
      ::testing::ThrowsMessage<UserError>(::testing::HasSubstr("the dataset has 2 numbers per sample")));
}

// -log sigmoid(x) and -log(1 - sigmoid(x)), as the definition of binary cross-entropy.
at::Tensor real_loss(const at::Tensor& logits) {
  return -at::log_sigmoid(logits).mean();
}
at::Tensor fake_loss(const at::Tensor& logits) {
  return -at::log_sigmoid(-logits).mean();
}

// Each step: one update of the discriminator, then one of the generator against the new discriminator, each
// with its own optimizer.
TEST(Gan, EqualsAPlainLibtorchLoop) {
  at::set_num_threads(1);
  constexpr std::uint64_t kSteps = 3, kBatch = 16;
  const auto trained = make(), plain = make();
  std::vector<at::Tensor> discriminator, generator;
  for (const auto& p : plain->parameters())
    (p.name.starts_with("discriminator") ? discriminator : generator).push_back(p.tensor);
  torch::optim::SGD of_discriminator(discriminator, torch::optim::SGDOptions(0.05).momentum(0.5));
  torch::optim::SGD of_generator(generator, torch::optim::SGDOptions(0.2).weight_decay(0.01));
  data::Sampler sampler({plain->split(Split::kTrain).samples, 1, kBatch}, 0, 1);
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    training::seed_step(1, WorkerId{0}, {step});
    const auto batch = plain->batch(Split::kTrain, {0, sampler.batch(0, step)});
    of_discriminator.zero_grad();
    const auto generated = plain->generate(kBatch).detach();
    (real_loss(plain->discriminate(batch.input)) + fake_loss(plain->discriminate(generated))).backward();
    of_discriminator.step();
    of_generator.zero_grad();
    real_loss(plain->discriminate(plain->generate(kBatch))).backward();
    of_generator.step();
  }

  training::SingleOptions options;
  options.batch_size = kBatch;
  options.max_steps = kSteps;
  options.optimizer = optimizer::parse_spec(
      "default=sgd:lr=0.2:weight-decay=0.01,discriminator.*=sgd:lr=0.05:momentum=0.5", optimizer::defaults);
  const auto result = train_single(options, *trained, {});  // has the weights
  for (std::size_t i = 0; i < plain->parameters().size(); ++i) {
    const auto ours = trained->parameters()[i].tensor.detach(),
               theirs = plain->parameters()[i].tensor.detach();
    EXPECT_LT(((ours - theirs).abs() / theirs.abs().clamp_min(1)).max().item<float>(), 1e-6)
        << plain->parameters()[i].name;
  }
}

TEST(Gan, TheEnergyDistanceIsThatOfTheDefinition) {
  const at::NoGradGuard no_grad;
  const auto gan = make();
  constexpr std::uint32_t kSome[] = {0, 1, 2, 3, 4, 5};
  const auto batch = gan->batch(Split::kTest, {0, kSome});
  at::manual_seed(9);
  const auto found = gan->evaluate(batch)[0];
  at::manual_seed(9);
  const auto generated = gan->generate(6);
  const auto distance = [](const at::Tensor& a, const at::Tensor& b) {
    return std::sqrt((a - b).square().sum().item<double>());
  };
  double between = 0, real = 0, fake = 0;
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 6; ++j) {
      between += distance(batch.input[i], generated[j]) / 36;
      if (i == j) continue;
      real += distance(batch.input[i], batch.input[j]) / 30;
      fake += distance(generated[i], generated[j]) / 30;
    }
  }
  EXPECT_NEAR(found.sum / found.weight, 2 * between - real - fake, 1e-4);
}

TEST(Gan, LearnsOnServers) {
  at::set_num_threads(1);
  std::vector<std::unique_ptr<Task>> tasks;
  for (int i = 0; i < 2; ++i) tasks.push_back(std::make_unique<Gan>(images(), Gan::Options{}));
  const auto before = training::evaluate(*tasks[0])->values[0];
  server::ServerOptions servers;
  servers.job.workers = 2;
  servers.job.servers = 2;
  servers.job.max_steps = 250;
  servers.optimizer = optimizer::parse_spec(
      "default=adam:lr=0.002:beta1=0.5,discriminator.*=adam:lr=0.0005:beta1=0.5", optimizer::defaults);
  training::WorkerOptions options;
  capstan::testing::train_on_servers(servers, tasks, options);
  const auto after = training::evaluate(*tasks[0])->values[0];
  EXPECT_LT(after, before / 2) << "generated images are nearer to the test images";
}

}  // namespace
}  // namespace capstan::workloads
