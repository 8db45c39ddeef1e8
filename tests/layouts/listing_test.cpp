#include "capstan/layouts/listing.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/user_error.h"

namespace capstan::layouts {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

SizedNetwork sized(std::string_view name, std::uint32_t side = 0, std::uint32_t classes = 0) {
  return SizedNetwork(find_network(name), side, classes);
}

// A perceptron of one hidden layer of 128: weights and biases of both layers.
constexpr std::uint64_t mlp(std::uint64_t pixels, std::uint64_t classes) {
  return pixels * 128 + 128 + 128 * classes + classes;
}

TEST(Listing, CountsWhatTheImagesAndClassesMakeOfANetwork) {
  EXPECT_EQ(sized("mlp").parameters(), mlp(28 * 28, 10));
  EXPECT_EQ(sized("mlp", 32).parameters(), mlp(32 * 32, 10));
  EXPECT_EQ(sized("mlp", 32, 7).parameters(), mlp(32 * 32, 7));
  EXPECT_EQ(sized("mlp", 0, 7).parameters(), mlp(28 * 28, 7));
  EXPECT_EQ(sized("mlp").bytes(), 4 * mlp(28 * 28, 10));
  EXPECT_EQ(sized("mlp").buffers(), 0u);
}

// Published: 25,557,032 parameters; 26,560 channels in its batch norms, of which a mean and a variance each.
TEST(Listing, LeavesCountersOfBatchesOut) {
  EXPECT_EQ(sized("resnet50").parameters(), 25'557'032u);
  EXPECT_EQ(sized("resnet50").buffers(), 2 * 26'560u);
}

TEST(Listing, RefusesImagesThatDoNotFit) {
  EXPECT_THROW(sized("alexnet", 32), UserError);
  EXPECT_THROW(sized("lenet", 32), UserError);
}

TEST(Listing, HasTheNetworksThatTakeTheImages) {
  EXPECT_EQ(sized_networks(0, 0).size(), networks().size());
  const auto has = [](std::uint32_t side, std::string_view name) {
    return std::ranges::any_of(sized_networks(side, 0), [&](const auto& n) { return n.info().name == name; });
  };
  EXPECT_FALSE(has(32, "lenet"));
  EXPECT_FALSE(has(62, "alexnet"));
  EXPECT_TRUE(has(63, "alexnet"));
  EXPECT_TRUE(has(32, "mlp"));
}

TEST(Listing, IsATableOfALineForEach) {
  EXPECT_EQ(networks_text({}), "name                parameters     MB  input      what\n");
  const SizedNetwork two[] = {sized("lenet"), sized("resnet50", 64)};
  EXPECT_EQ(networks_text(two),
            "name                parameters     MB  input      what\n"
            "lenet                  431,080    1.7  1x28x28    LeNet as in Caffe\n"
            "resnet50            25,557,032  102.2  3x64x64    ResNet, bottlenecks\n");
  // 4 x 128 weights and 128 biases, 128 weights and 1 bias.
  const SizedNetwork small[] = {sized("mlp", 2, 1)};
  EXPECT_THAT(networks_text(small), HasSubstr("mlp                        769    0.0  1x2x2 "));
}

TEST(Listing, IsOneJsonObject) {
  EXPECT_EQ(networks_json({}).dump(), R"({"ok":true,"models":[]})");
  const SizedNetwork two[] = {sized("mlp"), sized("resnet50")};
  EXPECT_EQ(networks_json(two).dump(),
            R"({"ok":true,"models":[)"
            R"({"name":"mlp","parameters":101770,"buffers":0,"bytes":407080,"input":"1x28x28"},)"
            R"({"name":"resnet50","parameters":25557032,"buffers":53120,"bytes":102228128,)"
            R"("input":"3x224x224"}]})");
}

TEST(Listing, ShowsTheTensorsOfANetwork) {
  EXPECT_EQ(sized("mlp", 1, 3).tensors_text(),
            "mlp: perceptron, 128 hidden units\n"
            "for images of 1x1x1\n"
            "\n"
            "643 parameters in 4 tensors\n"
            "  fc1.weight                                                              128x1\n"
            "  fc1.bias                                                                  128\n"
            "  fc2.weight                                                              3x128\n"
            "  fc2.bias                                                                    3\n");
}

// 19 batch norms: 7 of 16 channels, 6 of 32 and 6 of 64, which are 688, with a mean and a variance each.
TEST(Listing, ShowsBuffersWhereThereAreAny) {
  const auto text = sized("resnet20").tensors_text();
  EXPECT_THAT(text, StartsWith("resnet20: ResNet, 16-32-64 channels\nfor images of 3x32x32\n\n"));
  EXPECT_THAT(text,
              HasSubstr("\n\n1,376 buffers in 57 tensors\n"
                        "  bn1.running_mean                                                           16\n"
                        "  bn1.running_var                                                            16\n"
                        "  bn1.num_batches_tracked                                                scalar\n"));
}

}  // namespace
}  // namespace capstan::layouts
