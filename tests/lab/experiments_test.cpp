// The shipped experiments of `capstan bench ps`, as processes: the weights of every trainer must equal those
// of a plain loop, and every metric must be there with the right count.
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <torch/optim/sgd.h>

#include "capstan/checkpoint/safetensors.h"
#include "capstan/lab/dummy_data.h"
#include "capstan/lab/dummy_model.h"
#include "capstan/lab/linear_model.h"
#include "capstan/lab/random_vectors.h"

#include "lab/experiment_run.h"
#include "lab/metric_counts.h"
#include "lab/replay.h"

namespace capstan::lab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::ElementsAre;
using testing::Flags;
using testing::Folder;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr std::uint64_t kSteps = 4;  // of each trainer with --quick
constexpr std::uint64_t kBatch = 32;
// The experiments' rate of 1e-4 changes the weights less than rounding errors do.
constexpr double kRate = 200;

// ---- what is trained ----

// Four layers of 361,200 bytes: three reach the size of DDP's first bucket, one is in the next. So there are
// two buckets, and a third one for a sparse table.
constexpr std::int64_t kSize = 300, kLayers = 4, kLength = 6;
constexpr std::int64_t kSamples = 4 * kSteps * kBatch + 10;  // at most four trainers

std::map<std::string, Configuration::Value> data_values() {
  return {{"max_val", kSize},
          {"sample_count", kSamples},
          {"sample_length", kLength},
          {"sparsity_percentage", std::int64_t{20}}};
}
std::map<std::string, Configuration::Value> model_values(bool sparse) {
  return {{"num_embeddings", kSize},    {"embedding_dim", kSize},        {"dense_input_size", kSize},
          {"dense_output_size", kSize}, {"dense_layers_count", kLayers}, {"sparse", sparse}};
}

json entry(const char* kind, const char* class_name, const std::map<std::string, Configuration::Value>& of) {
  json values;
  for (const auto& [key, value] : of) std::visit([&](const auto& v) { values[key] = v; }, value);
  return {{kind, class_name}, {"configurations", values}};
}

// Files that make the experiments' data and models small.
Flags small(const Folder& folder) {
  const auto data = folder / "data.json", models = folder / "models.json";
  std::ofstream(data) << json{{"DummyData", entry("data_class", "DummyData", data_values())}};
  std::ofstream(models) << json{{"DummyModel", entry("model_class", "DummyModel", model_values(false))},
                                {"DummyModelSparse", entry("model_class", "DummyModel", model_values(true))}};
  return {"--data-config-path=" + data.string(), "--model-config-path=" + models.string(),
          fmt::format("--lr={}", kRate)};
}

// The same in this process.
Work small_work(std::uint64_t trainers) {
  torch::manual_seed(1);  // the default of --seed
  return {.model = make_dummy_model({"a test", model_values(false)}),
          .data = make_dummy_data({"a test", data_values()}, 1),
          .trainers = trainers,
          .batch_size = kBatch,
          .steps = kSteps};
}

// PyTorch's example of batch updating: Linear(100, 30), L1 against zeros, three trainers with 4 batches
// of 20.
Work batch_update_work() {
  torch::manual_seed(1);
  return {.model = make_linear_model(
              {"a test", {{"in_features", std::int64_t{100}}, {"out_features", std::int64_t{30}}}}),
          .data = make_random_vectors({"a test",
                                       {{"sample_count", std::int64_t{240}},
                                        {"sample_length", std::int64_t{100}},
                                        {"target_length", std::int64_t{30}}}},
                                      1),
          .trainers = 3,
          .batch_size = 20,
          .steps = 4,
          .uses_l1 = true};
}

// ---- weights ----

Tensors weights_of(const Measured& measured, std::uint64_t trainer, const Plain& plain) {
  const auto file =
      checkpoint::read_safetensors(measured.folder / fmt::format("trainer-{}.safetensors", trainer));
  EXPECT_EQ(file.tensors.size(), plain.names().size());
  Tensors weights;
  for (const auto& name : plain.names()) {
    const auto found = std::ranges::find(file.tensors, name, &checkpoint::Tensor::name);
    if (found == file.tensors.end()) throw std::runtime_error("no tensor " + name);
    weights.push_back(at::tensor(found->values).view(found->dims));
  }
  return weights;
}

// The largest difference that counts as equal: small against what training changes, too.
double tolerance(const at::Tensor& initial, const at::Tensor& expected) {
  return std::min(1e-5, (expected - initial).abs().max().item<double>() / 100);
}

bool is_near(const at::Tensor& found, const at::Tensor& expected, const at::Tensor& initial) {
  return distance({found}, {expected}) < tolerance(initial, expected);
}

