#include "capstan/optimizer/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

namespace capstan::optimizer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Spec parse(const std::string& text) {
  return parse_spec(text, defaults);
}

TEST(OptimizerSpec, IsOneOptimizerWithOptions) {
  EXPECT_EQ(parse("adam").first.kind, Kind::kAdam);
  EXPECT_EQ(parse("adam").first.lr, 1e-3);
  const auto spec = parse("adam:lr=2e-4:beta1=0.5");
  EXPECT_EQ(spec.size(), 1u);
  EXPECT_EQ(spec.first.lr, 2e-4);
  EXPECT_EQ(spec.first.beta1, 0.5);
  EXPECT_EQ(spec.first.beta2, 0.999);
  EXPECT_EQ(spec.kinds(), "adam");
  EXPECT_TRUE(parse("rmsprop:centered=true").first.centered);
  EXPECT_FALSE(parse("sgd:momentum=0.9:nesterov=false").first.nesterov);
}

TEST(OptimizerSpec, HasAnEntryForEachGroup) {
  const auto spec = parse("d.*=adam:lr=0.0002:beta1=0.5,default=sgd:momentum=0.8,*.bias=sgd");
  ASSERT_EQ(spec.size(), 3u);
  EXPECT_EQ(spec[0].kind, Kind::kSgd);
  EXPECT_EQ(spec[0].momentum, 0.8);
  EXPECT_EQ(spec[1].kind, Kind::kAdam);
  EXPECT_EQ(spec[1].lr, 0.0002);
  EXPECT_EQ(spec[2].momentum, 0);
  EXPECT_THAT(spec.globs(), ElementsAre("d.*", "*.bias"));
  EXPECT_EQ(spec.kinds(), "default=sgd,d.*=adam,*.bias=sgd");
  EXPECT_EQ(parse("default=adam:lr=0.1").kinds(), "adam") << "a default without groups is one optimizer";
}

TEST(OptimizerSpec, TakesOtherOptionsFromTheBase) {
  const auto spec = parse_spec("default=sgd,x=sgd:lr=3", [](Kind kind) {
    auto o = defaults(kind);
    o.lr = 7;
    o.momentum = 0.5;
    return o;
  });
  EXPECT_EQ(spec[0].lr, 7);
  EXPECT_EQ(spec[1].lr, 3);
  EXPECT_EQ(spec[1].momentum, 0.5);
}

TEST(OptimizerSpec, ThatIsWrongIsAnError) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "unknown optimizer ''"},
      {"adm", "unknown optimizer 'adm' (did you mean 'adam'?); known are"},
      {"adam:", "option \"\" must be NAME=VALUE, such as lr=0.001"},
      {"adam:lr", "option \"lr\" must be NAME=VALUE"},
      {"adam:beta=0.5",
       "unknown option \"beta\" of optimizer adam (did you mean beta1?); known are lr, weight-decay, beta1, "
       "beta2, eps"},
      {"sgd:beta1=0.5", "beta1 is an option of adam, adamw and sparse-adam, not of optimizer sgd"},
      {"adam:lr=fast", "option lr: \"fast\" is not a number"},
      {"adam:lr=", "option lr: \"\" is not a number"},
      {"adam:lr=-1", "optimizer adam: lr is -1, must be"},
      {"sgd:nesterov=1", "option nesterov: \"1\" must be true or false"},
      {"sgd,adam", "group \"sgd\" must be GLOB=OPTIMIZER, such as fc*=adam:lr=0.001"},
      {"default=sgd,", "group \"\" must be GLOB=OPTIMIZER"},
      {"default=sgd,=adam", "group \"=adam\" must be GLOB=OPTIMIZER"},
      {"fc*=adam", "--optimizer fc*=adam: groups need a default for all other tensors, such as default=sgd"},
      {"default=sgd,fc*=adm", "--optimizer: group fc*: unknown optimizer 'adm' (did you mean 'adam'?)"},
      {"default=sgd,fc*=adam:lr=-1", "--optimizer: group fc*: optimizer adam: lr is -1"},
      {"default=sgd,fc*=adam,fc*=sgd", "--optimizer: group fc* is given twice"},
      {"default=sgd,default=adam", "--optimizer: group default is given twice"},
  };
  for (const auto& [text, says] : wrong)
    EXPECT_THAT([t = text] { (void)parse(t); }, ThrowsMessage<UserError>(HasSubstr(says))) << text;
}

TEST(OptimizerSet, SharesStateArraysByName) {
  const OptimizerSet set(parse("default=adam,s=sgd:momentum=0.9,r=rmsprop:momentum=0.5,p=sgd"), {});
  EXPECT_THAT(set.state_names(), ElementsAre("exp_avg", "exp_avg_sq", "momentum_buffer", "square_avg"));
  EXPECT_THAT(set.state_of(0), ElementsAre(0u, 1u));
  EXPECT_THAT(set.state_of(1), ElementsAre(2u));
  EXPECT_THAT(set.state_of(2), ElementsAre(3u, 2u));
  EXPECT_THAT(set.state_of(3), ElementsAre());
}

}  // namespace
}  // namespace capstan::optimizer
