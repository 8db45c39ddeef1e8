#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace capstan::data {

// The files of one split: one folder of JPEG and PNG files per class.
struct FolderListing {
  std::filesystem::path folder;
  std::vector<std::string> classes;      // sorted
  std::vector<std::string> files;        // relative to the folder; by class, then sorted
  std::vector<std::size_t> class_begin;  // index in `files` of each class, then files.size()

  std::size_t class_of(std::size_t file) const;
};

// Throws UserError if there is no class, or a class without images.
FolderListing list_folder(const std::filesystem::path& folder);

// Whether a folder contains one for a class.
bool has_class_folders(const std::filesystem::path& folder);

struct DividedListing {
  FolderListing train;
  FolderListing test;
};
// Divides the images by the rule of held_out.h. Throws UserError if there are too few.
DividedListing hold_out(const FolderListing& all);

}  // namespace capstan::data
