#include "capstan/lab/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Plan example() {
  Plan plan;
  plan.trainers = 3;
  plan.servers = 0;
  plan.trainer = "ssp:2";
  plan.server = "";
  plan.data = "a \"quoted\" näme";
  plan.model = "M";
  plan.hook = "";
  plan.criterion = "l1";
  plan.backend = "multi";
  plan.epochs = 4;
  plan.batch_size = 5;
  plan.seed = 9'007'199'254'740'993;  // has no double
  plan.max_steps = 6;
  plan.optimizer = "sgd:momentum=0.9";
  plan.lr = 0.1;
  plan.rpc_timeout = 1.5;
  plan.threads = 7;
  plan.master_addr = "localhost";
  plan.master_port = 29500;
  plan.data_config = "/a b/d.json";
  plan.model_config = "/m";
  plan.trainer_config = "/t";
  plan.server_config = "/s";
  plan.data_dir = "/dir";
  plan.save = "/save";
  plan.timers = false;
  return plan;
}

TEST(Plan, ItsTextHasEveryMember) {
  const auto back = Plan::parse(example().to_json().dump());
  EXPECT_EQ(back.trainers, 3u);
  EXPECT_EQ(back.servers, 0u);
  EXPECT_EQ(back.trainer, "ssp:2");
  EXPECT_EQ(back.server, "");
  EXPECT_EQ(back.data, "a \"quoted\" näme");
  EXPECT_EQ(back.model, "M");
  EXPECT_EQ(back.hook, "");
  EXPECT_EQ(back.criterion, "l1");
  EXPECT_EQ(back.backend, "multi");
  EXPECT_EQ(back.epochs, 4u);
  EXPECT_EQ(back.batch_size, 5u);
  EXPECT_EQ(back.seed, 9'007'199'254'740'993u);
  EXPECT_EQ(back.max_steps, 6u);
  EXPECT_EQ(back.optimizer, "sgd:momentum=0.9");
  EXPECT_EQ(back.lr, 0.1);
  EXPECT_EQ(back.rpc_timeout, 1.5);
  EXPECT_EQ(back.threads, 7u);
  EXPECT_EQ(back.master_addr, "localhost");
  EXPECT_EQ(back.master_port, 29500);
  EXPECT_EQ(back.data_config, "/a b/d.json");
  EXPECT_EQ(back.model_config, "/m");
  EXPECT_EQ(back.trainer_config, "/t");
  EXPECT_EQ(back.server_config, "/s");
  EXPECT_EQ(back.data_dir, "/dir");
  EXPECT_EQ(back.save, "/save");
  EXPECT_FALSE(back.timers);
}

TEST(Plan, WrongTextIsRefused) {
  const auto with = [](const std::string& key, const nlohmann::json& value) {
    auto json = nlohmann::json::parse(example().to_json().dump());
    json[key] = value;
    return json.dump();
  };
  EXPECT_THAT([&] { (void)Plan::parse("[]"); }, ThrowsMessage<UserError>(HasSubstr("not a JSON object")));
  EXPECT_THAT([&] { (void)Plan::parse("{"); }, ThrowsMessage<UserError>(HasSubstr("not a JSON object")));
  EXPECT_THAT([&] { (void)Plan::parse("{}"); }, ThrowsMessage<UserError>(HasSubstr("no member ntrainer")));
  EXPECT_THAT([&] { (void)Plan::parse(with("other", 1)); }, ThrowsMessage<UserError>(HasSubstr("other")));
  EXPECT_THAT([&] { (void)Plan::parse(with("ntrainer", 129)); },
              ThrowsMessage<UserError>(HasSubstr("from 0 to 128, not 129")));
  EXPECT_THAT([&] { (void)Plan::parse(with("epochs", -1)); }, ThrowsMessage<UserError>(HasSubstr("epochs")));
}

}  // namespace
}  // namespace capstan::lab
