// Averages through real servers and clients, against plain arithmetic.

#include <gtest/gtest.h>

#include "capstan/client/connector.h"
#include "capstan/transport/listeners.h"

#include "averaging/play.h"

namespace capstan {
namespace {

using averaging::Shape;
using testing::averaging_job;
using testing::AveragingCluster;
using testing::Play;

std::vector<Shape> random_buckets(std::mt19937_64& random) {
  std::vector<Shape> buckets(1 + random() % 4);
  for (auto& shape : buckets) {
    if (random() % 2 == 0) {
      shape = {1 + random() % 6000, 0};
    } else {
      const auto columns = 1 + random() % 40;
      shape = {columns * (1 + random() % 90), columns};
    }
  }
  return buckets;
}

// Random buckets, trainers and servers; threads decide the order of arrival.
void expect_right_averages(bool share_memory, const testing::MakeRule& rule, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const Play play{seed, 1 + static_cast<std::uint32_t>(random() % 4), 4, random_buckets(random)};
  auto options = averaging_job(play.trainers, 1 + static_cast<std::uint32_t>(random() % 3));
  options.threads = 1 + static_cast<unsigned>(random() % 3);
  options.inline_elements = random() % 2 == 0 ? 0 : averaging::Executor::kInlineElements;
  AveragingCluster cluster(share_memory, options, rule);
  SCOPED_TRACE(fmt::format("seed {}, {} trainers, {} servers", seed, play.trainers, options.servers));
  testing::expect_averages(testing::train_all(cluster, play), play);
}

TEST(Averages, AreThoseOfPlainArithmeticInSharedMemory) {
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    expect_right_averages(true, testing::on_arrival(), seed);
    expect_right_averages(true, testing::in_rank_order(), 100 + seed);
  }
}

TEST(Averages, AreThoseOfPlainArithmeticAsPayloads) {
  for (std::uint64_t seed = 200; seed < 225; ++seed) {
    expect_right_averages(false, testing::on_arrival(), seed);
    expect_right_averages(false, testing::in_rank_order(), 100 + seed);
  }
}

// More servers than pages: some have no part of a bucket.
TEST(Averages, OfSmallBucketsOnManyServers) {
  const Play play{7, 2, 3, {{3, 0}, {2, 1}, {2500, 0}}};
  AveragingCluster cluster(true, averaging_job(2, 5), testing::on_arrival());
  testing::expect_averages(testing::train_all(cluster, play), play);
}

// Counts the gradients that have arrived.
class Counting final : public averaging::Rule {
 public:
  Counting(std::unique_ptr<averaging::Rule> inner, std::atomic<std::uint32_t>& arrived)
      : inner_(std::move(inner)), arrived_(arrived) {}
  void process_gradient(averaging::Slot& slot, std::uint32_t trainer, const averaging::Gradient& g) override {
    inner_->process_gradient(slot, trainer, g);
    ++arrived_;
    arrived_.notify_all();
  }
  void average(averaging::Slot& slot) override { inner_->average(slot); }

