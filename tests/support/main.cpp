// The main function of all test programs. With CAPSTAN_NO_SKIP=1 a test that skips itself fails, so that an
// untested feature does not count as tested. For a skip that is allowed, it prints the line by which CTest
// recognises a skipped test (cmake/toolbox.cmake).

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {

// Tests that need software without a small Debian package.
constexpr std::string_view kMaySkip[] = {
    "LabPage.IsDrawnByABrowser",  // Chromium; other tests read the data of the plots
    "TorchFile.IsReadByPython",   // PyTorch for Python; libtorch reads the same files in another test
};

class SkipJudge final : public ::testing::EmptyTestEventListener {
 public:
  explicit SkipJudge(bool strict) : strict_(strict) {}

 private:
  void OnTestEnd(const ::testing::TestInfo& test) override {
    if (!test.result()->Skipped()) return;
    const auto name = std::string(test.test_suite_name()) + "." + test.name();
    if (strict_ && std::ranges::find(kMaySkip, name) == std::end(kMaySkip)) {
      ADD_FAILURE() << name << " was skipped, and CAPSTAN_NO_SKIP is set";
    } else {
      std::puts("capstan: may be skipped");
    }
  }

  bool strict_;
};

}  // namespace

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  const char* strict = std::getenv("CAPSTAN_NO_SKIP");
  ::testing::UnitTest::GetInstance()->listeners().Append(
      new SkipJudge(strict && std::string_view(strict) == "1"));
  return RUN_ALL_TESTS();
}
