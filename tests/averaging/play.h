#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <thread>
#include <vector>

#include "averaging/cluster.h"

// Trainers with random gradients, and their averages by plain arithmetic.
namespace capstan::testing {

// A gradient or an average as rows of a map; a dense bucket has one row 0.
using Rows = std::map<std::uint32_t, std::vector<float>>;

inline Rows rows_of(const averaging::Gradient& gradient, std::size_t columns) {
  if (columns == 0) return {{0, {gradient.values.begin(), gradient.values.end()}}};
  Rows rows;
  for (std::size_t i = 0; i < gradient.rows.size(); ++i) {
    const auto values = gradient.values.subspan(i * columns, columns);
    rows[gradient.rows[i]] = {values.begin(), values.end()};
  }
  return rows;
}

// The gradient of a trainer in a batch, the same on every call.
inline Rows gradient_of(std::uint64_t seed, std::uint32_t rank, std::uint64_t batch, std::size_t bucket,
                        const averaging::Shape& shape) {
  std::mt19937_64 random(derive_seed({seed, rank, batch, bucket}));
  std::normal_distribution<float> normal;
  Rows rows;
  if (!shape.is_sparse()) {
    rows[0].resize(shape.elements);
  } else {
    const auto keep = random() % 5;  // of 4: no row, some, all
    for (std::uint32_t r = 0; r < shape.rows(); ++r)
      if (random() % 4 < keep) rows[r].resize(shape.columns);
  }
  for (auto& [number, values] : rows)
    for (auto& value : values) value = normal(random);
  return rows;
}

// In double, so that the order does not matter. Beside each value, the sum of magnitudes.
struct Reference {
  std::map<std::uint32_t, std::vector<std::pair<double, double>>> rows;
};
inline Reference average_of(const std::vector<Rows>& gradients) {
  Reference reference;
  const auto n = static_cast<double>(gradients.size());
  for (const auto& gradient : gradients) {
    for (const auto& [number, values] : gradient) {
      auto& sums = reference.rows[number];
      sums.resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        sums[i].first += static_cast<double>(values[i]) / n;
        sums[i].second += std::abs(static_cast<double>(values[i])) / n;
      }
    }
  }
  return reference;
}

inline bool matches(const Rows& average, const Reference& reference) {
  if (average.size() != reference.rows.size()) return false;
  for (const auto& [number, expected] : reference.rows) {
    const auto found = average.find(number);
    if (found == average.end() || found->second.size() != expected.size()) return false;
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (std::abs(static_cast<double>(found->second[i]) - expected[i].first) >
          1e-6 * expected[i].second + 1e-30)
        return false;
  }
  return true;
}

struct Play {
  std::uint64_t seed = 1;
  std::uint32_t trainers = 2;
  std::uint64_t batches = 4;
  std::vector<averaging::Shape> buckets;
};

// What one trainer received: by batch and bucket.
struct Received {
  std::vector<std::vector<Rows>> averages;
  Status failure;
};

inline std::size_t write(averaging::AveragingClient& client, std::size_t bucket, std::size_t columns,
                         const Rows& gradient) {
  std::size_t n = 0;
  const auto values = client.bucket(bucket);
  for (const auto& [number, row] : gradient) {
    if (columns > 0) client.rows(bucket)[n] = number;
    std::copy(row.begin(), row.end(), values.begin() + static_cast<std::ptrdiff_t>(n++ * row.size()));
  }
  return columns > 0 ? n : 0;
}

// One trainer: sends the buckets of each batch in a random order, one of them from another thread, and waits
// in another one.
inline Received train(averaging::AveragingClient& client, const Play& play) {
  Received received;
  std::mt19937_64 random(derive_seed({play.seed, client.rank().value}));
  std::vector<std::size_t> order(play.buckets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::uint64_t b = 0; b < play.batches; ++b) {
    const auto batch = client.next_batch();
    const auto send = [&](std::size_t bucket) {
      const auto& shape = play.buckets[bucket];
      client.send(bucket, write(client, bucket, shape.columns,
                                gradient_of(play.seed, client.rank().value, batch, bucket, shape)));
    };
    std::shuffle(order.begin(), order.end(), random);
    std::thread other(send, order[0]);
    for (std::size_t i = 1; i < order.size(); ++i) send(order[i]);
    other.join();
    std::shuffle(order.begin(), order.end(), random);
    auto& averages = received.averages.emplace_back(play.buckets.size());
    for (const auto bucket : order) {
      const auto average = client.wait(bucket);
      if (!average) {
        received.failure = average.status();
        return received;
      }
      averages[bucket] = rows_of(*average, play.buckets[bucket].columns);
    }
  }
  return received;
}

// All trainers as threads; they leave at the end.
inline std::vector<Received> train_all(
    AveragingCluster& cluster, const Play& play,
    const std::function<client::Connector(std::uint32_t)>& connector = {}) {
  std::vector<Received> received(play.trainers);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < play.trainers; ++rank) {
    threads.emplace_back([&, rank] {
      auto client = averaging::AveragingClient::join(cluster.client_options(rank, play.buckets),
                                                     connector ? connector(rank) : cluster.connector());
      if (!client) {
        received[rank].failure = client.status();
        return;
      }
      received[rank] = train(**client, play);
      (*client)->leave();
    });
  }
  for (auto& thread : threads) thread.join();
  return received;
}

// Every trainer has the right averages, bit for bit the same as the others'.
inline void expect_averages(const std::vector<Received>& received, const Play& play,
                            std::uint64_t first = 0) {
  for (const auto& one : received) {
    ASSERT_TRUE(one.failure) << one.failure.message();
    ASSERT_EQ(one.averages.size(), play.batches);
  }
  for (std::uint64_t batch = 0; batch < play.batches; ++batch) {
    for (std::size_t b = 0; b < play.buckets.size(); ++b) {
      std::vector<Rows> gradients;
      for (std::uint32_t rank = 0; rank < play.trainers; ++rank)
        gradients.push_back(gradient_of(play.seed, rank, first + batch, b, play.buckets[b]));
      EXPECT_TRUE(matches(received[0].averages[batch][b], average_of(gradients)))
          << "batch " << batch << ", bucket " << b;
      for (const auto& other : received)
        EXPECT_TRUE(other.averages[batch][b] == received[0].averages[batch][b])
            << "batch " << batch << ", bucket " << b;
    }
  }
}

inline averaging::ServerOptions averaging_job(std::uint32_t trainers, std::uint32_t servers = 1) {
  averaging::ServerOptions options;
  options.trainers = trainers;
  options.servers = servers;
  options.members.silence = kTestTimeout;
  options.members.reconnect = kTestTimeout;
  return options;
}

}  // namespace capstan::testing