void expect_near(const Tensors& found, const Tensors& expected, const Plain& plain) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_TRUE(is_near(found[i], expected[i], plain.initial()[i]))
        << plain.names()[i] << ": " << distance({found[i]}, {expected[i]}) << " of "
        << distance({expected[i]}, {plain.initial()[i]});
}

void expect_all_near(const Measured& measured, const Tensors& expected, const Plain& plain) {
  for (std::uint64_t trainer = 0; trainer < plain.work().trainers; ++trainer) {
    SCOPED_TRACE(fmt::format("trainer {}", trainer));
    expect_near(weights_of(measured, trainer, plain), expected, plain);
  }
}

// ---- DDP ----

struct DdpConfiguration {
  std::string name;  // empty: the experiment's
  std::uint64_t trainers = 2;
};

// What happens in each step.
struct Ddp {
  Counts hooks;                 // buckets
  std::uint64_t at_server = 0;  // buckets
  std::vector<DdpConfiguration> configurations = {{}};
};

void check_ddp(const ExperimentRun& experiment, const Ddp& ddp) {
  const auto all = experiment.measure(small(experiment.folder()));
  ASSERT_EQ(all.size(), ddp.configurations.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(all[i].name);
    const auto& [name, trainers] = ddp.configurations[i];
    EXPECT_EQ(all[i].name, name.empty() ? experiment.name() : name);
    Plain plain(small_work(trainers));
    expect_all_near(all[i], plain.trained_together(1, kRate), plain);
    const Counts bytes = {{"bytes_metric,pushed", 1}, {"bytes_metric,pulled", 1}};
    expect_metrics(all[i], plain.work(),
                   kSteps * (kEveryStep + kOptimizerStep + kGradientWait + bytes + ddp.hooks),
                   ddp.at_server > 0 ? kSteps * ddp.at_server * (kServed + kSent) : Counts());
    const auto hidden = all[i].run.at("hidden_communication");
    ASSERT_TRUE(hidden.is_number());
    EXPECT_GE(hidden, 0);
    EXPECT_LE(hidden, 1);
  }
}

// ---- strategies ----

std::vector<Update> recorded(const Measured& measured) {
  std::ifstream file(measured.folder / "updates.json");
  return updates_of(json::parse(file));
}

// Each trainer ends with the weights of an update that is not before the last one with a push of it. If
// pushes are answered at once, only the last push of an update gets its weights.
void expect_versions(const Measured& measured, const Plain& plain, const std::vector<Update>& updates,
                     const std::vector<Versions>& versions,
                     const std::function<std::size_t(std::size_t)>& group_of, bool answers_at_once = false) {
  for (std::uint64_t trainer = 0; trainer < plain.work().trainers; ++trainer) {
    const auto found = weights_of(measured, trainer, plain);
    for (std::size_t group = 0; group < versions.size(); ++group) {
      std::uint64_t version = 0;
      for (const auto& update : updates)
        for (const auto& push : update.pushes)
          if (update.group == group && push.worker == trainer)
            version = update.version - (answers_at_once && &push != &update.pushes.back() ? 1 : 0);
      const auto is_found = [&](const Tensors& weights) {
        for (std::size_t i = 0; i < weights.size(); ++i)
          if (group_of(i) == group && !is_near(found[i], weights[i], plain.initial()[i])) return false;
        return true;
      };
      EXPECT_TRUE(std::any_of(versions[group].begin() + static_cast<std::ptrdiff_t>(version),
                              versions[group].end(), is_found))
          << "trainer " << trainer << ", group " << group << ", since version " << version << " of "
          << versions[group].size() - 1;
    }
  }
}

// A strategy that pushes gradients.
struct Gradients {
  std::uint64_t trainers = 2;
  bool sparse = false;
  std::uint64_t updates = 0;  // of each group; 0: it depends on the order of arrival
  GradientReplay::Rule rule = step_with_mean(kRate);
};

void check_gradients(const ExperimentRun& experiment, const Gradients& expected) {
  const auto all = experiment.measure(small(experiment.folder()));
  ASSERT_EQ(all.size(), 1u);
  const auto updates = recorded(all[0]);
  ASSERT_FALSE(updates.empty());
  if (expected.updates > 0) {
    EXPECT_EQ(updates.size(), expected.updates * (expected.sparse ? 2 : 1));
  }
  Plain plain(small_work(expected.trainers));
  GradientReplay replay(plain, expected.sparse, expected.rule);
  replay.run(updates);
  expect_versions(all[0], plain, updates, replay.versions(), [&](auto i) { return replay.group_of(i); });
  expect_update_metrics(all[0], plain.work(), kSteps * (kEveryStep + kPush), updates.size());
}

