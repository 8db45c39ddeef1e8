// The language model against plain libtorch modules, and on servers.

#include "capstan/workloads/char_language_model.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>
#include <torch/optim/sgd.h>

#include "capstan/training/evaluator.h"
#include "capstan/training/single.h"
#include "capstan/user_error.h"

#include "support/temporary_folder.h"
#include "training/loopback_training.h"

namespace capstan::workloads {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::int64_t kWindow = 8, kEmbedding = 6, kHidden = 10, kBatch = 4;

CharLanguageModel::Options small() {
  return {kWindow, kEmbedding, kHidden, 5};
}

// ---- the text ----

TEST(Text, TheBuiltInOneIsAPlay) {
  const auto text = load_text("text", 100);
  EXPECT_EQ(text.train.size() + text.test.size(), 125179u);
  EXPECT_EQ(text.test.size(), 12517u);
  std::string begin;
  for (std::size_t i = 0; i < 15; ++i) begin += static_cast<char>(text.characters[text.train[i]]);
  EXPECT_EQ(begin, "\tAS YOU LIKE IT");
}

TEST(Text, IsReadFromAFile) {
  const capstan::testing::TemporaryFolder folder;
  capstan::testing::write_file(folder / "a.txt", "abcabcabcabcabcabcabcz");
  const auto text = load_text("text:" + (folder / "a.txt").string(), 2);
  EXPECT_EQ(text.characters, (std::vector<std::uint8_t>{'a', 'b', 'c', 'z'}));
  EXPECT_EQ(text.train.size(), 20u);
  EXPECT_EQ(text.test, (std::vector<std::uint8_t>{2, 3}));
}

TEST(Text, WrongInputIsOneLine) {
  const capstan::testing::TemporaryFolder folder;
  capstan::testing::write_file(folder / "short.txt", "abc");
  EXPECT_THAT([] { load_text("digits", 2); }, ThrowsMessage<UserError>(HasSubstr("text:FILE")));
  EXPECT_THAT([] { load_text("text:", 2); }, ThrowsMessage<UserError>(HasSubstr("text:FILE")));
  EXPECT_THAT([] { load_text("text:/none.txt", 2); },
              ThrowsMessage<UserError>(HasSubstr("/none.txt cannot be read: No such file")));
  EXPECT_THAT([&] { load_text("text:" + (folder / "short.txt").string(), 2); },
              ThrowsMessage<UserError>(HasSubstr("has 3 bytes")));
}

// ---- against plain libtorch ----

// The same model of libtorch's own modules, with the weights of a task.
struct Plain {
  torch::nn::Embedding embedding;
  torch::nn::GRU gru;
  torch::nn::Linear decoder;
  std::vector<at::Tensor> parameters;

  explicit Plain(const Task& task, std::int64_t characters)
      : embedding(characters, kEmbedding),
        gru(torch::nn::GRUOptions(kEmbedding, kHidden).batch_first(true)),
        decoder(kHidden, characters) {
    const at::NoGradGuard no_grad;
    for (auto* module : std::initializer_list<torch::nn::Module*>{embedding.get(), gru.get(), decoder.get()})
      for (auto& p : module->parameters()) parameters.push_back(p);
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].copy_(task.parameters()[i].tensor);
  }

  at::Tensor loss(const at::Tensor& input, const at::Tensor& target, at::Tensor& hidden) {
    const auto [output, end] = gru->forward(embedding(input), hidden);
    hidden = end.detach();
    return at::cross_entropy_loss(decoder(output).transpose(1, 2), target);
  }
};

// Rows of characters that begin at these positions.
at::Tensor rows(const std::vector<std::uint8_t>& text, const std::vector<std::size_t>& begins) {
  auto out = at::zeros({static_cast<std::int64_t>(begins.size()), kWindow}, at::kLong);
  for (std::size_t r = 0; r < begins.size(); ++r)
    for (std::size_t i = 0; i < static_cast<std::size_t>(kWindow); ++i)
      out[static_cast<std::int64_t>(r)][static_cast<std::int64_t>(i)] = text[begins[r] + i];
  return out;
}

