#include <algorithm>

#include <fmt/format.h>

#include "capstan/layouts/families.h"

namespace capstan::layouts {

std::vector<TensorShape> vgg(std::array<int, 5> convolutions, std::int64_t classes) {
  std::vector<TensorShape> shapes;
  const auto add = [&](const char* part, int index, std::vector<std::int64_t> weight) {
    const auto out = weight.front();
    shapes.push_back({fmt::format("{}.{}.weight", part, index), std::move(weight)});
    shapes.push_back({fmt::format("{}.{}.bias", part, index), {out}});
  };

  int index = 0;  // counts the layers without parameters too: ReLU and pooling
  std::int64_t in = 3;
  for (int stage = 0; stage < 5; ++stage) {
    const std::int64_t out = std::min<std::int64_t>(64 << stage, 512);
    for (int i = 0; i < convolutions[stage]; ++i) {
      add("features", index, {out, in, 3, 3});
      index += 2;
      in = out;
    }
    ++index;
  }
  add("classifier", 0, {4096, in * 7 * 7});
  add("classifier", 3, {4096, 4096});
  add("classifier", 6, {classes, 4096});
  return shapes;
}

}  // namespace capstan::layouts
