#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace capstan::layouts {

enum class Family { kAlexNet, kDenseNet, kGoogLeNet, kInception, kLeNet, kMlp, kMobileNet, kResNet, kVgg };

struct ImageSize {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

// What is known about a network without making it.
struct NetworkInfo {
  std::string_view name;
  Family family;
  ImageSize input;       // what it was made for
  std::int64_t classes;  // of the data it was made for
  std::string_view summary;
  // Images of at least this height and width pass through it. lenet takes its own input only; all others
  // take any number of channels, since only the first layer depends on it.
  std::int64_t least_side;
  // From this height or width on, each batch norm sees more than one value of a channel in a single image;
  // below, a batch of one image has no variance. 0 where that holds for every image.
  std::int64_t alone_side;
};

// Every network, in the order in which people look for them.
std::span<const NetworkInfo> networks();

// Dashes and underscores are the same; torchvision's spellings are known. Throws UserError with the nearest
// right name for an unknown one.
const NetworkInfo& find_network(std::string_view name);

// Throws UserError where images of this size do not pass through the network.
void check_input(const NetworkInfo& network, const ImageSize& size);
// Throws UserError where batches of this many such images cannot train it.
void check_batch(const NetworkInfo& network, const ImageSize& size, std::uint64_t batch);

// "3x224x224".
std::string size_text(const ImageSize& size);

}  // namespace capstan::layouts
