#include "capstan/data/dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/data/split.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

TEST(Dataset, AnUnknownNameIsAnErrorWithTheKnownNames) {
  EXPECT_THAT(
      [] {
        load({"minst", "", 1});
      },
      ThrowsMessage<UserError>(
          AllOf(HasSubstr("'minst'"), HasSubstr("did you mean mnist?"),
                HasSubstr("digits, mnist, fashion-mnist, cifar10, cifar100, imagefolder, "
                          "imagenette, synthetic:CxHxW:classes, arrays:FILE, csv:FILE:target=COLUMN"))));
  EXPECT_THAT(
      [] {
        load({"sinthetic:1x28x28:10", "", 1});
      },
      ThrowsMessage<UserError>(HasSubstr("did you mean synthetic?")));
  EXPECT_THAT([] { load({"qqqqqqqqqq", "", 1}); }, ThrowsMessage<UserError>(Not(HasSubstr("did you mean"))));
  EXPECT_THROW(load({"", "", 1}), UserError);
  EXPECT_THROW(load({"digits:3", "", 1}), UserError);
}

TEST(Dataset, LevelsAreNormalisedPixels) {
  const auto levels = normalised_levels(0.25, 0.5);
  EXPECT_FLOAT_EQ(levels[0], -0.5f);
  EXPECT_FLOAT_EQ(levels[51], (0.2f - 0.25f) / 0.5f);
  EXPECT_FLOAT_EQ(levels[255], 1.5f);
}

}  // namespace
}  // namespace capstan::data
