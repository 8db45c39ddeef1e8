#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/lab/bucket_assignment.h"
#include "capstan/lab/flights.h"
#include "capstan/lab/trainer.h"

namespace capstan::lab {
namespace {

using ::testing::ElementsAre;

NamedTensors dummy_model() {
  NamedTensors parameters = {{"embedding.weight", at::zeros({1024, 1024}), {}, true}};
  for (int i = 0; i < 8; ++i) {
    parameters.push_back({"weight", at::zeros({1024, 1024})});
    parameters.push_back({"bias", at::zeros({1024})});
  }
  return parameters;
}

std::vector<std::uint64_t> bytes_of(const std::vector<AssignedBucket>& buckets) {
  std::vector<std::uint64_t> bytes;
  for (const auto& bucket : buckets) bytes.push_back(4 * bucket.elements);
  return bytes;
}

// The sizes that PyTorch's DistributedDataParallel has for this model.
TEST(Buckets, AreThoseOfDistributedDataParallel) {
  const auto buckets = assign_buckets(dummy_model(), {});
  EXPECT_THAT(bytes_of(buckets), ElementsAre(4'198'400u, 29'388'800u, 4'194'304u));
  EXPECT_EQ(buckets[0].parts[0].parameter, 16u);  // the last bias
  EXPECT_EQ(buckets[0].parts[1].parameter, 15u);
  EXPECT_EQ(buckets[0].parts[1].offset, 1024u);
  EXPECT_TRUE(buckets[2].is_sparse());
  EXPECT_EQ(buckets[2].columns, 1024u);
}

TEST(Buckets, OfADenseEmbeddingAreFilledFurther) {
  auto parameters = dummy_model();
  parameters[0].sparse = false;
  EXPECT_THAT(bytes_of(assign_buckets(parameters, {})), ElementsAre(4'198'400u, 29'388'800u, 4'194'304u));
  EXPECT_THAT(bytes_of(assign_buckets(parameters, {1, 1ull << 40})), ElementsAre(4096u, 37'777'408u));
}

TEST(Buckets, ASparseParameterInTheMiddleHasItsOwn) {
  const NamedTensors parameters = {
      {"a", at::zeros({3})}, {"b", at::zeros({5, 2}), {}, true}, {"c", at::zeros({4})}};
  const auto buckets = assign_buckets(parameters, {});
  EXPECT_THAT(bytes_of(buckets), ElementsAre(16u, 40u, 12u));
  EXPECT_EQ(buckets[1].columns, 2u);
}

TEST(Flights, HiddenIsThePartBeforeTheEndOfTheBackwardPass) {
  const auto at = [](int ms) { return TimePoint() + std::chrono::milliseconds(ms); };
  Flights flights(3);
  EXPECT_FALSE(flights.hidden().has_value());
  flights.sent(0, at(10));
  flights.sent(1, at(15));
  flights.sent(2, at(40));
  flights.arrived(0, at(20));
  flights.arrived(1, at(30));  // under way: 10 to 30, 40 to 60
  flights.arrived(2, at(60));
  flights.end_step(at(45));  // 25 of 40
  EXPECT_DOUBLE_EQ(*flights.hidden(), 25.0 / 40);
  for (std::size_t b = 0; b < 3; ++b) {
    flights.sent(b, at(100));
    flights.arrived(b, at(110));
  }
  flights.end_step(at(100));
  EXPECT_DOUBLE_EQ(*flights.hidden(), 25.0 / 50);
}

TEST(Flights, AWaitInTheBackwardPassHidesNothing) {
  const auto at = [](int ms) { return TimePoint() + std::chrono::milliseconds(ms); };
  Flights flights(2);
  for (int step = 0; step < 2; ++step) {
    flights.sent(0, at(10));
    flights.sent(1, at(20));
    flights.blocked(at(20), at(50));
    flights.arrived(1, at(50));
    flights.arrived(0, at(70));  // under way: 10 to 70
    flights.end_step(at(60));    // 10 to 20 and 50 to 60 are hidden
    EXPECT_DOUBLE_EQ(*flights.hidden(), 20.0 / 60);
  }
}

TEST(DealtBatches, AreTheSameNumberForEachTrainer) {
  EXPECT_EQ(deal_batches(1024, 32, 2).steps, 16u);
  EXPECT_EQ(deal_batches(1024, 32, 2).left_over, 0u);
  EXPECT_EQ(deal_batches(1024, 10, 2).steps, 51u);  // 103 batches
  EXPECT_EQ(deal_batches(1024, 10, 2).left_over, 1u);
  EXPECT_EQ(deal_batches(5, 10, 2).steps, 0u);
}

}  // namespace
}  // namespace capstan::lab
