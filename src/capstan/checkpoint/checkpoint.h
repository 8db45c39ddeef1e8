#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "capstan/checkpoint/manifest.h"

namespace capstan::checkpoint {

// A checkpoint is a folder: files of tensors per server, and manifest.json, which is written last: a folder
// with a manifest is complete.
inline constexpr const char* kManifestFile = "manifest.json";

// One named array of floats.
struct NamedArray {
  std::string name;
  std::span<float> values;
};

// One server's shard at one version, in memory of the writer.
struct Shard {
  std::uint32_t server = 0;
  std::uint32_t servers = 1;
  Range range;                     // of the flat array
  std::vector<NamedArray> arrays;  // each for the whole range; the weights first
  FlatLayout buffers_layout;       // from the first server; empty for others
  std::span<const float> buffers;
};

// Whether PyTorch stores this buffer as a 64-bit integer.
bool is_counter(const std::string& name);

// Writes the shard's files to the folder and returns their pieces. Reorders the arrays in place: their
// contents are invalid afterwards. Throws UserError on failure.
std::vector<Piece> write_shard(const std::filesystem::path& folder, const FlatLayout& layout, Shard& shard);
void write_manifest(const std::filesystem::path& folder, const Manifest& manifest);

// Throws UserError that names the file and its error.
Manifest read_manifest(const std::filesystem::path& folder);
// Reads every file of the checkpoint and compares every checksum. Throws UserError that names the file and
// its error.
void verify(const std::filesystem::path& folder, const Manifest& manifest);

// Fills each array, named as in the manifest, with the elements `range` of the model's flat array; gaps
// become zero. Checks what it reads and throws as verify() does.
void load(const std::filesystem::path& folder, const Manifest& manifest, Range range,
          std::span<const NamedArray> arrays);
// The flat buffers; empty if there are none.
std::vector<float> load_buffers(const std::filesystem::path& folder, const Manifest& manifest);

}  // namespace capstan::checkpoint
