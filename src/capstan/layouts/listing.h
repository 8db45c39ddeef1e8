#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "capstan/base/json.h"
#include "capstan/layouts/network_layout.h"

namespace capstan::layouts {

// A network for images and classes of the user's choice: its tensors and how many numbers they hold. A value.
class SizedNetwork {
 public:
  // Images of `side` pixels square and so many classes; 0: what the network was made for. Throws UserError
  // where such images do not fit.
  SizedNetwork(const NetworkInfo& network, std::uint32_t side, std::uint32_t classes);

  const NetworkInfo& info() const { return *info_; }
  const ImageSize& size() const { return size_; }
  // Elements. Counters of batches (num_batches_tracked) are left out.
  std::uint64_t parameters() const;
  std::uint64_t buffers() const;
  std::uint64_t bytes() const { return 4 * parameters(); }

  // Name and shape of every tensor.
  std::string tensors_text() const;

 private:
  const NetworkInfo* info_;  // of the table, which outlives everything
  ImageSize size_;
  NetworkTensors tensors_;
};

// Every network that takes such images.
std::vector<SizedNetwork> sized_networks(std::uint32_t side, std::uint32_t classes);

// One line for each.
std::string networks_text(std::span<const SizedNetwork> networks);
Json networks_json(std::span<const SizedNetwork> networks);

}  // namespace capstan::layouts