// A strategy that uses local steps, with two trainers.
struct Local {
  std::uint64_t pushes = 0;   // of each trainer
  std::uint64_t updates = 0;  // 0: it depends on the order of arrival
  LocalReplay::Rule rule;
  bool answers_at_once = false;
};

void check_local(const ExperimentRun& experiment, const Local& expected) {
  const auto all = experiment.measure(small(experiment.folder()));
  ASSERT_EQ(all.size(), 1u);
  const auto updates = recorded(all[0]);
  ASSERT_FALSE(updates.empty());
  if (expected.updates > 0) {
    EXPECT_EQ(updates.size(), expected.updates);
  }
  Plain plain(small_work(2));
  LocalReplay replay(plain, kRate, expected.rule);
  replay.run(updates);
  expect_versions(
      all[0], plain, updates, {replay.versions()}, [](auto) { return 0; }, expected.answers_at_once);
  expect_update_metrics(all[0], plain.work(),
                        kSteps * (kEveryStep + kOptimizerStep) + expected.pushes * kPush, updates.size());
}

void check_elastic(const ExperimentRun& experiment) {
  const auto all = experiment.measure(small(experiment.folder()));
  ASSERT_EQ(all.size(), 1u);
  const auto updates = recorded(all[0]);
  EXPECT_EQ(updates.size(), 2 * 2u);
  Plain plain(small_work(2));
  const auto expected = elastic_weights(plain, kRate, 0.45, updates);
  for (std::uint64_t trainer = 0; trainer < 2; ++trainer)
    expect_near(weights_of(all[0], trainer, plain), expected[trainer], plain);
  expect_update_metrics(all[0], plain.work(), kSteps * (kEveryStep + kOptimizerStep) + 2 * kPush,
                        updates.size());
}

void check_without_servers(const ExperimentRun& experiment, std::uint64_t trainers) {
  const auto all = experiment.measure(small(experiment.folder()));
  ASSERT_EQ(all.size(), 1u);
  Plain plain(small_work(trainers));
  expect_all_near(all[0], plain.trained_together(1, kRate), plain);
  expect_metrics(all[0], plain.work(),
                 kSteps * (kEveryStep + kOptimizerStep + (trainers > 1 ? kPush : Counts())), {});
}

// Whole, as it is: PyTorch's optimizer makes the reference.
void check_batch_update(const ExperimentRun& experiment) {
  const auto all = experiment.measure({});
  ASSERT_EQ(all.size(), 1u);
  const auto updates = recorded(all[0]);
  ASSERT_EQ(updates.size(), 4u);
  for (const auto& update : updates) {
    std::vector<std::uint64_t> workers;
    for (const auto& push : update.pushes) workers.push_back(push.worker);
    EXPECT_THAT(workers, UnorderedElementsAre(0, 1, 2));
  }
  Plain plain(batch_update_work());
  auto w = copies(plain.initial());
  torch::optim::SGD optimizer(w, torch::optim::SGDOptions(0.001).momentum(0.9));
  for (std::uint64_t step = 0; step < 4; ++step) {
    const auto gradient = plain.mean_gradient(step, w);
    for (std::size_t i = 0; i < w.size(); ++i) w[i].mutable_grad() = gradient[i];
    optimizer.step();
  }
  expect_all_near(all[0], w, plain);
  expect_update_metrics(all[0], plain.work(), 4 * (kEveryStep + kPush), updates.size());
}

// ---- CUDA ----

void check_needs_cuda(const ExperimentRun& experiment) {
  const auto program = experiment.run(small(experiment.folder()));
  EXPECT_EQ(program->exit_code(), 2);
  const auto errors = program->errors();
  EXPECT_EQ(std::ranges::count(errors, '\n'), 1) << errors;
  EXPECT_THAT(errors, HasSubstr(experiment.name() + ": needs CUDA devices"));
}

// ---- all experiments ----

struct Case {
  const char* experiment;
  std::function<void(const ExperimentRun&)> check;
};
// For the names of tests.
void PrintTo(const Case& each, std::ostream* out) {
  *out << each.experiment;
}

std::function<void(const ExperimentRun&)> ddp(const Ddp& expected) {
  return [=](const ExperimentRun& experiment) { check_ddp(experiment, expected); };
}
std::function<void(const ExperimentRun&)> gradients(const Gradients& expected) {
  return [=](const ExperimentRun& experiment) { check_gradients(experiment, expected); };
}
std::function<void(const ExperimentRun&)> local(const Local& expected) {
  return [=](const ExperimentRun& experiment) { check_local(experiment, expected); };
}
std::function<void(const ExperimentRun&)> without_servers(std::uint64_t trainers) {
  return [=](const ExperimentRun& experiment) { check_without_servers(experiment, trainers); };
}

