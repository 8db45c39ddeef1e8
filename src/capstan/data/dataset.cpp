#include "capstan/data/dataset.h"

#include <fmt/format.h>

#include "capstan/base/spelling.h"
#include "capstan/base/user_error.h"
#include "capstan/data/memory_source.h"
#include "capstan/data/readers.h"

namespace capstan::data {
namespace {

constexpr std::string_view kNames[] = {"digits", "mnist", "synthetic"};

Dataset in_memory(Splits splits) {
  return {std::make_unique<MemorySource>(std::move(splits.train)),
          std::make_unique<MemorySource>(std::move(splits.test))};
}

}  // namespace

std::span<const std::string_view> dataset_names() {
  return kNames;
}

Dataset load(const DatasetOptions& options) {
  const auto kind = options.name.substr(0, options.name.find(':'));
  if (options.name == "digits") return in_memory(load_digits());
  if (options.name == "mnist") return in_memory(load_mnist(options.data_dir));
  if (kind == "synthetic") return in_memory(make_synthetic(options.name, options.seed));
  const auto near = nearest(kind, kNames);
  throw UserError(fmt::format("unknown dataset '{}'{}; known are digits, mnist, synthetic:CxHxW:classes",
                              options.name, near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
}

}  // namespace capstan::data
