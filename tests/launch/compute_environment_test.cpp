#include "capstan/launch/compute_environment.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace capstan::launch {
namespace {

constexpr const char* kWait = "OMP_WAIT_POLICY";
constexpr const char* kCore = "OPENBLAS_CORETYPE";

std::optional<std::string> value_of(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

// Puts back the variables of the test's own environment.
class ComputeEnvironment : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {kWait, kCore}) {
      before_[name] = value_of(name);
      ::unsetenv(name);
    }
  }
  void TearDown() override {
    for (const auto& [name, value] : before_) {
      if (value)
        ::setenv(name, value->c_str(), 1);
      else
        ::unsetenv(name);
    }
  }

 private:
  std::map<const char*, std::optional<std::string>> before_;
};

// The first processor of /proc/cpuinfo: its vendor and its flags.
std::pair<std::string, std::set<std::string>> processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string vendor;
  std::set<std::string> flags;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    std::istringstream words(line.substr(std::min(line.find(':'), line.size() - 1) + 1));
    if (line.starts_with("vendor_id")) words >> vendor;
    if (line.starts_with("flags"))
      for (std::string flag; words >> flag;) flags.insert(flag);
  }
  return {vendor, flags};
}

// What the kernel says about the processor, instead of the compiler's functions.
TEST_F(ComputeEnvironment, LetsThreadsSleepAndNamesAnIntelCoreThatOpenBlasKnows) {
  prepare_compute_environment();
  EXPECT_EQ(value_of(kWait), "passive");
  const auto [vendor, flags] = processor();
  const auto has = [&](std::initializer_list<const char*> names) {
    return std::ranges::all_of(names, [&](const char* name) { return flags.contains(name); });
  };
  std::optional<std::string> expected;
  if (vendor == "GenuineIntel" && has({"avx2", "fma"})) expected = "Haswell";
  if (vendor == "GenuineIntel" && has({"avx512f", "avx512bw", "avx512dq", "avx512vl"})) expected = "SkylakeX";
  EXPECT_EQ(value_of(kCore), expected) << vendor;
}

TEST_F(ComputeEnvironment, KeepsWhatTheUserHasSet) {
  ::setenv(kWait, "active", 1);
  ::setenv(kCore, "Prescott", 1);
  prepare_compute_environment();
  EXPECT_EQ(value_of(kWait), "active");
  EXPECT_EQ(value_of(kCore), "Prescott");
}

}  // namespace
}  // namespace capstan::launch
