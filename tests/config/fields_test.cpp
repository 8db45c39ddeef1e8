// Walks the table of fields: every entry works in files, in comparisons and as an argument. tests/cli does
// the same for flags and help.

#include "capstan/config/fields.h"

#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <toml++/toml.h>

#include "capstan/config/differences.h"
#include "capstan/config/toml_file.h"
#include "capstan/user_error.h"

#include "support/temporary_folder.h"

namespace capstan::config {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::TemporaryFolder;
using testing::write_file;

// For each field: a value other than its default, other fields that this value needs, and the rule on resume
// (docs/checkpoints.md). A new field needs a line here.
struct Example {
  const char* value;
  OnResume rule;
  std::map<std::string, std::string> beside = {};
};
const std::map<std::string, Example>& examples() {
  using enum OnResume;
  static const std::map<std::string, Example> kExamples = {
      {"task", {"char-lm", kMustMatch, {{"network", "gru"}}}},
      {"program", {"own_model", kMustMatch}},
      {"loss", {"mse", kMustMatch, {{"network", "/models/net.pt"}}}},
      {"module-digest", {"0123456789abcdef", kMustMatch}},
      {"network", {"resnet18", kMustMatch}},
      {"dataset", {"cifar10", kMustMatch}},
      {"data-dir", {"/data/with \"quotes\" and \\ and ü", kSameJob}},
      {"image-size", {"64", kMustMatch}},
      {"augment", {"none", kSameJob}},
      {"normalize", {"train", kMustMatch}},
      {"loader-threads", {"9", kMayDiffer}},
      {"strict", {"true", kSameJob}},
      {"num-classes", {"100", kMustMatch}},
      {"weights", {"/data/first.safetensors", kSameJob}},
      {"batch-size", {"128", kSameJob}},
      {"epochs", {"90", kMayDiffer}},
      {"seed", {"9007199254740993", kMustMatch}},  // more than a double holds
      {"init-seed", {"0", kSameJob}},              // not the same as absent
      {"device", {"cuda", kSameJob}},
      {"threads", {"3", kMayDiffer}},
      {"workers", {"7", kMayDiffer}},
      {"servers", {"3", kMayDiffer}},
      {"strategy", {"batch:2", kSameJob}},
      {"switch", {"500=async", kSameJob}},
      {"max-steps", {"123456789012", kMayDiffer}},
      {"server-threads", {"5", kMayDiffer}},
      {"slow-worker", {"1:3x", kSameJob}},
      {"optimizer", {"adam", kMustMatch}},
      {"lr", {"0.30000000000000004", kSameJob}},
      {"momentum", {"0", kSameJob}},  // not the same as absent
      {"weight-decay", {"1e-05", kSameJob}},
      {"dampening", {"0.5", kSameJob}},
      {"nesterov", {"true", kSameJob}},
      {"beta1", {"0.8", kSameJob, {{"optimizer", "adam"}}}},
      {"beta2", {"0.95", kSameJob, {{"optimizer", "adamw"}}}},
      {"eps", {"1e-07", kSameJob, {{"optimizer", "adagrad"}}}},
      {"alpha", {"0.9", kSameJob, {{"optimizer", "rmsprop"}}}},
      {"lr-decay", {"0.25", kSameJob, {{"optimizer", "adagrad"}}}},
      {"centered", {"true", kSameJob, {{"optimizer", "rmsprop"}}}},
      {"lr-schedule", {"cosine", kSameJob}},
      {"warmup", {"500", kSameJob}},
      {"transport", {"ucx", kMayDiffer}},
      {"token-file", {"/secret/job.token", kMayDiffer}},
      {"listen", {"127.0.0.1:7000", kMayDiffer}},
      {"join-timeout", {"12.5", kMayDiffer}},
      {"checkpoint-every", {"90s", kMayDiffer}},
      {"keep", {"8", kMayDiffer}},
      {"resume", {"auto", kNotCompared}},
      {"evaluator", {"true", kMayDiffer}},
      {"train-dir", {"/runs/here", kNotCompared}},
      {"log-interval", {"0.5", kMayDiffer}},
  };
  return kExamples;
}

const Field& field_of(const std::vector<Field>& table, const std::string& name) {
  for (const auto& field : table)
    if (field.name() == name) return field;
  throw std::runtime_error("no field " + name);
}

void set(JobConfig& config, const std::string& name, const std::string& value) {
  const auto table = fields(config);
  EXPECT_EQ(assign(field_of(table, name).setting, value), "") << name;
}

std::string value_of(JobConfig config, const std::string& name) {
  const auto table = fields(config);
  return text_of(field_of(table, name).setting.value);
}

JobConfig read(const std::string& text) {
  const TemporaryFolder folder;
  write_file(folder / "config.toml", text);
  return load(folder / "config.toml");
}

// The job of an example without its own field, and with it.
JobConfig beside(const Example& example) {
  JobConfig config;
  for (const auto& [name, value] : example.beside) set(config, name, value);
  return config;
}

// The values as a TOML parser reads them, as text.
std::string toml_text(const toml::node_view<const toml::node>& node) {
  if (const auto v = node.value_exact<std::string>()) return *v;
  if (const auto v = node.value_exact<bool>()) return *v ? "true" : "false";
  if (const auto v = node.value_exact<std::int64_t>()) return std::to_string(*v);
  if (const auto v = node.value_exact<double>()) return fmt::format("{}", *v);
  return "nothing";
}

TEST(Fields, EachHasAnExampleHelpAndACommand) {
  JobConfig config;
  std::set<std::string_view> names;
  std::set<std::string> left;
  for (const auto& [name, example] : examples()) left.insert(name);
  for (const auto& field : fields(config)) {
    SCOPED_TRACE(field.name());
    EXPECT_TRUE(names.insert(field.name()).second);
    EXPECT_FALSE(field.setting.help.empty());
    EXPECT_NE(field.setting.group, "Options");
    // Programs set their own name; it is no flag.
    EXPECT_EQ(field.commands == kNoCommand, field.name() == "program");
    if (field.sets.empty())
      EXPECT_EQ(left.erase(std::string(field.name())), 1u);
    else
      EXPECT_NO_THROW(field_of(fields(config), std::string(field.sets)));
  }
  EXPECT_THAT(left, IsEmpty());
}

TEST(Fields, EachRoundTripsThroughAFile) {
  for (const auto& [name, example] : examples()) {
    SCOPED_TRACE(name);
    auto config = beside(example);
    const auto before = value_of(config, name);
    set(config, name, example.value);
    ASSERT_NE(value_of(config, name), before);
    const auto text = config.to_toml();
    const auto table = toml::parse(text);
    if (example.rule == OnResume::kNotCompared) {
      EXPECT_FALSE(table.contains(name)) << "belongs to a process, not to the job";
      continue;
    }
    EXPECT_EQ(toml_text(std::as_const(table)[name]), example.value);
    const auto back = read(text);
    EXPECT_EQ(value_of(back, name), example.value);
    EXPECT_THAT(back.given, Contains(name));
    EXPECT_THAT(differences(config, back), IsEmpty());
    EXPECT_EQ(back.to_toml(), text);
  }
}

TEST(Fields, EachOfADefaultJobIsInItsFile) {
  JobConfig config;
  const auto text = config.to_toml();
  const auto table = toml::parse(text);
  const auto& derived = *table["derived"].as_table();
  // Options of other optimizers than sgd, and of other tasks and networks, have no value.
  const std::set<std::string> foreign = {"beta1",    "beta2", "eps",     "alpha",        "lr-decay",
                                         "centered", "task",  "program", "module-digest"};
  for (const auto& [name, example] : examples()) {
    const bool expected = example.rule != OnResume::kNotCompared && !foreign.contains(name);
    EXPECT_EQ(table.contains(name) + derived.contains(name), expected ? 1 : 0) << name;
  }
  EXPECT_THAT(differences(read(text), config), IsEmpty());
}

TEST(Fields, EachHasTheExpectedRuleOnResume) {
  for (const auto& [name, example] : examples()) {
    SCOPED_TRACE(name);
    auto config = beside(example);
    const auto before = config;
    set(config, name, example.value);
    const auto found = differences(before, config);
    if (example.rule == OnResume::kNotCompared) {
      EXPECT_THAT(found, IsEmpty());
      continue;
    }
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].name, name);
    EXPECT_EQ(found[0].now, example.value);
    EXPECT_EQ(found[0].rule, example.rule);
    EXPECT_EQ(found[0].may_differ(), example.rule != OnResume::kMustMatch);
  }
}

