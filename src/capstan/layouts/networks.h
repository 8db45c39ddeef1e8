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

// Properties of a network that are known without building it.
struct NetworkInfo {
  std::string_view name;
  Family family;
  ImageSize input;       // nominal
  std::int64_t classes;  // nominal
  std::string_view summary;
  // The smallest accepted height and width. lenet accepts its nominal input only; all others accept any
  // number of channels, since only the first layer depends on it.
  std::int64_t least_side;
  // With at least this height or width, every batch norm gets more than one value per channel from a single
  // image; below it, a batch of one image has no variance. 0 if any size will do.
  std::int64_t alone_side;
};

// Every network, in the order of the listing.
std::span<const NetworkInfo> networks();

// Accepts underscores for dashes, as in torchvision's names. Throws UserError for an unknown name, with the
// nearest known one.
const NetworkInfo& find_network(std::string_view name);

// Throws UserError if the network does not accept images of this size.
void check_input(const NetworkInfo& network, const ImageSize& size);
// Throws UserError if the network cannot be trained on batches of this many images of this size.
void check_batch(const NetworkInfo& network, const ImageSize& size, std::uint64_t batch);

// "3x224x224".
std::string size_text(const ImageSize& size);

}  // namespace capstan::layouts
