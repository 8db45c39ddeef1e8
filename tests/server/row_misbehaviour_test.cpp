// Wrong rows from a worker: its connection ends, and nothing else.

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/raw_peer.h"
#include "server/row_play.h"

namespace capstan {
namespace {

using ::testing::HasSubstr;
using testing::LoopbackCluster;
using testing::RawPeer;
using namespace testing::row_play;
using Rows = std::vector<std::uint32_t>;

wire::Join worker_join(std::uint32_t rank) {
  wire::Join join;
  join.index = rank;
  join.incarnation = {1};
  join.layout = wire::to_wire(four_tensors());
  return join;
}

// The dense tensors of the whole model, with the gap behind each.
constexpr std::size_t kDense = 1920 + 16;

// The payload of a push to a single server, written by hand.
std::vector<float> payload(const Rows& emb, const Rows& bag, std::size_t values) {
  std::vector<float> out(kDense, 0.5f);
  for (const auto* rows : {&emb, &bag}) {
    for (const auto row : *rows) {
      float bits;
      std::memcpy(&bits, &row, sizeof bits);
      out.push_back(bits);
    }
  }
  out.resize(out.size() + values, 0.5f);
  return out;
}

wire::Push push_of(const Rows& counts) {
  wire::Push push{{1}, {1}, {1}, {1}, {0}, 8};
  push.rows = {0, counts, 0, 0};
  return push;
}

// The first worker that is ready is asked for the initial weights.
void begin(RawPeer& peer) {
  peer.send(wire::Pull{});
  ASSERT_TRUE(peer.next<wire::SendWeights>());
  peer.send(wire::Initialize{}, initial_weights());
}

// One of two workers pushes something wrong; the other trains without it.
class WrongRows : public ::testing::Test {
 protected:
  void expect_refused(const wire::Push& push, const std::vector<float>& floats, const std::string& reason) {
    LoopbackCluster cluster(false, job(2, 1, "sync"));
    RawPeer peer(cluster.network(), "0");
    ASSERT_TRUE(peer.join(cluster.token(), worker_join(1)));
    begin(peer);
    auto honest = std::async(std::launch::async, [&] { return run_worker(cluster, 0, 4); });
    ASSERT_TRUE(peer.next<wire::Weights>());
    peer.send(push, floats);
    EXPECT_EQ(peer.wait_closed(), reason);
    const auto history = honest.get();
    expect_finished(cluster, replay({history}));
    EXPECT_EQ(cluster.report().workers[1].state, wire::WorkerState::kLost);
    EXPECT_EQ(cluster.report().workers[1].pushes, 0u);
  }
};

TEST_F(WrongRows, ThatAreNotSorted) {
  expect_refused(push_of({2, 0}), payload({7, 3}, {}, 14), "row 3 behind row 7");
  expect_refused(push_of({2, 0}), payload({7, 7}, {}, 14), "row 7 behind row 7");
}
TEST_F(WrongRows, ThatDoNotExist) {
  expect_refused(push_of({1, 0}), payload({300}, {}, 7), "row 300 of a tensor whose rows 0 to 299 are here");
  expect_refused(push_of({0, 2}), payload({}, {0, 0xffffffff}, 26),
                 "row 4294967295 of a tensor whose rows 0 to 89 are here");
}
TEST_F(WrongRows, ThatAreTooMany) {
  expect_refused(push_of({301, 0}), payload({1}, {}, 7),
                 "a push with 301 rows of a tensor of which 300 are here");
  expect_refused(push_of({0, 0xffffffff}), payload({}, {1}, 13),
                 "a push with 4294967295 rows of a tensor of which 90 are here");
}
TEST_F(WrongRows, OfOtherTensors) {
  expect_refused(push_of({1}), payload({1}, {}, 7), "a push with rows of 1 tensors where phase 0 has 2");
  expect_refused(push_of({1, 1, 1}), payload({1}, {1}, 20),
                 "a push with rows of 3 tensors where phase 0 has 2");
}
TEST_F(WrongRows, WithoutTheirValues) {
  expect_refused(push_of({2, 1}), payload({1, 5}, {3}, 26), "104 bytes of values for rows that have 108");
  expect_refused(push_of({2, 1}), payload({1, 5}, {3}, 28),
                 "a push with a payload of 7868 bytes where its rows have 7756 to 7864");
  expect_refused(push_of({2, 1}), {}, "a push with a payload of 0 bytes where its rows have 7756 to 7864");
}
TEST_F(WrongRows, ThatAreMissing) {
  auto push = push_of({});
  push.rows.reset();
  expect_refused(push, std::vector<float>(four_tensors().size()),
                 "a push without rows, of which this server has some");
}

TEST(WrongRowsOnOneHost, AreRefusedToo) {
  LoopbackCluster cluster(true, job(2, 1, "sync"));
  RawPeer peer(cluster.network(), "0");
  ASSERT_TRUE(peer.join(cluster.token(), worker_join(1)));
  const auto arena =
      transport::Segment::create(four_tensors().size() * sizeof(float), transport::Segment::PeerMay::kRead);
  peer.send(wire::Share{wire::Arena::kGradients}, arena);
  begin(peer);
  auto honest = std::async(std::launch::async, [&] { return run_worker(cluster, 0, 4); });
  ASSERT_TRUE(peer.next<wire::Weights>());
  auto numbers = payload({300}, {}, 0);
  numbers.erase(numbers.begin(), numbers.begin() + kDense);
  peer.send(push_of({1, 0}), numbers);
  EXPECT_EQ(peer.wait_closed(), "row 300 of a tensor whose rows 0 to 299 are here");
  expect_finished(cluster, replay({honest.get()}));
}

TEST(WrongRowsOfADenseModel, AreRefused) {
  auto options = job(1, 1, "sync");
  options.optimizer = optimizer::Options();
  LoopbackCluster cluster(false, options);
  RawPeer peer(cluster.network(), "0");
  auto join = worker_join(0);
  for (auto& tensor : join.layout) tensor.sparse = false;
  ASSERT_TRUE(peer.join(cluster.token(), join));
  begin(peer);
  ASSERT_TRUE(peer.next<wire::Weights>());
  auto push = push_of({1, 1});
  push.worker = {0};
  peer.send(push, std::vector<float>(four_tensors().size()));
  EXPECT_EQ(peer.wait_closed(), "a push with rows, of which this server has none");
}

TEST(WrongRowTensors, AreRefusedWhenAWorkerJoins) {
  LoopbackCluster cluster(false, job(1, 1, "sync"));
  auto join = worker_join(0);
  join.layout[0].dims = {300, 7, 1};
  const auto join_and_refuse = [&](const wire::Join& wrong) {
    RawPeer peer(cluster.network(), "0");
    EXPECT_TRUE(peer.shake_hands(cluster.token()));
    peer.send(wrong);
    return peer.wait_closed().value_or("");
  };
  EXPECT_EQ(
      join_and_refuse(join),
      "tensor emb has sparse gradients, which need two dimensions and at most 2^32 - 1 rows; it is 300x7x1");
  auto dense = worker_join(0);
  dense.layout[0].sparse = false;
  EXPECT_THAT(join_and_refuse(dense),
              HasSubstr("sparse-adam is for tensors with sparse gradients; emb has dense"));
  expect_finished(cluster, replay({run_worker(cluster, 0, 2)}));
}

TEST(WrongRowTensors, AreRefusedWithStrategiesAndOptimizersThatCannotUseThem) {
  const auto refused = [](const std::string& strategy, const std::string& optimizer) {
    auto options = job(1, 1, strategy);
    options.optimizer = optimizer::parse_spec(optimizer, optimizer::defaults);
    LoopbackCluster cluster(false, options);
    RawPeer peer(cluster.network(), "0");
    EXPECT_TRUE(peer.shake_hands(cluster.token()));
    peer.send(worker_join(0));
    return peer.wait_closed().value_or("");
  };
  EXPECT_THAT(refused("sync", "adam"), HasSubstr("emb has sparse gradients, which adam cannot use"));
  EXPECT_EQ(
      refused("dc-asgd", "sgd"),
      "--strategy: emb has sparse gradients, which dc-asgd:0.04 cannot use; give it sync, async, batch, ssp "
      "or backup, as in default=dc-asgd:0.04,emb=async");
  EXPECT_THAT(refused("sync;5=dc-asgd-a", "sgd"), HasSubstr("which dc-asgd-a:0.04 cannot use"));
  EXPECT_THAT(refused("default=sync,bag=dc-asgd", "sgd"),
              HasSubstr("bag has sparse gradients, which dc-asgd"));
}

}  // namespace
}  // namespace capstan
