#include "capstan/data/folder_listing.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "capstan/data/held_out.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

namespace fs = std::filesystem;

bool is_image(const fs::path& path) {
  auto extension = path.extension().string();
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return std::tolower(c); });
  return extension == ".jpg" || extension == ".jpeg" || extension == ".png";
}

bool is_hidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

// Calls take(entry) for every entry of a folder; with a recursive iterator, of its subfolders too.
template <class Iterator, class Take>
void for_each_entry(const fs::path& folder, Take take) {
  try {
    for (const auto& entry : Iterator(folder)) take(entry);
  } catch (const fs::filesystem_error& error) {
    throw UserError(fmt::format("cannot read the folder {}: {}", folder.string(), error.code().message()));
  }
}

bool is_class_folder(const fs::directory_entry& entry) {
  return entry.is_directory() && !is_hidden(entry.path());
}

std::vector<std::string> class_folders(const fs::path& folder) {
  std::vector<std::string> classes;
  for_each_entry<fs::directory_iterator>(folder, [&](const fs::directory_entry& entry) {
    if (is_class_folder(entry)) classes.push_back(entry.path().filename().string());
  });
  if (classes.empty())
    throw UserError(fmt::format("{} contains no folders; each class needs one", folder.string()));
  std::ranges::sort(classes);
  return classes;
}

}  // namespace

std::size_t FolderListing::class_of(std::size_t file) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(class_begin, file) - class_begin.begin()) - 1;
}

FolderListing list_folder(const fs::path& folder) {
  FolderListing listing{folder, class_folders(folder), {}, {}};
  const auto prefix = (folder / "").native().size();
  for (const auto& name : listing.classes) {
    const auto begin = listing.files.size();
    listing.class_begin.push_back(begin);
    for_each_entry<fs::recursive_directory_iterator>(folder / name, [&](const fs::directory_entry& entry) {
      if (is_image(entry.path()) && !is_hidden(entry.path()) && entry.is_regular_file())
        listing.files.push_back(entry.path().native().substr(prefix));
    });
    if (listing.files.size() == begin) {
      throw UserError(fmt::format("{} contains no images (.jpg, .jpeg or .png)", (folder / name).string()));
    }
    std::sort(listing.files.begin() + static_cast<std::ptrdiff_t>(begin), listing.files.end());
  }
  listing.class_begin.push_back(listing.files.size());
  return listing;
}

bool has_class_folders(const fs::path& folder) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (is_class_folder(*it)) return true;
  return false;
}

DividedListing hold_out(const FolderListing& all) {
  check_enough(all.files.size(), all.folder.string());
  DividedListing out{{all.folder, all.classes, {}, {}}, {all.folder, all.classes, {}, {}}};
  for (std::size_t c = 0; c < all.classes.size(); ++c) {
    for (auto* part : {&out.train, &out.test}) part->class_begin.push_back(part->files.size());
    for (auto i = all.class_begin[c]; i < all.class_begin[c + 1]; ++i)
      (is_held_out(i) ? out.test : out.train).files.push_back(all.files[i]);
  }
  for (auto* part : {&out.train, &out.test}) part->class_begin.push_back(part->files.size());
  return out;
}

}  // namespace capstan::data
