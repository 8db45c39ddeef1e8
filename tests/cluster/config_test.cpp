// The configuration of a run, as its processes have it.

#include <gmock/gmock.h>

#include "capstan/config/fields.h"
#include "cluster/program.h"

namespace capstan {
namespace {

using testing::Folder;
using ::testing::HasSubstr;
using testing::Program;

TEST(Configuration, IsWholeInTheDryRun) {
  const Folder folder;
  // Of optimizers, each with its own options, rmsprop and adam have most.
  for (const std::string optimizer : {"rmsprop", "adam"}) {
    Program text(folder, {"train", "--dry-run", "--optimizer=" + optimizer});
    Program json(folder, {"train", "--dry-run", "--json", "--optimizer=" + optimizer});
    ASSERT_EQ(text.exit_code(), 0) << text.errors();
    ASSERT_EQ(json.exit_code(), 0) << json.errors();
    const auto kind = optimizer::parse_kind(optimizer);
    std::set<std::string_view> foreign = {"task", "program", "module-digest"};  // of other jobs
    optimizer::visit_options(
        [&](const optimizer::OptionInfo& option, const auto&) {
          if (!option.belongs_to(kind)) foreign.insert(option.name);
        },
        optimizer::Options{});
    config::JobConfig config;
    for (const auto& field : config::fields(config)) {
      if (!field.is_kept() || foreign.contains(field.name())) continue;
      const auto line = "\n" + std::string(field.name()) + " = ";
      EXPECT_THAT("\n" + text.output(), HasSubstr(line));
      EXPECT_THAT("\n" + json.json()["config"].get<std::string>(), HasSubstr(line));
    }
  }
}

TEST(Configuration, OfServersAndWorkersIsTheRunsFile) {
  const Folder folder;
  const auto run = folder / "run";
  Program train(folder, testing::quiet_train(run, {"--epochs=100000", "--servers=2", "--batch-size=16",
                                                   "--slow-worker=1:2x"}));
  ASSERT_TRUE(train.said("epoch 1 ")) << train.errors();
  const auto file = "--config=" + (run / "config.toml").string() + " ";
  EXPECT_EQ(train.children(" serve " + file).size(), 2u);
  EXPECT_EQ(train.children(" work " + file).size(), 2u);
  EXPECT_EQ(train.children("--batch-size").size(), 0u);
  EXPECT_EQ(train.children("--workers").size(), 0u);
  train.child().signal(SIGINT);
  EXPECT_EQ(train.exit_code(), 130) << train.errors();
}

}  // namespace
}  // namespace capstan
