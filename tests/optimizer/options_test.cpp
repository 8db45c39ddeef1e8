#include <cmath>
#include <map>
#include <string>
#include <string_view>

#include <gmock/gmock.h>

#include "capstan/optimizer/optimizer.h"
#include "capstan/user_error.h"

namespace capstan::optimizer {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr Kind kKinds[] = {Kind::kNone,    Kind::kSgd,     Kind::kAdam,      Kind::kAdamW,
                           Kind::kAdagrad, Kind::kRmsProp, Kind::kSparseAdam};

TEST(OptimizerOptions, NamesRoundTrip) {
  for (Kind kind : kKinds) EXPECT_EQ(parse_kind(name(kind)), kind);
  EXPECT_EQ(name(Kind::kAdamW), "adamw");
}

TEST(OptimizerOptions, UnknownNameListsTheKnownOnes) {
  EXPECT_THAT(
      [] { parse_kind("adamv"); },
      ThrowsMessage<UserError>(AllOf(HasSubstr("unknown optimizer 'adamv'"), HasSubstr("did you mean 'adam"),
                                     HasSubstr("none, sgd, adam, adamw, adagrad, rmsprop, sparse-adam"))));
  EXPECT_THROW(parse_kind(""), UserError);
  EXPECT_THROW(parse_kind("SGD"), UserError);
}

// By the names in flags and messages.
std::map<std::string, double> values(const Options& options) {
  std::map<std::string, double> out;
  visit_options(
      [&](const OptionInfo& option, const auto& value) {
        if (option.belongs_to(options.kind)) out[std::string(option.name)] = static_cast<double>(value);
      },
      options);
  return out;
}

// The signatures in the documentation of PyTorch 2.0: SGD, Adam, AdamW, Adagrad, RMSprop and SparseAdam. SGD
// has no
// default learning rate in it.
TEST(OptimizerOptions, DefaultsAreValidAndPyTorchs) {
  const std::map<Kind, std::map<std::string, double>> documented = {
      {Kind::kSgd, {{"lr", 0.02}, {"momentum", 0}, {"dampening", 0}, {"weight-decay", 0}, {"nesterov", 0}}},
      {Kind::kAdam, {{"lr", 0.001}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"weight-decay", 0}}},
      {Kind::kAdamW,
       {{"lr", 0.001}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}, {"weight-decay", 0.01}}},
      {Kind::kAdagrad, {{"lr", 0.01}, {"lr-decay", 0}, {"weight-decay", 0}, {"eps", 1e-10}}},
      {Kind::kRmsProp,
       {{"lr", 0.01}, {"alpha", 0.99}, {"eps", 1e-8}, {"weight-decay", 0}, {"momentum", 0}, {"centered", 0}}},
      {Kind::kSparseAdam, {{"lr", 0.001}, {"beta1", 0.9}, {"beta2", 0.999}, {"eps", 1e-8}}},
  };
  for (Kind kind : kKinds) {
    EXPECT_EQ(defaults(kind).kind, kind);
    EXPECT_NO_THROW(validate(defaults(kind)));
    if (kind == Kind::kNone) continue;
    EXPECT_EQ(values(defaults(kind)), documented.at(kind)) << name(kind);
  }
}

TEST(OptimizerOptions, AreAllInTheList) {
  Options options;
  int visited = 0;
  visit_options([&](const OptionInfo&, auto& value) { value = ++visited > 0; }, options);
  // A new member makes this line an error: add it to visit_options() and here.
  const auto& [kind, lr, weight_decay, momentum, dampening, nesterov, beta1, beta2, eps, lr_decay, alpha,
               centered] = options;
  for (const double value : {lr, weight_decay, momentum, dampening, beta1, beta2, eps, lr_decay, alpha})
    EXPECT_EQ(value, 1);
  EXPECT_TRUE(nesterov && centered);
  EXPECT_EQ(visited, 11);
  EXPECT_EQ(kind, Kind::kSgd);
}

