// Which bucket is new, repeated, old or not due.

#include "capstan/averaging/bucket_progress.h"

#include <gtest/gtest.h>

namespace capstan::averaging {
namespace {

using Kind = BucketProgress::Kind;

TEST(BucketProgress, CountsEveryTrainerOncePerBatch) {
  BucketProgress progress(0, 2);
  EXPECT_EQ(*progress.classify({0}, 5), Kind::kNew);  // the first may have any number
  EXPECT_EQ(progress.take({0}, 5), 1u);
  EXPECT_EQ(*progress.classify({0}, 5), Kind::kRepeated);
  EXPECT_EQ(*progress.classify({1}, 5), Kind::kNew);
  EXPECT_FALSE(progress.classify({1}, 4));
  EXPECT_FALSE(progress.classify({1}, 6));
  EXPECT_EQ(progress.take({1}, 5), 2u);
  EXPECT_EQ(progress.pending(), 5u);
  EXPECT_FALSE(progress.classify({1}, 6));  // before the average
  progress.set_averaged();
  EXPECT_FALSE(progress.pending());
  EXPECT_EQ(progress.averaged(), 5u);
  EXPECT_EQ(*progress.classify({1}, 4), Kind::kOld);
  EXPECT_EQ(*progress.classify({1}, 6), Kind::kNew);
}

TEST(BucketProgress, KeepsTheLastAverageForATrainerThatHasNotReceivedIt) {
  BucketProgress progress(0, 2);
  progress.take({0}, 5);
  progress.take({1}, 5);
  progress.set_averaged();
  EXPECT_EQ(*progress.classify({0}, 5), Kind::kAveraged);
  progress.take({1}, 6);
  EXPECT_EQ(*progress.classify({0}, 5), Kind::kAveraged);
  EXPECT_EQ(*progress.classify({1}, 5), Kind::kOld);  // it would not have sent batch 6
  EXPECT_EQ(*progress.classify({0}, 6), Kind::kNew);
  EXPECT_FALSE(progress.classify({0}, 7));
  progress.take({0}, 6);
  EXPECT_EQ(*progress.classify({0}, 5), Kind::kOld);
}

TEST(BucketProgress, AnswersOncePerConnection) {
  BucketProgress progress(0, 1);
  progress.take({0}, 1);
  progress.reconnected({0});
  EXPECT_FALSE(progress.take_answer({0}));  // it will ask again
  progress.expect_answer({0});
  EXPECT_TRUE(progress.take_answer({0}));
  EXPECT_FALSE(progress.take_answer({0}));
}

TEST(BucketProgress, BeginsAnewAfterAReset) {
  BucketProgress progress(0, 1);
  progress.take({0}, 9);
  progress.set_averaged();
  progress.reset();
  EXPECT_EQ(*progress.classify({0}, 0), Kind::kNew);
}

}  // namespace
}  // namespace capstan::averaging
