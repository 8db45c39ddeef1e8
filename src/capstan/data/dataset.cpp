#include "capstan/data/dataset.h"

#include <fmt/format.h>

#include "capstan/base/spelling.h"
#include "capstan/base/user_error.h"
#include "capstan/data/sources.h"

namespace capstan::data {
namespace {

constexpr std::string_view kNames[] = {"digits", "mnist", "synthetic"};

}  // namespace

std::span<const std::string_view> dataset_names() {
  return kNames;
}

Dataset load(const DatasetOptions& options) {
  const auto kind = options.name.substr(0, options.name.find(':'));
  if (options.name == "digits") return load_digits();
  if (options.name == "mnist") return load_mnist(options.data_dir);
  if (kind == "synthetic") return make_synthetic(options.name, options.seed);
  const auto near = nearest(kind, kNames);
  throw UserError(fmt::format("unknown dataset '{}'{}; known are digits, mnist, synthetic:CxHxW:classes",
                              options.name, near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
}

Levels normalised_levels(double mean, double deviation) {
  Levels levels;
  for (int i = 0; i < 256; ++i) levels[i] = static_cast<float>((i / 255.0 - mean) / deviation);
  return levels;
}

}  // namespace capstan::data
