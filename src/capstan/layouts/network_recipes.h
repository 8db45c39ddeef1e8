#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace capstan::layouts {

// Parameters that distinguish the networks of a family. `name` is one of networks().

struct ResNetRecipe {
  std::vector<int> blocks;  // per stage
  bool bottleneck = false;
  bool small_images = false;      // 3x3 stem, no max pooling
  bool padded_shortcuts = false;  // zero-padded, without parameters, where the shape changes
  std::int64_t width = 64;        // channels of the first stage; each stage doubles them

  std::int64_t expansion() const { return bottleneck ? 4 : 1; }
};
ResNetRecipe resnet_recipe(std::string_view name);

struct VggRecipe {
  std::array<int, 5> convolutions;  // per stage
  bool norm = false;
  bool small_images = false;  // 512 inputs and hidden units instead of 25,088 and 4096

  static std::int64_t channels(int stage) { return stage < 3 ? 64 << stage : 512; }
};
VggRecipe vgg_recipe(std::string_view name);

// One module of GoogLeNet: the channels of its branches.
struct InceptionModule {
  const char* name;
  std::int64_t in, one, three_reduced, three, five_reduced, five, pooled;

  std::int64_t out() const { return one + three + five + pooled; }
};
inline constexpr InceptionModule kGoogLeNetModules[] = {
    {"inception3a", 192, 64, 96, 128, 16, 32, 32},     {"inception3b", 256, 128, 128, 192, 32, 96, 64},
    {"inception4a", 480, 192, 96, 208, 16, 48, 64},    {"inception4b", 512, 160, 112, 224, 24, 64, 64},
    {"inception4c", 512, 128, 128, 256, 24, 64, 64},   {"inception4d", 512, 112, 144, 288, 32, 64, 64},
    {"inception4e", 528, 256, 160, 320, 32, 128, 128}, {"inception5a", 832, 256, 160, 320, 32, 128, 128},
    {"inception5b", 832, 384, 192, 384, 48, 128, 128},
};

// DenseNet-121.
inline constexpr int kDenseNetLayers[] = {6, 12, 24, 16};  // per block
inline constexpr std::int64_t kDenseNetGrowth = 32;

// One row of MobileNet v2's table of blocks.
struct MobileNetRow {
  std::int64_t expansion, channels;
  int repeats;
  std::int64_t stride;  // of the first block
};
inline constexpr MobileNetRow kMobileNetRows[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                                  {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};

// Whether GoogLeNet or Inception v3 has its auxiliary heads.
bool has_auxiliary(std::string_view name);

}  // namespace capstan::layouts