// ---- derived values ----

TEST(TomlFile, KeepsDerivedValuesInTheirOwnTable) {
  JobConfig config;
  config.strategy = "async";
  config.workers = 4;
  const auto table = toml::parse(config.to_toml());
  EXPECT_FALSE(table.contains("lr"));
  EXPECT_EQ(table["derived"]["lr"].value<double>(), 0.005);
  EXPECT_EQ(table["derived"]["momentum"].value<double>(), 0.9);
  EXPECT_EQ(table["derived"]["optimizer"].value<std::string>(), "sgd");
  EXPECT_EQ(table["derived"]["init-seed"].value<int>(), 1);
  auto back = read(config.to_toml());
  EXPECT_EQ(back.optimizer.lr, std::nullopt);
  EXPECT_THAT(back.given, Not(Contains("lr")));
  back.workers = 2;  // derived values follow
  EXPECT_EQ(back.resolved().optimizer.lr, 0.01);
}

TEST(TomlFile, HasAbsolutePaths) {
  JobConfig config;
  config.data_dir = "some/data";
  EXPECT_EQ(toml::parse(config.to_toml())["data-dir"].value<std::string>(),
            (std::filesystem::current_path() / "some/data").string());
  EXPECT_THAT(differences(read(config.to_toml()), config), IsEmpty());
}