 private:
  const std::unique_ptr<averaging::Rule> inner_;
  std::atomic<std::uint32_t>& arrived_;
};

// Sums of numbers of very different size depend on their order.
TEST(Averages, InRankOrderDoNotDependOnTheOrderOfArrival) {
  const float values[] = {3e8f, 3.0f, -3e8f};
  for (const auto columns : {std::uint64_t{0}, std::uint64_t{1}}) {
    std::optional<float> first;
    std::vector<std::uint32_t> arrival{0, 1, 2};
    do {
      std::atomic<std::uint32_t> arrived = 0;
      AveragingCluster cluster(true, averaging_job(3), [&] {
        return std::make_unique<Counting>(testing::in_rank_order()(), arrived);
      });
      std::vector<std::unique_ptr<averaging::AveragingClient>> clients;
      for (std::uint32_t rank = 0; rank < 3; ++rank) clients.push_back(cluster.join(rank, {{1, columns}}));
      std::uint32_t sent = 0;
      for (const auto rank : arrival) {
        auto& client = *clients[rank];
        client.next_batch();
        client.bucket(0)[0] = values[rank];
        client.send(0, columns > 0 ? 1 : 0);
        arrived.wait(sent++);
      }
      const auto average = clients[0]->wait(0);
      ASSERT_TRUE(average);
      if (!first) first = average->values[0];
      EXPECT_EQ(average->values[0], *first);
      for (auto& client : clients) EXPECT_TRUE(client->wait_all());
      for (auto& client : clients) client->leave();
    } while (std::ranges::next_permutation(arrival).found);
  }
}

// The address of a dense average is fixed, and with one server its memory is the server's own.
TEST(Averages, StayAtTheirAddress) {
  for (const std::uint32_t servers : {1u, 3u}) {
    AveragingCluster cluster(true, averaging_job(1, servers), testing::on_arrival());
    const auto client = cluster.join(0, {{5000, 0}, {64, 8}});
    const auto* at = client->average(0).values.data();
    for (int batch = 0; batch < 3; ++batch) {
      client->next_batch();
      std::ranges::fill(client->bucket(0), static_cast<float>(batch));
      client->send(0);
      client->rows(1)[0] = 7;
      client->send(1, 1);
      const auto average = client->wait(0);
      ASSERT_TRUE(average);
      EXPECT_EQ(average->values.data(), at);
      EXPECT_EQ(average->values.size(), 5000u);
      EXPECT_EQ(std::ranges::count(average->values, static_cast<float>(batch)), 5000);
      ASSERT_TRUE(client->wait(1));
      EXPECT_EQ(client->average(1).rows.size(), 1u);
    }
    client->leave();
  }
}

TEST(Runs, FollowEachOtherOnTheSameServers) {
  AveragingCluster cluster(true, averaging_job(2, 2), testing::on_arrival());
  for (std::uint64_t run = 0; run < 3; ++run) {
    const Play play{run, 2, 3, {{100 + run, 0}, {30, 3}}};  // also with other buckets
    testing::expect_averages(testing::train_all(cluster, play), play);
    EXPECT_TRUE(cluster.on_server(0, [](auto& s) { return s.is_finished(); }));
  }
}

TEST(Runs, OfTheSameTrainersBeginAfterAReset) {
  AveragingCluster cluster(true, averaging_job(1), testing::on_arrival());
  const auto client = cluster.join(0, {{8, 0}});
  const Play play{3, 1, 2, {{8, 0}}};
  testing::expect_averages({testing::train(*client, play)}, play);
  cluster.on_server(0, [](auto& s) { return s.reset_state(), true; });
  testing::expect_averages({testing::train(*client, play)}, play, 2);
  client->leave();
}

// As processes of one host and of several do: over the transports of listeners.
class AveragesOverTransports : public ::testing::TestWithParam<client::TransportChoice> {};

TEST_P(AveragesOverTransports, AreRight) {
  const auto token = cluster::Token::generate();
  const Play play{11, 2, 3, {{300000, 0}, {4000, 8}, {17, 0}}};
  std::promise<std::string> address;
  std::atomic<bool> done = false;
  std::thread server_thread([&] {
    transport::EventLoop loop;
    auto options = averaging_job(2);
    options.members.token = token;
    averaging::AveragingServer* server = nullptr;
    transport::Listeners listeners(loop, {.address = "127.0.0.1:0"},
                                   [&](auto connection) { server->accept(std::move(connection)); });
    averaging::AveragingServer real(loop, options, testing::on_arrival()(), nullptr, testing::silent_log());
    server = &real;
    address.set_value(listeners.address());
    while (!done) loop.run_once(SteadyClock::now() + std::chrono::milliseconds(20));
  });
  const auto at = address.get_future().get();
  std::vector<testing::Received> received(2);
  std::vector<std::thread> trainers;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    trainers.emplace_back([&, rank] {
      averaging::ClientOptions options;
      options.links.servers = {at};
      options.links.token = token;
      options.links.index = rank;
      options.buckets = play.buckets;
      auto client = averaging::AveragingClient::join(options, client::make_connector(GetParam(), {at}));
      ASSERT_TRUE(client) << client.status().message();
      received[rank] = testing::train(**client, play);
      (*client)->leave();
    });
  }
  for (auto& thread : trainers) thread.join();
  done = true;
  server_thread.join();
  testing::expect_averages(received, play);
}
INSTANTIATE_TEST_SUITE_P(All, AveragesOverTransports,
                         ::testing::Values(client::TransportChoice::kLocal, client::TransportChoice::kUcx));

}  // namespace
}  // namespace capstan