// Each row of a batch reads its own quarter of the text, and its hidden state is carried from step to step.
TEST(CharLanguageModel, EqualsAPlainLibtorchLoop) {
  at::set_num_threads(1);
  const auto text = load_text("text", 100);
  CharLanguageModel task(text, small());
  const auto windows = task.split(Split::kTrain).samples;
  ASSERT_EQ(windows, (text.train.size() - 1) / kWindow);
  ASSERT_EQ(windows % kBatch, 2u) << "the first two columns are one window longer";
  Plain plain(task, static_cast<std::int64_t>(text.characters.size()));
  torch::optim::SGD sgd(plain.parameters, torch::optim::SGDOptions(0.5).momentum(0.9));
  std::vector<double> expected;
  auto hidden = at::zeros({1, kBatch, kHidden});
  const std::size_t longer = windows / kBatch + 1;
  for (std::size_t step = 0; step < 4; ++step) {
    std::vector<std::size_t> begins, next;
    for (const auto window : {step, longer + step, 2 * longer + step, 3 * longer - 1 + step}) {
      begins.push_back(window * kWindow);
      next.push_back(window * kWindow + 1);
    }
    sgd.zero_grad();
    const auto loss = plain.loss(rows(text.train, begins), rows(text.train, next), hidden);
    loss.backward();
    sgd.step();
    expected.push_back(loss.item<float>());
  }

  training::SingleOptions options;
  options.batch_size = kBatch;
  options.max_steps = 4;
  options.optimizer.first.lr = 0.5;
  options.optimizer.first.momentum = 0.9;
  std::vector<double> losses;
  training::SingleCallbacks callbacks;
  callbacks.on_step = [&](const training::SingleStep& step) { losses.push_back(step.loss); };
  const auto result = train_single(options, task, callbacks);
  EXPECT_THAT(losses, ::testing::Pointwise(::testing::DoubleNear(1e-6), expected));
  for (std::size_t i = 0; i < plain.parameters.size(); ++i) {
    const auto ours = task.parameters()[i].tensor.detach(), theirs = plain.parameters[i].detach();
    EXPECT_LT(((ours - theirs).abs() / theirs.abs().clamp_min(1)).max().item<float>(), 1e-6)
        << task.parameters()[i].name;
  }
}

TEST(CharLanguageModel, CarriesTheHiddenStateOnlyToTheNextWindow) {
  const at::NoGradGuard no_grad;
  CharLanguageModel task(load_text("text", 100), small());
  const auto loss_of = [&](std::initializer_list<std::uint32_t> windows) {
    const std::vector<std::uint32_t> samples(windows);
    return task.loss(0, task.batch(Split::kTrain, {0, samples})).item<float>();
  };
  const auto alone = loss_of({7});
  loss_of({6});
  const auto after_its_predecessor = loss_of({7});
  EXPECT_NE(after_its_predecessor, alone);
  EXPECT_EQ(loss_of({7}), alone) << "a window does not continue itself";
  loss_of({6, 3});
  EXPECT_EQ(loss_of({7}), after_its_predecessor) << "each place has its own state";
  loss_of({3, 6});
  EXPECT_EQ(loss_of({7}), alone);
  loss_of({6});
  task.train(false);
  EXPECT_EQ(loss_of({7}), alone) << "evaluation has its own state";
  task.train(true);
  EXPECT_EQ(loss_of({7}), after_its_predecessor);
}

// Perplexity is the exponential of the mean loss over all characters of the test part, in columns.
TEST(CharLanguageModel, IsEvaluatedByPerplexity) {
  const at::NoGradGuard no_grad;
  const auto text = load_text("text", 100);
  CharLanguageModel task(text, small());
  Plain plain(task, static_cast<std::int64_t>(text.characters.size()));
  const auto windows = (text.test.size() - 1) / kWindow;
  ASSERT_EQ(windows, 1564u);
  double sum = 0;
  std::vector<at::Tensor> hidden(2, at::zeros({1, 1, kHidden}));
  for (std::size_t step = 0; step < windows / 2; ++step) {
    for (std::size_t column = 0; column < 2; ++column) {
      const auto begin = (column * windows / 2 + step) * kWindow;
      sum +=
          plain.loss(rows(text.test, {begin}), rows(text.test, {begin + 1}), hidden[column]).item<double>();
    }
  }
  const auto found = training::evaluate(task, {.batch = 2});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->samples, windows);
  EXPECT_EQ(found->metrics[0].name, "perplexity");
  EXPECT_NEAR(found->values[1], sum / static_cast<double>(windows), 1e-5);
  EXPECT_NEAR(found->values[0], std::exp(sum / static_cast<double>(windows)), 1e-3);
  EXPECT_EQ(training::evaluate(task, {.batch = 2})->values, found->values);
}

// ---- on servers ----

// Of a model that knows only how often each character occurs.
double unigram_perplexity(const Text& text) {
  std::vector<double> counts(text.characters.size(), 1);
  for (const auto c : text.train) ++counts[c];
  const auto total = static_cast<double>(text.train.size() + text.characters.size());
  double sum = 0;
  for (const auto c : text.test) sum -= std::log(counts[c] / total);
  return std::exp(sum / static_cast<double>(text.test.size()));
}

TEST(CharLanguageModel, LearnsOnServers) {
  at::set_num_threads(1);
  const auto text = load_text("text", 100);
  std::vector<std::unique_ptr<Task>> tasks;
  for (int i = 0; i < 2; ++i) {
    CharLanguageModel::Options options;
    options.hidden = 64;
    tasks.push_back(std::make_unique<CharLanguageModel>(text, options));
  }
  server::ServerOptions servers;
  servers.job.workers = 2;
  servers.job.servers = 2;
  servers.job.max_steps = 200;
  servers.optimizer = optimizer::defaults(optimizer::Kind::kAdam);
  servers.optimizer.first.lr = 0.01;
  training::WorkerOptions options;
  options.batch_size = 8;
  capstan::testing::train_on_servers(servers, tasks, options);
  const auto perplexity = training::evaluate(*tasks[0])->values[0];
  EXPECT_LT(perplexity, unigram_perplexity(text) / 2) << "it uses the characters before";
  EXPECT_GT(perplexity, 2);
}

}  // namespace
}  // namespace capstan::workloads
