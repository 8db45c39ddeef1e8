// A worker as `work` runs it, for a server on a thread of the test.

#include "capstan/job/work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/base/failure.h"
#include "capstan/checkpoint/safetensors.h"
#include "capstan/job/train.h"
#include "capstan/user_error.h"

#include "job/serving.h"
#include "support/temporary_folder.h"

namespace capstan::job {
namespace {

using ::testing::HasSubstr;
using testing::TemporaryFolder;

class WorkTest : public ::testing::Test {
 protected:
  WorkTest() {
    job_.config.workers = 1;
    job_.config.network = "mlp";
    job_.config.dataset = "synthetic:1x28x28:10:96";
    job_.config.batch_size = 16;
    job_.config.epochs = 2;
    job_.config.seed = 5;
    job_.token = cluster::Token::generate();
  }
  // What a user gives: an address and a token.
  WorkOptions options(const std::string& address) const {
    WorkOptions o;
    o.servers = {address};
    o.token = job_.token;
    o.config.transport = "local";
    o.config.threads = o.config.loader_threads = 1;
    o.connect_timeout = 1;
    return o;
  }
  // The code and the message with which it fails.
  std::pair<int, std::string> failure(const WorkOptions& o) {
    try {
      (void)work(o, {events_, stop_});
    } catch (const Failure& failure) {
      return {failure.code(), failure.what()};
    } catch (const UserError& error) {
      return {kWrongUsage, error.what()};
    }
    return {kSuccess, ""};
  }

  ServeOptions job_;
  const TemporaryFolder folder_;
  RecordedEvents events_;
  FakeStop stop_;
};

TEST_F(WorkTest, TrainsWhatTheServerSays) {
  Serving server(job_);
  auto o = options(server.address());
  o.save = folder_ / "worker.safetensors";
  const auto result = work(o, {events_, stop_});
  EXPECT_FALSE(result.interrupted);
  EXPECT_EQ(result.rank, 0u);
  EXPECT_EQ(result.worked.steps, 2 * 96u / 16);
  EXPECT_EQ(server.result().status.version.value, 2 * 96u / 16);
  // One process without servers, which was given the same by hand.
  auto single = job_.config;
  single.strategy = "single";
  single.threads = single.loader_threads = 1;
  single.train_dir = folder_ / "run";
  const Environment environment{events_, stop_};
  (void)train(prepare(single, environment), {cluster::Token::generate(), true, {false, 60}}, environment);
  const auto expected = checkpoint::read_safetensors(folder_ / "run/weights.safetensors");
  const auto saved = checkpoint::read_safetensors(o.save);
  ASSERT_EQ(saved.tensors.size(), expected.tensors.size());
  for (std::size_t i = 0; i < saved.tensors.size(); ++i) {
    EXPECT_EQ(saved.tensors[i].name, expected.tensors[i].name);
    EXPECT_EQ(saved.tensors[i].values, expected.tensors[i].values) << saved.tensors[i].name;
  }
}

TEST_F(WorkTest, SavesATensorUnderEveryOfItsNames) {
  std::string rows = "a,b,c,y\n";
  for (int i = 0; i < 20; ++i) rows += std::to_string(i % 3) + ",1," + std::to_string(i) + ",0.5\n";
  testing::write_file(folder_ / "d.csv", rows);
  job_.config.network = CAPSTAN_SOURCE_DIR "/tests/reference/modules/tied.pt";
  job_.config.dataset = "csv:" + (folder_ / "d.csv").string() + ":target=y";
  Serving server(job_);
  auto o = options(server.address());
  o.config.network = job_.config.network;
  o.config.dataset = job_.config.dataset;
  o.save = folder_ / "worker.safetensors";
  (void)work(o, {events_, stop_});
  const checkpoint::SafetensorsReader saved(o.save);
  EXPECT_EQ(saved.tensors(), 14u) << "as many as in tied.json";
  ASSERT_TRUE(saved.read("decoder.weight"));
  EXPECT_EQ(saved.read("decoder.weight")->values, saved.read("encoder.weight")->values);
}

TEST_F(WorkTest, AFlagThatContradictsTheJobIsRefusedByName) {
  Serving server(job_);
  auto o = options(server.address());
  o.config.epochs = 3;
  o.config.seed = 5;
  o.config.given = {"epochs", "seed"};
  const auto [code, message] = failure(o);
  EXPECT_EQ(code, kWrongUsage);
  EXPECT_THAT(message, HasSubstr("--epochs 3: the job has 2"));
  EXPECT_THAT(message, ::testing::Not(HasSubstr("--seed")));
  EXPECT_TRUE(server.is_running()) << "the job waits for its worker";
}

TEST_F(WorkTest, AWrongTokenIsRefused) {
  Serving server(job_);
  auto o = options(server.address());
  o.token = cluster::Token::generate();
  const auto [code, message] = failure(o);
  EXPECT_EQ(code, kWrongUsage);
  EXPECT_THAT(message, HasSubstr("wrong job token"));
}

TEST_F(WorkTest, AnAddressWithoutAServerIsNamed) {
  auto o = options("127.0.0.1:1");
  o.connect_timeout = 0.1;
  const auto [code, message] = failure(o);
  EXPECT_EQ(code, kLost);
  EXPECT_THAT(message, HasSubstr("127.0.0.1:1"));
}

TEST_F(WorkTest, AFileThatCannotTakeTheWeightsIsRefusedFirst) {
  auto o = options("127.0.0.1:1");
  o.save = folder_ / "none" / "weights.safetensors";
  EXPECT_THAT(failure(o).second, HasSubstr("no such folder"));
  o.save = folder_ / "weights.txt";
  EXPECT_THAT(failure(o).second, HasSubstr("weights.txt"));
}

TEST(WorkResult, OfAnInterruptedWorkerIsNotOk) {
  WorkResult result;
  EXPECT_THAT(result.json(), HasSubstr(R"("ok":true)"));
  result.interrupted = true;
  EXPECT_THAT(result.json(), HasSubstr(R"("ok":false)"));
  EXPECT_THAT(result.json(), HasSubstr(R"("error":"interrupted")"));
}

}  // namespace
}  // namespace capstan::job