TEST(TomlFile, KeepsTextOfAnyCharacters) {
  for (const std::string text : {"it's", "\"quoted\"", "a\\b", "tab\there", "x'''y\nz", "µ ÷ …", "#", ""}) {
    JobConfig config;
    config.slow_workers = text;
    EXPECT_EQ(toml::parse(config.to_toml())["slow-worker"].value<std::string>(), text);
    EXPECT_EQ(read(config.to_toml()).slow_workers, text);
  }
}

// Written by version 0.1.0 at e813412, which wrote every derived value, without a separate table.
constexpr const char* kOldFile = R"(network = 'lenet'
dataset = 'digits'
augment = 'auto'
loader-threads = 1
workers = 3
servers = 1
strategy = 'diloco'
batch-size = 32
epochs = 15
max-steps = 0
seed = 1
device = 'cpu'
threads = 1
server-threads = 2
transport = 'local'
checkpoint-every = '5m'
keep = 3
data-dir = '/data/mnist'
strict = true
init-seed = 4
optimizer = 'adamw'
lr = 0.001
momentum = 0
weight-decay = 0
lr-schedule = 'constant'
warmup = 0
)";

TEST(TomlFile, OfAnEarlierVersionIsRead) {
  const auto config = read(kOldFile);
  EXPECT_NO_THROW(config.validate());
  EXPECT_EQ(config.workers, 3u);
  EXPECT_EQ(config.strategy, "diloco");
  EXPECT_EQ(config.server_threads, 2u);
  EXPECT_EQ(config.transport, "local");
  EXPECT_EQ(config.data_dir, "/data/mnist");
  EXPECT_TRUE(config.strict);
  EXPECT_EQ(config.init_seed, 4u);
  EXPECT_EQ(config.listen, "127.0.0.1:0");
  const auto options = config.optimizer.spec().first;
  EXPECT_EQ(options.kind, optimizer::Kind::kAdamW);
  EXPECT_EQ(options.weight_decay, 0) << "the value of the run, not today's default";
}

TEST(TomlFile, KeepsTheOptimizersOfGroups) {
  JobConfig config;
  config.optimizer.name = "default=sgd,fc*=adam:lr=0.0002:beta1=0.5";
  config.optimizer.momentum = 0.8;
  const auto again = read(config.to_toml());
  EXPECT_EQ(again.optimizer.name, config.optimizer.name);
  EXPECT_EQ(again.optimizer.momentum, 0.8);
  EXPECT_FALSE(again.optimizer.lr);
  EXPECT_EQ(again.to_toml(), config.to_toml());
}

TEST(TomlFile, ErrorsHaveTheLine) {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& text) -> std::string {
    write_file(folder / "c.toml", text);
    try {
      load(folder / "c.toml");
      return "no error";
    } catch (const UserError& wrong) {
      return wrong.what();
    }
  };
  const auto file = (folder / "c.toml").string();
  EXPECT_EQ(error("epochs = 2\nepoch = 3\n"), file + ":2: epoch: unknown key (did you mean epochs?)");
  EXPECT_EQ(error("derived = 3\n"), file + ":1: derived: unknown key (did you mean device?)");
  EXPECT_EQ(error("[other]\nepochs = 3\n"), file + ":1: other: unknown key");
  EXPECT_EQ(error("[epochs]\na = 3\n"),
            file + ":1: epochs: a value must be a string, a number, true or false");
  EXPECT_EQ(error("epochs = 0\n"),
            file + ":1: epochs: should be a whole number from 1 to 1048576, not \"0\"");
}

// ---- changes of a resumed run ----

TEST(Differences, DoNotIncludeDerivedValues) {
  JobConfig before;
  before.strategy = "async";
  auto now = before;
  now.workers = 4;  // so the learning rate and the threads differ
  const auto found = differences(before, now);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].name, "workers");
  EXPECT_EQ(found[0].before, "2");
  EXPECT_EQ(found[0].now, "4");
}

TEST(Differences, AGivenValueIsComparedWithADerivedOne) {
  JobConfig before, now;
  now.optimizer.lr = 0.02;  // sgd's default
  EXPECT_THAT(differences(before, now), IsEmpty());
  EXPECT_THAT(differences(now, before), IsEmpty());
  now.optimizer.lr = 0.5;
  now.given = {"lr"};
  const auto found = differences(before, now);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].before, "0.02");
  EXPECT_EQ(found[0].now, "0.5");
  EXPECT_TRUE(found[0].given);
  EXPECT_FALSE(differences(now, before)[0].given);
}

// All derived values are given, but they are the same.
TEST(Differences, ARunOfAnEarlierVersionIsTheSameJob) {
  JobConfig now;
  now.strategy = "diloco";
  now.workers = 3;
  now.data_dir = "/data/mnist";
  now.strict = true;
  now.init_seed = 4;
  std::vector<std::string> names;
  for (const auto& difference : differences(read(kOldFile), now))
    if (difference.rule != OnResume::kMayDiffer) names.push_back(difference.name);
  EXPECT_THAT(names, ::testing::ElementsAre("weight-decay")) << "adamw has weight decay now";
}

}  // namespace
}  // namespace capstan::config
