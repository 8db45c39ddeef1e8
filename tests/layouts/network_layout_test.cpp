#include "capstan/layouts/network_layout.h"

#include <algorithm>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "capstan/user_error.h"

namespace capstan::layouts {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

NetworkTensors tensors_of(std::string_view name) {
  const auto& network = find_network(name);
  return network_tensors(network, network.input, network.classes);
}

std::uint64_t elements(const std::vector<TensorShape>& tensors) {
  std::uint64_t sum = 0;
  for (const auto& t : tensors) sum += t.name.ends_with("num_batches_tracked") ? 0 : t.elements();
  return sum;
}

// FNV-1a, as make_layouts.py has it.
std::string digest(const std::vector<TensorShape>& tensors) {
  std::uint64_t value = 0xcbf29ce484222325;
  for (const auto& t : tensors) {
    for (const unsigned char byte : fmt::format("{} {}\n", t.name, fmt::join(t.dims, "x")))
      value = (value ^ byte) * 0x100000001b3;
  }
  return fmt::format("{:016x}", value);
}

// tests/reference/layouts.json has the layouts of PyTorch and torchvision, written by make_layouts.py.
nlohmann::json reference() {
  std::ifstream file(CAPSTAN_SOURCE_DIR "/tests/reference/layouts.json");
  return nlohmann::json::parse(file);
}

TEST(NetworkLayout, EqualsPyTorchs) {
  const auto all = reference();
  EXPECT_EQ(all.size(), networks().size());
  for (const auto& network : networks()) {
    ASSERT_TRUE(all.contains(network.name)) << network.name;
    const auto& expected = all.at(std::string(network.name));
    const auto tensors = tensors_of(network.name);
    EXPECT_EQ(tensors.parameters.size(), expected["tensors"][0]) << network.name;
    EXPECT_EQ(tensors.buffers.size(), expected["tensors"][1]) << network.name;
    EXPECT_EQ(elements(tensors.parameters), expected["parameters"]) << network.name;
    EXPECT_EQ(elements(tensors.buffers), expected["buffers"]) << network.name;
    EXPECT_EQ(digest(tensors.parameters), expected["digests"][0]) << network.name;
    EXPECT_EQ(digest(tensors.buffers), expected["digests"][1]) << network.name;
  }
}

TEST(NetworkLayout, HasThePublishedNumberOfParameters) {
  const std::pair<const char*, std::uint64_t> published[] = {
      {"lenet", 431'080},
      {"alexnet", 61'100'840},
      {"resnet18", 11'689'512},
      {"resnet34", 21'797'672},
      {"resnet50", 25'557'032},
      {"resnet101", 44'549'160},
      {"resnet152", 60'192'808},
      {"vgg11", 132'863'336},
      {"vgg16", 138'357'544},
      {"vgg16-bn", 138'365'992},
      {"vgg19", 143'667'240},
      {"googlenet", 13'004'888},
      {"googlenet-noaux", 6'624'904},
      {"inception-v3", 27'161'264},
      {"inception-v3-noaux", 23'834'568},
      {"densenet121", 7'978'856},
      {"mobilenet-v2", 3'504'872},
      {"resnet20", 269'722},
      {"resnet110", 1'727'962},
      {"resnet18-cifar", 11'173'962},
  };
  for (const auto& [name, count] : published) EXPECT_EQ(network_layout(name).parameters(), count) << name;
}

// Found by trial in PyTorch: images of this size work, in a batch of one or two; smaller ones do not.
TEST(NetworkLayout, HasTheSmallestImageSizes) {
  const auto all = reference();
  for (const auto& [name, expected] : all.items()) {
    if (!expected.contains("least_side")) continue;
    const auto& network = find_network(name);
    const auto least = expected["least_side"].get<std::int64_t>();
    EXPECT_EQ(network.least_side, least) << name;
    EXPECT_NO_THROW(check_input(network, {3, least, least})) << name;
    if (least > 1) {
      EXPECT_THAT(
          [&] {
            check_input(network, {3, least, least - 1});
          },
          ThrowsMessage<UserError>(HasSubstr(fmt::format("at least {0}x{0}", least))))
          << name;
    }
    EXPECT_NO_THROW(check_batch(network, {3, least, least}, 2)) << name;
    const auto alone = expected["alone_side"].get<std::int64_t>();
    EXPECT_NO_THROW(check_batch(network, {3, alone, alone}, 1)) << name;
    if (alone > least) {
      EXPECT_THAT(
          [&] {
            check_batch(network, {3, alone - 1, alone - 1}, 1);
          },
          ThrowsMessage<UserError>(HasSubstr("--batch-size must be at least 2")))
          << name;
    }
  }
}

TEST(NetworkLayout, FollowsClassesAndImages) {
  const auto resnet = network_tensors(find_network("resnet18"), {1, 40, 50}, 7).parameters;
  EXPECT_EQ(resnet.front().dims, (std::vector<std::int64_t>{64, 1, 7, 7}));
  EXPECT_EQ(resnet.back().dims, (std::vector<std::int64_t>{7}));
  const auto mlp = network_tensors(find_network("mlp"), {3, 4, 5}, 7).parameters;
  EXPECT_EQ(mlp.front().dims, (std::vector<std::int64_t>{128, 60}));
}

TEST(NetworkLayout, LeNetAcceptsItsNominalImagesOnly) {
  EXPECT_THAT(
      [] {
        check_input(find_network("lenet"), {3, 28, 28});
      },
      ThrowsMessage<UserError>(AllOf(HasSubstr("1x28x28"), HasSubstr("3x28x28"))));
}

TEST(NetworkLayout, NamesAreFoundInEverySpelling) {
  std::set<std::string_view> names;
  for (const auto& network : networks()) EXPECT_TRUE(names.insert(network.name).second) << network.name;
  for (const auto* spelling :
       {"vgg11_bn", "inception_v3", "mobilenet_v2", "vgg16_bn_cifar", "resnet18-cifar"}) {
    std::string dashed = spelling;
    std::ranges::replace(dashed, '_', '-');
    EXPECT_EQ(find_network(spelling).name, dashed);
    EXPECT_GT(network_layout(spelling).parameters(), 0u);
  }
}

TEST(NetworkLayout, EveryNetworkFitsAnEightyColumnTable) {
  for (const auto& network : networks()) {
    EXPECT_LE(network.name.size(), 18u) << network.name;
    EXPECT_LE(network.summary.size(), 28u) << network.name;
  }
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

TEST(NetworkLayout, AnUnknownNameIsAnErrorWithTheNearest) {
  EXPECT_THAT([] { network_layout("resnet81"); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("'resnet81'"), HasSubstr("did you mean resnet18?"),
                                             HasSubstr("capstan models"))));
}

}  // namespace
}  // namespace capstan::layouts
