#include "capstan/layouts/network_layout.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "capstan/base/user_error.h"

namespace capstan::layouts {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

// tests/reference/layouts.json is torchvision's word, written by make_layouts.py.
FlatLayout torchvision_layout(const std::string& name) {
  std::ifstream file(CAPSTAN_SOURCE_DIR "/tests/reference/layouts.json");
  const auto networks = nlohmann::json::parse(file);
  std::vector<TensorShape> tensors;
  for (const auto& t : networks.at(name)) tensors.push_back({t.at(0), t.at(1)});
  return FlatLayout(std::move(tensors));
}

TEST(NetworkLayout, EqualsTorchvisions) {
  for (const auto* name : {"resnet18", "resnet50", "vgg16"}) {
    EXPECT_EQ(network_layout(name).difference(torchvision_layout(name)), "") << name;
  }
}

TEST(NetworkLayout, HasThePublishedNumberOfParameters) {
  EXPECT_EQ(network_layout("lenet").parameters(), 431'080u);
  EXPECT_EQ(network_layout("resnet18").parameters(), 11'689'512u);
  EXPECT_EQ(network_layout("resnet50").parameters(), 25'557'032u);
  EXPECT_EQ(network_layout("vgg16").parameters(), 138'357'544u);
}

TEST(NetworkLayout, EveryListedNameIsKnown) {
  for (const auto name : network_names())
    EXPECT_GT(network_layout(std::string(name)).parameters(), 0u) << name;
}

TEST(NetworkLayout, BytesAreOneTensor) {
  const auto layout = network_layout("bytes:4000");
  ASSERT_EQ(layout.tensors().size(), 1u);
  EXPECT_EQ(layout.bytes(), 4000u);
}

TEST(NetworkLayout, RefusesBytesThatAreNotAPositiveMultipleOfFour) {
  for (const auto* name : {"bytes:", "bytes:0", "bytes:-4", "bytes:6", "bytes:4k", "bytes: 4", "bytes:0x10",
                           "bytes:99999999999999999999"}) {
    EXPECT_THAT([&] { network_layout(name); }, ThrowsMessage<UserError>(HasSubstr("positive multiple of 4")))
        << name;
  }
}

TEST(NetworkLayout, AnUnknownNameIsAnsweredWithTheKnownOnesAndTheNearest) {
  EXPECT_THAT([] { network_layout("resnet81"); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("'resnet81'"), HasSubstr("did you mean resnet18?"),
                                             HasSubstr("lenet, resnet18, resnet50, vgg16, bytes:N"))));
}

}  // namespace
}  // namespace capstan::layouts
