#include "capstan/fetch/transfer_progress.h"

#include <gtest/gtest.h>

namespace capstan::fetch {
namespace {

constexpr std::uint64_t kMegabyte = 1'000'000;

TimePoint at(double s) {
  return TimePoint() + from_seconds(s);
}

TEST(TransferProgress, HasARateAndAnEndOnceSomeTimeHasPassed) {
  TransferProgress progress;
  EXPECT_EQ(progress.line("a.gz", 0, 100 * kMegabyte, at(50)), "a.gz  0.0 of 100.0 MB  0 %");
  EXPECT_EQ(progress.line("a.gz", kMegabyte, 100 * kMegabyte, at(50.1)), "a.gz  1.0 of 100.0 MB  1 %");
  // 5 MB in two seconds; the other 95 MB take 38.
  EXPECT_EQ(progress.line("a.gz", 5 * kMegabyte, 100 * kMegabyte, at(52)),
            "a.gz  5.0 of 100.0 MB  5 %  2.5 MB/s  ETA 0:38");
  EXPECT_EQ(progress.line("a.gz", 10 * kMegabyte, 1000 * kMegabyte, at(54)),
            "a.gz  10.0 of 1000.0 MB  1 %  2.5 MB/s  ETA 6:36");
  EXPECT_EQ(progress.line("a.gz", 100 * kMegabyte, 100 * kMegabyte, at(60)),
            "a.gz  100.0 of 100.0 MB  100 %  10.0 MB/s");
}

TEST(TransferProgress, OfAnUnknownSizeHasNoEnd) {
  TransferProgress progress;
  EXPECT_EQ(progress.line("a", 0, 0, at(0)), "a  0.0 MB");
  EXPECT_EQ(progress.line("a", 3 * kMegabyte, 0, at(2)), "a  3.0 MB  1.5 MB/s");
}

TEST(TransferProgress, ThatStandsStillHasNoEnd) {
  TransferProgress progress;
  (void)progress.line("a", kMegabyte, 4 * kMegabyte, at(0));
  EXPECT_EQ(progress.line("a", kMegabyte, 4 * kMegabyte, at(9)), "a  1.0 of 4.0 MB  25 %  0.0 MB/s");
}

TEST(TransferProgress, CountsOnlyWhatThisDownloadBrought) {
  TransferProgress progress;
  (void)progress.line("a", 60 * kMegabyte, 100 * kMegabyte, at(0));
  EXPECT_EQ(progress.line("a", 70 * kMegabyte, 100 * kMegabyte, at(10)),
            "a  70.0 of 100.0 MB  70 %  1.0 MB/s  ETA 0:30");
}

TEST(TransferProgress, BeginsAgainWithTheNextFile) {
  TransferProgress progress;
  (void)progress.line("a", 0, 2 * kMegabyte, at(0));
  (void)progress.line("a", 2 * kMegabyte, 2 * kMegabyte, at(10));
  EXPECT_EQ(progress.line("b", 2 * kMegabyte, 6 * kMegabyte, at(10)), "b  2.0 of 6.0 MB  33 %");
  EXPECT_EQ(progress.line("b", 3 * kMegabyte, 6 * kMegabyte, at(11)),
            "b  3.0 of 6.0 MB  50 %  1.0 MB/s  ETA 0:03");
}

// What was there was of another file.
TEST(TransferProgress, BeginsAgainWhereADownloadStartsOver) {
  TransferProgress progress;
  (void)progress.line("a", 60 * kMegabyte, 100 * kMegabyte, at(0));
  (void)progress.line("a", 80 * kMegabyte, 100 * kMegabyte, at(1));
  EXPECT_EQ(progress.line("a", 0, 100 * kMegabyte, at(2)), "a  0.0 of 100.0 MB  0 %");
  EXPECT_EQ(progress.line("a", 10 * kMegabyte, 100 * kMegabyte, at(4)),
            "a  10.0 of 100.0 MB  10 %  5.0 MB/s  ETA 0:18");
}

}  // namespace
}  // namespace capstan::fetch
