#pragma once

#include <cstdint>
#include <string>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "capstan/base/random.h"

namespace capstan::kernels {

// Runs each case for every instruction set that this processor has and the kernels were compiled for.
class EachTarget : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

inline std::string target_name(const testing::TestParamInfo<std::int64_t>& info) {
  return hwy::TargetName(info.param);
}

// Between -1 and 1.
inline float draw(Random& random) {
  return static_cast<float>(2 * random.uniform() - 1);
}

}  // namespace capstan::kernels

#define CAPSTAN_FOR_EACH_TARGET(suite)                                                             \
  class suite : public capstan::kernels::EachTarget {};                                            \
  INSTANTIATE_TEST_SUITE_P(Targets, suite, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()), \
                           capstan::kernels::target_name)