TEST(OptimizerOptions, OwnersAreNamedInASentence) {
  EXPECT_EQ(names_of(kinds(Kind::kSgd)), "sgd");
  EXPECT_EQ(names_of(kinds(Kind::kRmsProp, Kind::kSgd)), "sgd and rmsprop");
  EXPECT_EQ(names_of(kinds(Kind::kAdam, Kind::kAdamW, Kind::kRmsProp)), "adam, adamw and rmsprop");
}

struct Wrong {
  Options options;
  std::string message;
};

TEST(OptimizerOptions, WrongValuesAreNamed) {
  const Wrong cases[] = {
      {{.lr = -0.1}, "optimizer sgd: lr is -0.1, must be finite and not below 0"},
      {{.lr = std::nan("")}, "lr is nan"},
      {{.lr = INFINITY}, "lr is inf"},
      {{.weight_decay = -1}, "weight-decay is -1"},
      {{.momentum = 9}, "momentum is 9, must be at least 0 and below 1"},
      {{.momentum = 0.9, .dampening = 1.5}, "dampening is 1.5, must be from 0 to 1"},
      {{.nesterov = true}, "momentum is 0, must be above 0 with nesterov"},
      {{.momentum = 0.9, .dampening = 0.1, .nesterov = true}, "dampening is 0.1, must be 0 with nesterov"},
      {{.kind = Kind::kAdam, .beta1 = 1}, "optimizer adam: beta1 is 1, must be at least 0 and below 1"},
      {{.kind = Kind::kAdamW, .beta2 = -0.5}, "optimizer adamw: beta2 is -0.5"},
      {{.kind = Kind::kAdam, .eps = -1e-8}, "eps is -1e-08"},
      {{.kind = Kind::kSparseAdam, .beta1 = 1}, "optimizer sparse-adam: beta1 is 1"},
      {{.kind = Kind::kAdagrad, .lr_decay = -2}, "lr-decay is -2"},
      {{.kind = Kind::kRmsProp, .alpha = 1.1}, "alpha is 1.1"},
      {{.kind = Kind::kRmsProp, .momentum = -1}, "momentum is -1"},
  };
  for (const auto& wrong : cases) {
    EXPECT_THAT([&] { validate(wrong.options); }, ThrowsMessage<UserError>(HasSubstr(wrong.message)));
    EXPECT_THROW(Optimizer(wrong.options, Schedule{}), UserError);
  }
}

TEST(OptimizerOptions, OptionsOfOtherKindsAreIgnored) {
  EXPECT_NO_THROW(validate({.kind = Kind::kAdam, .momentum = 9}));
  EXPECT_NO_THROW(validate({.kind = Kind::kSgd, .beta1 = 2}));
}

TEST(OptimizerOptions, StateCounts) {
  const auto tensors = [](const Options& o) { return Optimizer(o, Schedule{}).state_tensors(); };
  EXPECT_EQ(tensors({.kind = Kind::kNone}), 0);
  EXPECT_EQ(tensors({.kind = Kind::kSgd}), 0);
  EXPECT_EQ(tensors({.kind = Kind::kSgd, .momentum = 0.9}), 1);
  EXPECT_EQ(tensors({.kind = Kind::kAdam}), 2);
  EXPECT_EQ(tensors({.kind = Kind::kAdamW}), 2);
  EXPECT_EQ(tensors({.kind = Kind::kAdagrad}), 1);
  EXPECT_EQ(tensors({.kind = Kind::kSparseAdam}), 2);
  EXPECT_EQ(tensors({.kind = Kind::kRmsProp}), 1);
  EXPECT_EQ(tensors({.kind = Kind::kRmsProp, .momentum = 0.9}), 2);
  EXPECT_EQ(tensors({.kind = Kind::kRmsProp, .centered = true}), 2);
  EXPECT_EQ(tensors({.kind = Kind::kRmsProp, .momentum = 0.9, .centered = true}), 3);
}

}  // namespace
}  // namespace capstan::optimizer
