#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace capstan::fetch {

// The list of files unpacked into a folder, stored there as text: one line per file with SHA-256, size in
// bytes and path.
struct Manifest {
  struct File {
    std::string path;  // below the folder
    std::uint64_t bytes = 0;
    std::string checksum;  // "sha256:…"
    friend bool operator==(const File&, const File&) = default;
  };
  std::vector<File> files;
  friend bool operator==(const Manifest&, const Manifest&) = default;
};

inline constexpr const char* kManifestName = ".capstan-manifest";

// Throws Failure if it cannot be written.
void write_manifest(const std::filesystem::path& folder, const Manifest& manifest);
// No value if the manifest is missing or invalid.
std::optional<Manifest> read_manifest(const std::filesystem::path& folder);

// One line for each file that is missing or has changed. Reads all of them.
std::vector<std::string> compare(const std::filesystem::path& folder, const Manifest& manifest);

}  // namespace capstan::fetch
