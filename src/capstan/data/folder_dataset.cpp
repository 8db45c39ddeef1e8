#include "capstan/data/folder_dataset.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <string_view>

#include <fmt/format.h>

#include "capstan/data/held_out.h"
#include "capstan/data/image_folder.h"
#include "capstan/data/locate.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSide = 224;

// Of ImageNet's training images, as torchvision uses for all its networks.
Statistics imagenet_statistics() {
  return {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
}

void check_options(const DatasetOptions& options) {
  if (options.augment == Augment::kCropFlip) {
    throw UserError(fmt::format(
        "--augment crop-flip is for small images of one size; {} takes auto, none or resized-crop",
        options.name));
  }
  if (options.normalize == Normalize::kTrain) {
    throw UserError(
        fmt::format("--normalize train would decode every image of {} before training; it takes auto "
                    "(ImageNet's mean and deviation) or none",
                    options.name));
  }
}

void check_classes(const FolderListing& a, const FolderListing& b) {
  for (const auto& name : a.classes) {
    if (!std::ranges::binary_search(b.classes, name)) {
      throw UserError(fmt::format("{} has no class {}, which {} has: both need the same folders",
                                  b.folder.string(), name, a.folder.string()));
    }
  }
}

struct Listings {
  FolderListing train;  // empty with test_only if the test images have a folder of their own
  FolderListing test;
};

bool has_folder(const fs::path& folder, const char* name) {
  std::error_code ignored;
  return fs::is_directory(folder / name, ignored);
}

Listings list(const fs::path& folder, bool test_only) {
  const auto* const test = has_folder(folder, "val") ? "val" : has_folder(folder, "test") ? "test" : nullptr;
  if (!test) {
    auto [kept, held_out] = hold_out(list_folder(has_folder(folder, "train") ? folder / "train" : folder));
    return {std::move(kept), std::move(held_out)};
  }
  Listings out;
  out.test = list_folder(folder / test);
  if (test_only) return out;
  out.train = list_folder(folder / "train");
  check_classes(out.train, out.test);
  check_classes(out.test, out.train);
  return out;
}

Dataset load_folder(const DatasetOptions& options, const fs::path& folder) {
  check_options(options);
  auto listings = list(folder, options.test_only);
  Dataset out;
  out.encoding.class_names = listings.test.classes;
  out.encoding.classes = static_cast<std::int64_t>(listings.test.classes.size());
  if (options.normalize == Normalize::kAuto) out.encoding.statistics = imagenet_statistics();
  using Crop = FolderSource::Crop;
  const bool plain = options.augment == Augment::kNone;
  FolderSource::Options how{options.image_size > 0 ? options.image_size : kSide,
                            plain ? Crop::kCentre : Crop::kRandomResized, out.encoding.statistics,
                            options.seed, options.strict};
  if (!options.test_only) out.train = std::make_unique<FolderSource>(std::move(listings.train), how);
  how.crop = plain ? Crop::kCentre : Crop::kTest;
  out.test = std::make_unique<FolderSource>(std::move(listings.test), how);
  return out;
}

constexpr const char* kForm =
    "an image folder has train/ and val/ (or test/), and in each a folder of JPEG or PNG files for every "
    "class; or "
    "these class folders alone";

// Identified by train, or without training images also by val or test; if there is none of them, a folder
// with class folders.
fs::path locate_folder(const DatasetOptions& options) {
  std::optional<fs::path> parts;
  for (const auto* sign : {"train", "val", "test"}) {
    const auto found = find_place(options.data_dir, options.name, {}, sign);
    if (found && (options.test_only || std::string_view(sign) == "train")) return *found;
    if (!parts) parts = found;
  }
  if (!parts) {
    for (const auto& place : places(options.data_dir, options.name) | std::views::reverse)
      if (has_class_folders(place)) return place;
  }
  return locate(options.data_dir, options.name, {}, "train", kForm);  // throws
}

}  // namespace

Dataset open_image_folder(const DatasetOptions& options) {
  return load_folder(options, locate_folder(options));
}

Dataset open_imagenette(const DatasetOptions& options) {
  constexpr std::string_view kUnpacked[] = {"imagenette2-320", "imagenette2-160", "imagenette2"};
  const auto* const sign = options.test_only ? "val" : "train";
  return load_folder(options,
                     locate(options.data_dir, options.name, kUnpacked, sign, fetched_by_get(options.name)));
}

}  // namespace capstan::data
