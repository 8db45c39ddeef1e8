#include "capstan/data/dataset.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capstan/base/spelling.h"
#include "capstan/base/user_error.h"
#include "capstan/data/image_folder.h"
#include "capstan/data/locate.h"
#include "capstan/data/memory_source.h"
#include "capstan/data/readers.h"

namespace capstan::data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kFolderSide = 224;

Dataset in_memory(const DatasetOptions& options, Splits splits, Augment usual) {
  const auto& shape = splits.test.shape;
  if (options.image_size > 0 &&
      (options.image_size != shape.width() || options.image_size != shape.height())) {
    throw UserError(fmt::format("--image-size {}: only images of folders are scaled; those of {} are {}x{}",
                                options.image_size, options.name, shape.height(), shape.width()));
  }
  const auto augment = options.augment == Augment::kAuto ? usual : options.augment;
  if (augment == Augment::kResizedCrop) {
    throw UserError(fmt::format(
        "--augment resized-crop is for image folders; {} takes auto, none or crop-flip", options.name));
  }
  auto test = std::make_unique<MemorySource>(std::move(splits.test));
  if (options.test_only) return {nullptr, std::move(test)};
  if (augment == Augment::kNone)
    return {std::make_unique<MemorySource>(std::move(splits.train)), std::move(test)};
  return {MemorySource::crop_flip(std::move(splits.train), options.seed), std::move(test)};
}

Dataset open_digits(const DatasetOptions& options) {
  return in_memory(options, load_digits(), Augment::kNone);
}

Dataset open_synthetic(const DatasetOptions& options) {
  return in_memory(options, make_synthetic(options.name, options.seed), Augment::kNone);
}

// A file that identifies the folder.
std::string_view idx_sign(const DatasetOptions& options) {
  return options.test_only ? "t10k-images-idx3-ubyte" : "train-images-idx3-ubyte";
}

// Means and standard deviations of the training images. MNIST's are from PyTorch's MNIST example, CIFAR's (in
// levels of 255) from fb.resnet.torch; Fashion-MNIST's are the widely used ones.
Dataset open_mnist(const DatasetOptions& options) {
  const auto folder =
      locate(options.data_dir, options.name, {}, idx_sign(options), fetched_by_get(options.name));
  return in_memory(options, load_idx(folder, normalised_levels(0.1307, 0.3081), options.test_only),
                   Augment::kNone);
}

Dataset open_fashion_mnist(const DatasetOptions& options) {
  const auto folder =
      locate(options.data_dir, options.name, {}, idx_sign(options), fetched_by_get(options.name));
  return in_memory(options, load_idx(folder, normalised_levels(0.2860, 0.3530), options.test_only),
                   Augment::kNone);
}

std::vector<Levels> coloured_levels(const std::array<double, 3>& mean,
                                    const std::array<double, 3>& deviation) {
  std::vector<Levels> levels;
  for (std::size_t c = 0; c < 3; ++c) levels.push_back(normalised_levels(mean[c] / 255, deviation[c] / 255));
  return levels;
}

Dataset open_cifar10(const DatasetOptions& options) {
  constexpr std::string_view kUnpacked[] = {"cifar-10-batches-bin"};
  const auto folder =
      locate(options.data_dir, options.name, kUnpacked, "test_batch.bin", fetched_by_get(options.name));
  const auto levels = coloured_levels({125.3, 123.0, 113.9}, {63.0, 62.1, 66.7});
  return in_memory(options, load_cifar10(folder, levels, options.test_only), Augment::kCropFlip);
}

Dataset open_cifar100(const DatasetOptions& options) {
  constexpr std::string_view kUnpacked[] = {"cifar-100-binary"};
  const auto folder =
      locate(options.data_dir, options.name, kUnpacked, "test.bin", fetched_by_get(options.name));
  const auto levels = coloured_levels({129.3, 124.1, 112.4}, {68.2, 65.4, 70.4});
  return in_memory(options, load_cifar100(folder, levels, options.test_only), Augment::kCropFlip);
}

