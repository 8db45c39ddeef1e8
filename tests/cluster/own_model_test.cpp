// TorchScript modules and data of the user's own, as a user trains them.

#include <cstring>
#include <set>

#include <gmock/gmock.h>

#include "data/images_in_every_form.h"
#include "program.h"

namespace capstan::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

fs::path module_file(const std::string& name) {
  return fs::path(CAPSTAN_SOURCE_DIR) / "tests/reference/modules" / name;
}

Flags train_module(const fs::path& run, const fs::path& file, const Flags& more = {}) {
  auto flags = quiet_train(run, {"--network=" + file.string()});
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

std::string weights_of(const fs::path& run) {
  return text_of(run / "weights.safetensors");
}

// Of the run's last weights: the size of the header, the header, then the tensors.
std::string tensor_bytes(const fs::path& run, const std::string& name) {
  const auto file = weights_of(run);
  std::uint64_t size = 0;
  std::memcpy(&size, file.data(), sizeof size);
  const auto place = Json::parse(file.substr(sizeof size, size)).at(name).at("data_offsets");
  const auto begin = place.at(0).get<std::size_t>(), end = place.at(1).get<std::size_t>();
  EXPECT_LT(begin, end) << name;
  return file.substr(sizeof size + size + begin, end - begin);
}

TEST(TorchScript, TrainsOnSeveralServersAndIsEvaluatedAndInspected) {
  const Folder folder;
  const auto run = folder / "run";
  Program trained(folder, train_module(run, module_file("small.pt"),
                                       {"--epochs=3", "--servers=2", "--checkpoint-every=20", "--keep=9"}));
  ASSERT_EQ(trained.exit_code(), 0) << trained.errors();
  const auto result = trained.json();
  EXPECT_EQ(result["network"], "small.pt");
  EXPECT_GT(result["test_accuracy"], 0.5) << "of ten digits a tenth is luck";

  Program eval(folder, {"eval", "--train-dir=" + run.string(), "--json", "--once"});
  ASSERT_EQ(eval.exit_code(), 0) << eval.errors();
  EXPECT_GE(eval.json()["best"]["test_accuracy"], result["test_accuracy"]);
  Program inspect(folder, {"inspect", (run / "checkpoints/best").string()});
  ASSERT_EQ(inspect.exit_code(), 0) << inspect.errors();
  EXPECT_THAT(inspect.output(), AllOf(HasSubstr("out.weight"), HasSubstr("norm.running_mean")));
}

TEST(TorchScript, AResumedRunEndsWhereAnUninterruptedOneEnds) {
  const Folder folder;
  Program whole(folder, train_module(folder / "whole", module_file("small.pt"), {"--max-steps=60"}));
  ASSERT_EQ(whole.exit_code(), 0) << whole.errors();
  Program first(folder, train_module(folder / "cut", module_file("small.pt"), {"--max-steps=25"}));
  ASSERT_EQ(first.exit_code(), 0) << first.errors();
  Program rest(folder, {"train", "--json", "--resume=" + (folder / "cut").string(), "--max-steps=60"});
  ASSERT_EQ(rest.exit_code(), 0) << rest.errors();
  EXPECT_EQ(rest.json()["steps"], 60);
  for (const auto* name : {"norm.weight", "norm.bias", "out.weight", "out.bias"})
    EXPECT_EQ(tensor_bytes(folder / "cut", name), tensor_bytes(folder / "whole", name)) << name;
  // A resumed worker begins with the mean of all workers' buffers, so those are equal up to rounding.
  EXPECT_NEAR(rest.json()["test_loss"].get<double>(), whole.json()["test_loss"].get<double>(), 1e-5);
}

std::set<std::string> keys_of(const Json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

std::set<std::string> names_in(const fs::path& safetensors) {
  const auto bytes = text_of(safetensors);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  auto names = keys_of(Json::parse(bytes.substr(8, header)));
  names.erase("__metadata__");
  return names;
}

// A module whose layers share tensors: a strict load_state_dict() in Python needs every name.
TEST(TorchScript, TheWeightsOfARunHaveEveryNameOfPyTorchs) {
  const Folder folder;
  std::ofstream table(folder / "d.csv");
  table << "a,b,c,y\n";
  for (int i = 0; i < 40; ++i) table << i % 3 << ',' << i % 5 << ',' << i % 7 << ',' << i % 4 << '\n';
  table.close();
  const auto run = folder / "run", weights = run / "weights.safetensors";
  const auto data = "--dataset=csv:" + (folder / "d.csv").string() + ":target=y";
  Program trained(folder, train_module(run, module_file("tied.pt"), {data, "--servers=2"}));
  ASSERT_EQ(trained.exit_code(), 0) << trained.errors();
  const auto of_pytorch = Json::parse(text_of(module_file("tied.json")));
  EXPECT_EQ(names_in(weights), keys_of(of_pytorch["trained"]));

  const auto exported = folder / "model.safetensors";
  Program inspected(folder, {"inspect", run.string(), "--export=" + exported.string()});
  ASSERT_EQ(inspected.exit_code(), 0) << inspected.errors();
  EXPECT_EQ(text_of(exported), text_of(weights));
  Program again(folder, train_module(folder / "again", module_file("tied.pt"),
                                     {data, "--weights=" + weights.string(), "--max-steps=1"}));
  EXPECT_EQ(again.exit_code(), 0) << again.errors();
}

TEST(TorchScript, ARunResumesOnlyWithItsModule) {
  const Folder folder;
  fs::create_directories(folder / "m");
  const auto file = folder / "m/net.pt";
  fs::copy_file(module_file("small.pt"), file);
  Program first(folder, train_module(folder / "run", file, {"--max-steps=5"}));
  ASSERT_EQ(first.exit_code(), 0) << first.errors();
  fs::copy_file(module_file("other.pt"), file, fs::copy_options::overwrite_existing);
  Program rest(folder, {"train", "--resume=" + (folder / "run").string(), "--max-steps=9"});
  EXPECT_EQ(rest.exit_code(), 2);
  EXPECT_THAT(rest.errors(), HasSubstr("is another module"));
}

TEST(TorchScript, IsEvaluatedOnlyWithItsModule) {
  const Folder folder;
  fs::create_directories(folder / "m");
  const auto file = folder / "m/net.pt";
  fs::copy_file(module_file("small.pt"), file);
  Program trained(folder, train_module(folder / "run", file, {"--max-steps=5"}));
  ASSERT_EQ(trained.exit_code(), 0) << trained.errors();
  fs::copy_file(module_file("other.pt"), file, fs::copy_options::overwrite_existing);
  Program eval(folder, {"eval", "--train-dir=" + (folder / "run").string(), "--once"});
  EXPECT_EQ(eval.exit_code(), 2);
  EXPECT_THAT(eval.errors(), HasSubstr("is another module"));
}

TEST(TorchScript, AWorkerWithAnotherModuleIsRefused) {
  const Folder folder;
  for (const char* name : {"a", "b"}) fs::create_directories(folder / name);
  fs::copy_file(module_file("small.pt"), folder / "a/net.pt");
  fs::copy_file(module_file("other.pt"), folder / "b/net.pt");
  std::ofstream(folder / "token") << std::string(64, 'a') << "\n";
  fs::permissions(folder / "token", fs::perms::owner_read | fs::perms::owner_write);
  const auto token = "--token-file=" + (folder / "token").string();
  Program serve(folder, {"serve", "--workers=1", token, "--network=" + (folder / "a/net.pt").string(),
                         "--train-dir=" + (folder / "run").string(), "--max-steps=20"});
  const auto line = serve.child().read_line(in_seconds(30));
  ASSERT_TRUE(line) << serve.errors();
  const auto address = line->substr(line->rfind(' ') + 1);
  const auto work = [&](const Flags& more) {
    Flags flags = {"work", "--server=" + address, token, "--threads=1"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  };
  Program other(folder, work({"--network=" + (folder / "b/net.pt").string()}));
  EXPECT_EQ(other.exit_code(), 2);
  EXPECT_THAT(other.errors(), HasSubstr("is another module"));
  Program zoo(folder, work({"--network=lenet"}));
  EXPECT_EQ(zoo.exit_code(), 2);
  EXPECT_THAT(zoo.errors(), HasSubstr("--network lenet: the job has net.pt"));
  Program none(folder, work({}));
  EXPECT_EQ(none.exit_code(), 2);
  EXPECT_THAT(none.errors(), HasSubstr("every worker needs the module's file"));
  Program same(folder, work({"--network=" + (folder / "a/net.pt").string()}));
  EXPECT_EQ(same.exit_code(), 0) << same.errors();
  EXPECT_EQ(serve.exit_code(), 0) << serve.errors();
}

TEST(OwnData, ArraysTableAndImageFolderTrainToTheSameBits) {
  const Folder folder;
  write_image_folder(folder / "images");
  write_arrays_and_table(folder / "");
  const auto at = [&](const char* name) { return (folder / name).string(); };
  const std::pair<std::string, Flags> forms[] = {
      {"folder", {"--dataset=imagefolder", "--data-dir=" + at("images"), "--image-size=16"}},
      {"levels", {"--dataset=arrays:" + at("levels.safetensors")}},
      {"floats", {"--dataset=arrays:" + at("floats.safetensors")}},
      {"table", {"--dataset=csv:" + at("cells.csv") + ":target=class:classes:shape=3x16x16"}}};
  for (const auto& [name, data] : forms) {
    auto flags = quiet_train(folder / name, {"--network=mlp", "--epochs=4", "--batch-size=2",
                                             "--normalize=none", "--augment=none"});
    flags.insert(flags.end(), data.begin(), data.end());
    Program trained(folder, flags);
    ASSERT_EQ(trained.exit_code(), 0) << name << ": " << trained.errors();
    EXPECT_EQ(trained.json()["steps"], 12) << name;
    EXPECT_EQ(weights_of(folder / name), weights_of(folder / "folder")) << name;
  }
}

TEST(OwnData, ARunResumesOnlyWithDataOfTheSameEncoding) {
  const Folder folder;
  const auto write = [&](const char* category) {
    std::ofstream table(folder / "d.csv");
    table << "a,kind,y\n";
    for (int i = 0; i < 40; ++i) table << i << "," << (i % 2 == 0 ? "p" : category) << "," << i << "\n";
  };
  write("q");
  Program first(
      folder, train_module(folder / "run", module_file("regression.pt"),
                           {"--dataset=csv:" + (folder / "d.csv").string() + ":target=y", "--max-steps=3"}));
  ASSERT_EQ(first.exit_code(), 0) << first.errors();
  write("z");
  Program rest(folder, {"train", "--resume=" + (folder / "run").string(), "--max-steps=6"});
  EXPECT_EQ(rest.exit_code(), 2);
  EXPECT_THAT(rest.errors(), HasSubstr("describes other data"));
}

TEST(OwnData, ATableTrainsAModuleOnNumbers) {
  const Folder folder;
  std::ofstream table(folder / "d.csv");
  table << "a,b,c,y\n";
  for (int i = 0; i < 200; ++i)
    table << i % 3 << "," << i % 7 << "," << i % 11 << "," << 2 * (i % 3) - i % 7 + 3 * (i % 11) << "\n";
  table.close();
  Program trained(folder,
                  train_module(folder / "run", module_file("regression.pt"),
                               {"--loss=mse", "--dataset=csv:" + (folder / "d.csv").string() + ":target=y",
                                "--epochs=40", "--lr=0.05"}));
  ASSERT_EQ(trained.exit_code(), 0) << trained.errors();
  EXPECT_LT(trained.json()["test_rmse"], 0.1) << "a linear function";
  EXPECT_TRUE(trained.json().contains("test_mae"));
  EXPECT_FALSE(trained.json().contains("test_accuracy"));
}

// A request may come while the module computes, which may take any time: nothing of the job is to be saved
// before it starts, and later the first request ends it after the step.
class EndlessModule : public ::testing::Test {
 protected:
  EndlessModule() {
    std::ofstream table(folder_ / "table.csv");
    table << "a,b,c,y\n";
    for (int i = 0; i < 20; ++i) table << i << ",1,2," << i << "\n";
  }
  Flags flags(const std::string& name, const std::string& strategy) const {
    return train_module(
        folder_ / strategy, module_file(name),
        {"--dataset=csv:" + (folder_ / "table.csv").string() + ":target=y", "--strategy=" + strategy});
  }

  const Folder folder_;
};

TEST_F(EndlessModule, IsInterruptedInTheTrialBeforeTheJob) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Program run(folder_, flags("endless.pt", "sync"));
    ASSERT_TRUE(run.said("computing")) << run.errors();
    run.child().signal(signal);
    EXPECT_EQ(run.exit_code(20), 130) << run.errors();
    EXPECT_EQ(run.json()["error"], "interrupted");
    EXPECT_FALSE(fs::exists(folder_ / "sync"));
  }
}

TEST_F(EndlessModule, IsEndedInAStepByTheSecondRequest) {
  for (const std::string strategy : {"single", "allreduce"}) {
    Program run(folder_, flags("endless_training.pt", strategy));
    ASSERT_TRUE(run.said("computing")) << run.errors();
    const auto children = run.children("train");
    EXPECT_EQ(children.size(), strategy == "allreduce" ? 1u : 0u);
    run.child().signal(SIGINT);
    run.child().signal(SIGTERM);  // equal signals would be one if they are not read in between
    EXPECT_EQ(run.exit_code(20), 130) << run.errors();
    EXPECT_TRUE(all_ended(children));
  }
}

}  // namespace
}  // namespace capstan::testing
