#include "capstan/fetch/manifest.h"

#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "capstan/base/failure.h"
#include "capstan/fetch/digest.h"
#include "capstan/fetch/output_file.h"

namespace capstan::fetch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFirstLine = "capstan manifest 1";

}  // namespace

void write_manifest(const fs::path& folder, const Manifest& manifest) {
  std::string text = fmt::format("{}\n", kFirstLine);
  for (const auto& file : manifest.files)
    text += fmt::format("{} {} {}\n", file.checksum, file.bytes, file.path);
  OutputFile out(folder / kManifestName, OutputFile::Open::kFresh);
  (void)out.write(std::as_bytes(std::span(text)));
  (void)out.sync();
  out.throw_error();
}

std::optional<Manifest> read_manifest(const fs::path& folder) {
  std::ifstream in(folder / kManifestName, std::ios::binary);
  std::string line;
  if (!std::getline(in, line) || line != kFirstLine) return {};
  Manifest manifest;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    Manifest::File file;
    if (!(words >> file.checksum >> file.bytes) || !file.checksum.starts_with("sha256:")) return {};
    words.get();  // the space
    std::getline(words, file.path);
    if (file.path.empty()) return {};
    manifest.files.push_back(std::move(file));
  }
  return manifest;
}

std::vector<std::string> compare(const fs::path& folder, const Manifest& manifest) {
  std::vector<std::string> problems;
  for (const auto& file : manifest.files) {
    const auto path = folder / file.path;
    std::error_code error;
    const auto size = fs::is_regular_file(path, error) ? fs::file_size(path, error) : 0;
    if (!fs::exists(path, error)) {
      problems.push_back(fmt::format("{} is missing", path.string()));
    } else if (size != file.bytes) {
      problems.push_back(
          fmt::format("{} has changed: {} bytes instead of {}", path.string(), size, file.bytes));
    } else if (digest_of(path, file.checksum) != file.checksum) {
      problems.push_back(fmt::format("{} has changed", path.string()));
    }
  }
  return problems;
}

}  // namespace capstan::fetch
