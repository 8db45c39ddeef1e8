#include "capstan/kernels/copy.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "each_target.h"

namespace capstan::kernels {
namespace {

CAPSTAN_FOR_EACH_TARGET(Copy);
CAPSTAN_FOR_EACH_TARGET(Fill);

TEST_P(Copy, CopiesEveryLengthFromAndToEveryAlignment) {
  std::vector<float> source(200);
  std::iota(source.begin(), source.end(), 1.0f);
  for (auto stores : {Stores::kCached, Stores::kStreaming}) {
    for (std::size_t to = 0; to < 17; ++to) {
      for (std::size_t size = 0; size < 100; ++size) {
        const auto from = std::span<const float>(source).subspan(to / 2, size);
        std::vector<float> out(size + to + 1, -1);
        copy(from, std::span(out).subspan(to), stores);
        ASSERT_TRUE(std::equal(from.begin(), from.end(), out.begin() + static_cast<long>(to)));
        ASSERT_EQ(std::count(out.begin(), out.end(), -1.0f), static_cast<long>(to) + 1)
            << "outside of the copy";
      }
    }
  }
}

TEST_P(Fill, SetsExactlyTheSpan) {
  for (std::size_t size : {0u, 1u, 15u, 100u, (1u << 20) + 5u, (9u << 20) + 3u}) {
    for (std::size_t begin : {1, 2, 16}) {
      std::vector<float> out(size + begin + 1, -1);
      fill(std::span(out).subspan(begin, size), 2.5f);
      ASSERT_EQ(std::count(out.begin(), out.end(), 2.5f), static_cast<long>(size));
      ASSERT_EQ(out[begin - 1], -1);
      ASSERT_EQ(out.back(), -1);
    }
  }
}

}  // namespace
}  // namespace capstan::kernels
