#include "capstan/data/dataset.h"

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capstan/base/spelling.h"
#include "capstan/data/arrays.h"
#include "capstan/data/csv.h"
#include "capstan/data/folder_dataset.h"
#include "capstan/data/in_memory.h"
#include "capstan/data/locate.h"
#include "capstan/data/readers.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

Dataset open_digits(const DatasetOptions& options) {
  return in_memory(options, load_digits(), {}, {});
}

Dataset open_synthetic(const DatasetOptions& options) {
  auto splits = make_synthetic(options.name, options.seed);
  const auto one = synthetic_statistics();
  const auto channels = static_cast<std::size_t>(splits.test.shape.channels());
  const InMemory kind{Augment::kNone,
                      {std::vector(channels, one.mean[0]), std::vector(channels, one.deviation[0])}};
  return in_memory(options, std::move(splits), kind, {});
}

// Means and standard deviations of the training images. MNIST's are from PyTorch's MNIST example, CIFAR's (in
// levels of 255) from fb.resnet.torch; Fashion-MNIST's are the widely used ones.
Dataset open_idx(const DatasetOptions& options, const Statistics& constants) {
  const bool with_train = needs_train(options, constants);
  const auto* const sign = with_train ? "train-images-idx3-ubyte" : "t10k-images-idx3-ubyte";
  const auto folder = locate(options.data_dir, options.name, {}, sign, fetched_by_get(options.name));
  return in_memory(options, load_idx(folder, !with_train), {Augment::kNone, constants}, {});
}

Dataset open_mnist(const DatasetOptions& options) {
  return open_idx(options, {{0.1307}, {0.3081}});
}

Dataset open_fashion_mnist(const DatasetOptions& options) {
  return open_idx(options, {{0.2860}, {0.3530}});
}

Dataset open_cifar10(const DatasetOptions& options) {
  constexpr std::string_view kUnpacked[] = {"cifar-10-batches-bin"};
  const auto folder =
      locate(options.data_dir, options.name, kUnpacked, "test_batch.bin", fetched_by_get(options.name));
  const InMemory kind{Augment::kCropFlip,
                      {{125.3 / 255, 123.0 / 255, 113.9 / 255}, {63.0 / 255, 62.1 / 255, 66.7 / 255}}};
  return in_memory(options, load_cifar10(folder, !needs_train(options, kind.constants)), kind, {});
}

Dataset open_cifar100(const DatasetOptions& options) {
  constexpr std::string_view kUnpacked[] = {"cifar-100-binary"};
  const auto folder =
      locate(options.data_dir, options.name, kUnpacked, "test.bin", fetched_by_get(options.name));
  const InMemory kind{Augment::kCropFlip,
                      {{129.3 / 255, 124.1 / 255, 112.4 / 255}, {68.2 / 255, 65.4 / 255, 70.4 / 255}}};
  return in_memory(options, load_cifar100(folder, !needs_train(options, kind.constants)), kind, {});
}

struct Kind {
  std::string_view name;
  std::string_view form;
  Dataset (*open)(const DatasetOptions&);
  bool has_arguments = false;
};

constexpr Kind kKinds[] = {
    {"digits", "digits", open_digits},
    {"mnist", "mnist", open_mnist},
    {"fashion-mnist", "fashion-mnist", open_fashion_mnist},
    {"cifar10", "cifar10", open_cifar10},
    {"cifar100", "cifar100", open_cifar100},
    {"imagefolder", "imagefolder", open_image_folder},
    {"imagenette", "imagenette", open_imagenette},
    {"synthetic", "synthetic:CxHxW:classes", open_synthetic, true},
    {"arrays", "arrays:FILE", open_arrays, true},
    {"csv", "csv:FILE:target=COLUMN", open_csv, true},
};

}  // namespace

std::vector<std::string_view> dataset_names() {
  std::vector<std::string_view> names;
  for (const auto& kind : kKinds) names.push_back(kind.name);
  return names;
}

Dataset load(const DatasetOptions& options) {
  const auto kind = options.name.substr(0, options.name.find(':'));
  std::vector<std::string_view> forms;
  for (const auto& known : kKinds) {
    if (known.name == kind && (kind == options.name || known.has_arguments)) return known.open(options);
    forms.push_back(known.form);
  }
  const auto near = nearest(kind, dataset_names());
  throw UserError(fmt::format("unknown dataset '{}'{}; known are {}", options.name,
                              near.empty() ? "" : fmt::format(" (did you mean {}?)", near),
                              fmt::join(forms, ", ")));
}

}  // namespace capstan::data
