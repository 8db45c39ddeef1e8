#include "capstan/workloads/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/config/tasks.h"
#include "capstan/user_error.h"

namespace capstan::workloads {
namespace {

TEST(Tasks, BothTablesHaveTheSameEntries) {
  std::vector<std::string_view> made, known;
  for (const auto& entry : table()) made.push_back(entry.name);
  for (const auto& entry : config::tasks()) known.push_back(entry.name);
  EXPECT_FALSE(made.empty());
  EXPECT_EQ(made, known);
}

TEST(Tasks, AnUnknownOneIsAnErrorWithTheNearest) {
  EXPECT_THAT([] { config::find_task("char-ml"); },
              ::testing::ThrowsMessage<UserError>(::testing::HasSubstr("did you mean char-lm?")));
}

}  // namespace
}  // namespace capstan::workloads