const Counts kRpcDense = {{"hook_future_metric,rpc_dense", 2}};
const Counts kRpcSparse = {{"hook_future_metric,rpc_sparse", 1}};
const Counts kGlooDense = {{"hook_future_metric,gloo_dense_allreduce", 2}};
const Counts kGlooSparse = {{"hook_future_metric,gloo_sparse_allreduce", 1}};
const Counts kGlooSparseNow = {{"hook_c10d_metric,gloo_sparse_allreduce", 1}};

const std::vector<DdpConfiguration> kScaling = {
    {"scaling [trainers=1, server=AverageParameterServer]", 1},
    {"scaling [trainers=1, server=AverageBatchParameterServer]", 1},
    {"scaling [trainers=2, server=AverageParameterServer]", 2},
    {"scaling [trainers=2, server=AverageBatchParameterServer]", 2},
    {"scaling [trainers=4, server=AverageParameterServer]", 4},
    {"scaling [trainers=4, server=AverageBatchParameterServer]", 4}};

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"batch_update", check_batch_update},
      {"ddp_batch_cpu_rpc", ddp({kRpcDense + kRpcSparse, 3})},
      {"ddp_batch_cpu_sparse_rpc_gloo_allreduce", ddp({kGlooDense + kRpcSparse, 1})},
      {"ddp_batch_cpu_sparse_rpc_nccl_allreduce", check_needs_cuda},
      {"ddp_batch_cuda_rpc", check_needs_cuda},
      {"ddp_batch_cuda_sparse_rpc_nccl_allreduce", check_needs_cuda},
      {"ddp_cpu_rpc", ddp({kRpcDense + kRpcSparse, 3})},
      {"ddp_cpu_sparse_rpc_gloo_allreduce", ddp({kGlooDense + kRpcSparse, 1})},
      {"ddp_cpu_sparse_rpc_nccl_allreduce", check_needs_cuda},
      {"ddp_cuda_rpc", check_needs_cuda},
      {"ddp_cuda_sparse_rpc_nccl_allreduce", check_needs_cuda},
      {"ddp_gloo_allreduce", ddp({kGlooDense + kGlooSparse})},
      {"ddp_gloo_dense_allreduce", ddp({kGlooDense})},
      {"ddp_gloo_hybrid_allreduce", ddp({kGlooDense + kGlooSparseNow})},
      {"ddp_gloo_nccl_allreduce", check_needs_cuda},
      {"ddp_nccl_allreduce", check_needs_cuda},
      {"scaling", ddp({kRpcDense + kRpcSparse, 3, kScaling})},
      {"strategy_allreduce", without_servers(2)},
      {"strategy_async", gradients({.sparse = true, .updates = 8})},
      {"strategy_backup", gradients({.trainers = 3, .sparse = true})},
      {"strategy_batch", gradients({.sparse = true, .updates = 4})},
      {"strategy_dc_asgd", gradients({.updates = 8, .rule = delay_compensation(kRate, 0.04)})},
      {"strategy_dc_asgd_a", gradients({.updates = 8, .rule = adaptive_delay_compensation(kRate, 0.04)})},
      {"strategy_decoupled_diloco", local({2, 0, outer_step(0.7, 0.9, share_of_samples)})},
      {"strategy_diloco", local({2, 2, outer_step(0.7, 0.9, equal_share)})},
      {"strategy_easgd", check_elastic},
      {"strategy_fedavg", local({1, 1, mean_of_weights()})},
      {"strategy_fedbuff", local({2, 2, outer_step(1, 0, damped_share), true})},
      {"strategy_local_sgd", local({2, 2, mean_of_weights()})},
      {"strategy_single", without_servers(1)},
      {"strategy_ssp", gradients({.sparse = true, .updates = 8})},
      {"strategy_sync", gradients({.sparse = true, .updates = 4})},
  };
  return all;
}

class ShippedExperiment : public ::testing::TestWithParam<Case> {};

TEST_P(ShippedExperiment, HasTheResultsOfAPlainLoop) {
  GetParam().check(ExperimentRun(GetParam().experiment));
}

INSTANTIATE_TEST_SUITE_P(All, ShippedExperiment, ::testing::ValuesIn(cases()),
                         [](const auto& each) { return std::string(each.param.experiment); });

TEST(ShippedExperiments, AllHaveATest) {
  std::set<std::string> files, tested;
  for (const auto& entry : fs::directory_iterator(fs::path(CAPSTAN_SOURCE_DIR) / "experiments"))
    files.insert(entry.path().filename().string());
  for (const auto& each : cases()) tested.insert(std::string(each.experiment) + ".toml");
  EXPECT_EQ(tested, files);
}

}  // namespace
}  // namespace capstan::lab
