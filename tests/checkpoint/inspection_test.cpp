#include "capstan/checkpoint/inspection.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/checkpoint/aliases.h"
#include "capstan/checkpoint/checkpoint.h"
#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/checkpoint/safetensors.h"
#include "capstan/user_error.h"

#include "support/temporary_folder.h"

namespace capstan::checkpoint {
namespace {

namespace fs = std::filesystem;
using capstan::testing::contents;
using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Values whose mean and deviation are known without a calculator: 1, 3, 5, 7 and -2, 2, and a buffer 0.5.
void write_small(const fs::path& folder, Manifest manifest, float last_of_bias = 2) {
  const FlatLayout layout({{"fc.weight", {2, 2}}, {"fc.bias", {2}}});
  const FlatLayout buffers_layout({{"bn.running_mean", {1}}});
  std::vector<float> weights(layout.size()), momentum(layout.size()), buffers(buffers_layout.size());
  for (std::size_t i = 0; i < 4; ++i) weights[i] = 1 + 2 * static_cast<float>(i);
  weights[layout.offset(1)] = -2;
  weights[layout.offset(1) + 1] = last_of_bias;
  buffers[0] = 0.5f;
  Shard shard{0, 1, {0, layout.size()}, {{"weights", weights}}, buffers_layout, buffers};
  for (const auto& name : manifest.state) shard.arrays.push_back({name, momentum});
  manifest.parameters = layout.tensors();
  manifest.buffers = buffers_layout.tensors();
  fs::create_directories(folder);
  manifest.pieces = write_shard(folder, layout, shard);
  write_manifest(folder, manifest);
}

Manifest trained() {
  Manifest m;
  m.version = {500};
  m.strategy = "default=sync,fc*=async";
  m.optimizer = "sgd";
  m.state = {"momentum_buffer"};
  m.schedule = "cosine";
  m.learning_rate = 0.02;
  m.samples = 1000;
  m.seed = 9;
  m.trained_samples = 2500;
  m.segments = {{32, {10, 12}}, {16, {7}}};
  m.groups = {{"default", {500}}, {"fc*", {900}}};
  return m;
}

std::uint64_t bytes_in(const fs::path& folder) {
  std::uint64_t bytes = 0;
  for (const char* name : {"manifest.json", "weights.safetensors", "optimizer.safetensors"})
    if (fs::exists(folder / name)) bytes += fs::file_size(folder / name);
  return bytes;
}

void damage(const fs::path& file) {
  auto bytes = contents(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file(file, bytes);
}

TEST(TensorSummary, IsOfTheValuesThatAreFinite) {
  const float values[] = {1, kInfinity, 3, -kInfinity, std::numeric_limits<float>::quiet_NaN(), 5, 7};
  const TensorSummary some("a", {7}, values);
  EXPECT_EQ(some.mean, 4);
  EXPECT_DOUBLE_EQ(some.deviation * some.deviation, 5);  // (9 + 1 + 1 + 9) / 4
  EXPECT_EQ(some.not_finite, 3u);
  const TensorSummary none("b", {0, 4}, {});
  EXPECT_EQ(none.json().dump(), R"({"name":"b","shape":[0,4],"mean":0.0,"deviation":0.0,"not_finite":0})");
  const TensorSummary no_number("c", {1}, std::span(values).subspan(1, 1));
  EXPECT_EQ(no_number.json().dump(), R"({"name":"c","shape":[1],"mean":0.0,"deviation":0.0,"not_finite":1})");
}

// Rounding makes the variance of these negative, -2e-18.
TEST(TensorSummary, OfEqualValuesHasNoDeviation) {
  const std::vector<float> equal(53, 0.1f);
  const TensorSummary summary("a", {53}, equal);
  EXPECT_NEAR(summary.mean, 0.1, 1e-8);
  EXPECT_EQ(summary.deviation, 0);
}

TEST(Inspection, OfACheckpointAsText) {
  const TemporaryFolder home;
  const auto folder = home / "step";
  write_small(folder, trained(), kInfinity);
  const auto inspection = inspect_checkpoint(folder);
  EXPECT_TRUE(inspection.good());
  EXPECT_EQ(inspection.text(),
            folder.string() +
                "\n"
                "step      500\n"
                "strategy  default=sync,fc*=async\n"
                "optimizer sgd with momentum_buffer, schedule cosine, learning rate 0.02\n"
                "data      1000 samples, seed 9, 2.50 epochs trained\n"
                "          2 workers of batch size 32: 10 to 12 steps each\n"
                "          1 worker of batch size 16: 7 steps each\n"
                "group     default: 500 updates\n"
                "group     fc*: 900 updates\n"
                "model     6 parameters in 2 tensors, 0.0 MB on disk\n"
                "good      every checksum fits\n"
                "\n"
                "tensor                                               shape       mean  deviation\n"
                "fc.weight                                              2x2          4       2.24\n"
                "fc.bias                                                  2         -2          0"
                "  1 not finite!\n"
                "bn.running_mean                                          1        0.5          0\n");
}

TEST(Inspection, OfACheckpointAsJson) {
  const TemporaryFolder home;
  const auto folder = home / "step";
  auto manifest = trained();
  manifest.state = {"exp_avg", "exp_avg_sq"};
  write_small(folder, manifest);
  auto inspection = inspect_checkpoint(folder);
  EXPECT_EQ(inspection.bytes, bytes_in(folder));
  inspection.folder = "runs/a/checkpoints/step-00000500";
  inspection.bytes = 1234;
  inspection.tensors.erase(inspection.tensors.begin());  // its deviation is the root of 5
  EXPECT_EQ(inspection.json().dump(),
            R"({"ok":true,"path":"runs/a/checkpoints/step-00000500","version":500,)"
            R"("strategy":"default=sync,fc*=async","groups":{"default":500,"fc*":900},"optimizer":"sgd",)"
            R"("optimizer_state":["exp_avg","exp_avg_sq"],"schedule":"cosine","learning_rate":0.02,)"
            R"("samples":1000,"seed":9,"trained_samples":2500,)"
            R"("legs":[{"batch":32,"steps":[10,12]},{"batch":16,"steps":[7]}],)"
            R"("parameters":6,"bytes":1234,)"
            R"("tensors":[{"name":"fc.bias","shape":[2],"mean":0.0,"deviation":2.0,"not_finite":0},)"
            R"({"name":"bn.running_mean","shape":[1],"mean":0.5,"deviation":0.0,"not_finite":0}]})");
}

TEST(Inspection, OfACheckpointThatHasLittleToTell) {
  const TemporaryFolder home;
  Manifest manifest;
  manifest.strategy = "async";
  manifest.optimizer = "none";
  manifest.schedule = "constant";
  write_small(home / "step", manifest);
  const auto inspection = inspect_checkpoint(home / "step");
  EXPECT_THAT(inspection.text(), HasSubstr("optimizer none, schedule constant, learning rate 0\n"
                                           "data      no training set of its own\n"
                                           "model     6 parameters"));
  EXPECT_THAT(inspection.json().dump(), HasSubstr(R"("groups":{},"optimizer":"none","optimizer_state":[],)"));
}

TEST(Inspection, ExportsTheModelAndSaysSo) {
  const TemporaryFolder home;
  const auto file = home / "model.safetensors";
  write_small(home / "step", trained());
  const auto inspection = inspect_checkpoint(home / "step", file);
  EXPECT_THAT(inspection.text(), ::testing::EndsWith("\n\nwritten to " + file.string() + "\n"));
  const auto tensors = read_safetensors(file).tensors;
  ASSERT_EQ(tensors.size(), 3u);
  EXPECT_EQ(tensors[0], (Tensor{"fc.weight", {2, 2}, {1, 3, 5, 7}}));
  EXPECT_EQ(tensors[1], (Tensor{"fc.bias", {2}, {-2, 2}}));
  EXPECT_EQ(tensors[2], (Tensor{"bn.running_mean", {1}, {0.5f}}));
}

TEST(Inspection, ExportsTheAliasesOfTheRun) {
  const TemporaryFolder run;
  const auto step = folder_of(run.path(), {500}), file = run / "model.safetensors";
  write_small(step, trained());
  write_aliases(run.path(),
                {{"out.weight", "fc.weight"}, {"of.another", "network"}, {"fc.bias", "fc.weight"}});
  (void)inspect_checkpoint(step / "", file);
  const auto tensors = read_safetensors(file).tensors;
  ASSERT_EQ(tensors.size(), 4u) << "a state dict has a name once, and no tensor of another network";
  EXPECT_EQ(tensors[1], (Tensor{"fc.bias", {2}, {-2, 2}}));
  EXPECT_EQ(tensors[3], (Tensor{"out.weight", {2, 2}, {1, 3, 5, 7}}));

  write_file(run / "aliases.json", R"({"out.weight": 3})");
  EXPECT_THAT([&] { (void)inspect_checkpoint(step, file); },
              ::testing::ThrowsMessage<UserError>(HasSubstr("aliases.json is damaged")));
}

TEST(Inspection, OfADamagedCheckpointThrowsAndExportsNothing) {
  const TemporaryFolder home;
  write_small(home / "step", trained());
  damage(home / "step" / "weights.safetensors");
  EXPECT_THROW(inspect_checkpoint(home / "step", home / "model.pt"), UserError);
  EXPECT_FALSE(fs::exists(home / "model.pt"));
}

TEST(Inspection, OfARunNamesWhatIsDamaged) {
  const TemporaryFolder run;
  for (const std::uint64_t v : {20, 100, 500}) {
    auto manifest = trained();
    manifest.version = {v};
    manifest.groups.clear();
    write_small(folder_of(run.path(), {v}), manifest);
  }
  EXPECT_TRUE(inspect_run(run.path()).good());
  write_file(folder_of(run.path(), {100}) / "manifest.json", "{");
  damage(folder_of(run.path(), {500}) / "weights.safetensors");

  auto inspection = inspect_run(run.path());
  EXPECT_FALSE(inspection.good());
  ASSERT_EQ(inspection.checkpoints.size(), 3u);
  EXPECT_EQ(inspection.checkpoints[0].bytes, bytes_in(folder_of(run.path(), {20})));
  EXPECT_EQ(inspection.checkpoints[0].fault, "");
  EXPECT_THAT(inspection.checkpoints[1].fault, HasSubstr("step-00000100/manifest.json"));
  EXPECT_THAT(inspection.checkpoints[2].fault, HasSubstr("step-00000500/weights.safetensors is damaged"));
  EXPECT_FALSE(inspection.finished);
  mark_finished(run.path(), {500}, "done");
  EXPECT_TRUE(inspect_run(run.path()).finished);
}

TEST(Inspection, OfARunAsTextAndJson) {
  RunInspection run{"runs/a", {{{20}, "runs/a/checkpoints/step-00000020", 3'460'000, ""}}, true};
  EXPECT_EQ(run.text(),
            "step       20       3.5 MB  good\n"
            "the run has ended; capstan inspect of one of them shows more\n");
  EXPECT_EQ(run.json().dump(), R"({"ok":true,"path":"runs/a","finished":true,"checkpoints":[{"version":20,)"
                               R"("path":"runs/a/checkpoints/step-00000020","bytes":3460000,"error":""}]})");
  run.checkpoints.push_back({{12'345'678}, "b", 1'234'560'000, "weights.safetensors is damaged"});
  run.finished = false;
  EXPECT_EQ(run.text(),
            "step       20       3.5 MB  good\n"
            "step 12345678    1234.6 MB  weights.safetensors is damaged\n"
            "the run is active or was killed; capstan inspect of one of them shows more\n");
  EXPECT_THAT(run.json().dump(),
              ::testing::StartsWith(R"({"ok":false,"path":"runs/a","finished":false,"checkpoints":[{)"));
}

TEST(Inspection, OfAFileSaysWhatItsTensorsAre) {
  const TemporaryFolder home;
  const auto file = home / "model.safetensors";
  const std::vector<float> values = {-2, 2};
  const TensorView tensors[] = {{"a", {2, 1}, values}};
  write_safetensors(file, tensors);
  auto inspection = inspect_file(file);
  inspection.file = "m.safetensors";
  EXPECT_EQ(inspection.text(),
            "m.safetensors: 2 values in 1 tensor\n\n"
            "tensor                                               shape       mean  deviation\n"
            "a                                                      2x1          0          2\n");
  EXPECT_EQ(inspection.json().dump(),
            R"({"ok":true,"path":"m.safetensors","values":2,)"
            R"("tensors":[{"name":"a","shape":[2,1],"mean":0.0,"deviation":2.0,"not_finite":0}]})");
  write_file(file, contents(file).substr(0, 20));
  EXPECT_THROW(inspect_file(file), UserError);
}

}  // namespace
}  // namespace capstan::checkpoint