void check_classes(const FolderListing& a, const FolderListing& b) {
  for (const auto& name : a.classes) {
    if (!std::ranges::binary_search(b.classes, name)) {
      throw UserError(fmt::format("{} has no class {}, which {} has: both need the same folders",
                                  b.folder.string(), name, a.folder.string()));
    }
  }
}

Dataset load_folder(const DatasetOptions& options, const fs::path& folder) {
  if (options.augment == Augment::kCropFlip) {
    throw UserError(
        fmt::format("--augment crop-flip is for small images of one size; {} takes auto, none or "
                    "resized-crop",
                    options.name));
  }
  std::error_code ignored;
  const auto test = fs::is_directory(folder / "val", ignored) ? folder / "val" : folder / "test";
  if (!fs::is_directory(test, ignored)) {
    throw UserError(
        fmt::format("{}: {} contains neither val nor test beside train", options.name, folder.string()));
  }
  auto test_files = list_folder(test);
  FolderSource::Options how{options.image_size > 0 ? options.image_size : kFolderSide,
                            options.augment != Augment::kNone, options.seed, options.strict};
  std::unique_ptr<FolderSource> train;
  if (!options.test_only) {
    auto train_files = list_folder(folder / "train");
    check_classes(train_files, test_files);
    check_classes(test_files, train_files);
    train = std::make_unique<FolderSource>(std::move(train_files), how);
  }
  how.resized_crop = false;
  return {std::move(train), std::make_unique<FolderSource>(std::move(test_files), how)};
}

// Without training images, the folder is identified by val or test.
fs::path locate_folder(const DatasetOptions& options, std::span<const std::string_view> folders,
                       std::string_view remedy) {
  if (options.test_only) {
    try {
      return locate(options.data_dir, options.name, folders, "val", remedy);
    } catch (const UserError&) {
      return locate(options.data_dir, options.name, folders, "test", remedy);
    }
  }
  return locate(options.data_dir, options.name, folders, "train", remedy);
}

Dataset open_image_folder(const DatasetOptions& options) {
  return load_folder(options,
                     locate_folder(options, {},
                                   "an image folder has train/ and val/ (or test/), and in each a folder of "
                                   "JPEG or PNG files for every class"));
}

Dataset open_imagenette(const DatasetOptions& options) {
  constexpr std::string_view kUnpacked[] = {"imagenette2-320", "imagenette2-160", "imagenette2"};
  return load_folder(options, locate_folder(options, kUnpacked, fetched_by_get(options.name)));
}

struct Kind {
  std::string_view name;
  std::string_view form;
  Dataset (*open)(const DatasetOptions&);
};

constexpr Kind kKinds[] = {
    {"digits", "digits", open_digits},
    {"mnist", "mnist", open_mnist},
    {"fashion-mnist", "fashion-mnist", open_fashion_mnist},
    {"cifar10", "cifar10", open_cifar10},
    {"cifar100", "cifar100", open_cifar100},
    {"imagefolder", "imagefolder", open_image_folder},
    {"imagenette", "imagenette", open_imagenette},
    {"synthetic", "synthetic:CxHxW:classes", open_synthetic},
};

}  // namespace

Dataset load(const DatasetOptions& options) {
  const auto kind = options.name.substr(0, options.name.find(':'));
  std::vector<std::string_view> names, forms;
  for (const auto& known : kKinds) {
    // Only synthetic datasets have arguments.
    if (known.name == kind && (kind == options.name || kind == "synthetic")) return known.open(options);
    names.push_back(known.name);
    forms.push_back(known.form);
  }
  const auto near = nearest(kind, names);
  throw UserError(fmt::format("unknown dataset '{}'{}; known are {}", options.name,
                              near.empty() ? "" : fmt::format(" (did you mean {}?)", near),
                              fmt::join(forms, ", ")));
}

}  // namespace capstan::data
