#include "capstan/fetch/archive.h"

#include <algorithm>
#include <cctype>
#include <memory>

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include "capstan/base/failure.h"
#include "capstan/fetch/digest.h"
#include "capstan/fetch/output_file.h"

namespace capstan::fetch {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = 1 << 16;

using Reader = std::unique_ptr<archive, decltype(&archive_read_free)>;

std::string reason(archive* reader) {
  const char* text = archive_error_string(reader);
  return text ? text : "it cannot be read";
}

// The path inside the archive; no value for one that leaves the folder or contains a line break.
std::optional<fs::path> safe_path(const char* name) {
  if (!name || !*name) return {};
  const std::string_view text(name);
  if (std::ranges::any_of(text, [](unsigned char c) { return std::iscntrl(c) != 0; })) return {};
  const fs::path path(text);
  if (path.is_absolute() || std::ranges::find(path, "..") != path.end()) return {};
  return path.lexically_normal();
}

// `path` without the prefix `inner`; no value if it is not below `inner`.
std::optional<fs::path> below(const fs::path& path, const fs::path& inner) {
  const auto [rest, left] = std::mismatch(path.begin(), path.end(), inner.begin(), inner.end());
  if (left != inner.end()) return {};
  fs::path out;
  for (auto part = rest; part != path.end(); ++part) out /= *part;
  return out.empty() ? std::nullopt : std::optional(out);
}

// Writes the reader's current entry.
Result<Manifest::File> write_file(archive* reader, const fs::path& path, const fs::path& folder) {
  std::error_code error;
  fs::create_directories((folder / path).parent_path(), error);
  OutputFile out(folder / path, OutputFile::Open::kFresh);
  if (out.error() && fs::exists(folder / path, error))
    return Status::malformed(fmt::format("it contains \"{}\" twice", path.string()));
  Digest digest("sha256:");
  const void* bytes = nullptr;
  std::size_t size = 0;
  la_int64_t offset = 0;
  for (;;) {
    out.throw_error();
    const int code = archive_read_data_block(reader, &bytes, &size, &offset);
    if (code == ARCHIVE_EOF) break;
    if (code != ARCHIVE_OK) return Status::malformed(reason(reader));
    if (static_cast<std::uint64_t>(offset) != out.size())
      return Status::malformed("it contains a sparse file");
    const std::span block(static_cast<const std::byte*>(bytes), size);
    digest.add(block);
    (void)out.write(block);
  }
  return Manifest::File{path.string(), out.size(), digest.text()};
}

}  // namespace

Result<Manifest> unpack(const fs::path& file, std::string_view inner, const fs::path& folder,
                        const std::function<bool()>& interrupted) {
  const Reader reader(archive_read_new(), archive_read_free);
  archive_read_support_filter_gzip(reader.get());
  archive_read_support_format_tar(reader.get());
  const auto bad = [&](const std::string& why) {
    return Status::malformed(fmt::format("{} is not a valid tar.gz archive: {}", file.string(), why));
  };
  if (archive_read_open_filename(reader.get(), file.c_str(), kBlock) != ARCHIVE_OK)
    return bad(reason(reader.get()));
  Manifest manifest;
  archive_entry* entry = nullptr;
  for (;;) {
    if (interrupted && interrupted())
      throw Failure(kInterrupted,
                    "interrupted: the archive is kept; run the same command again to unpack it");
    const int code = archive_read_next_header(reader.get(), &entry);
    if (code == ARCHIVE_EOF) break;
    if (code != ARCHIVE_OK) return bad(reason(reader.get()));
    const auto path = safe_path(archive_entry_pathname(entry));
    if (!path) return bad("it contains an unsafe path");
    const auto type = archive_entry_filetype(entry);
    if (archive_entry_hardlink(entry) || archive_entry_symlink(entry) ||
        (type != AE_IFREG && type != AE_IFDIR))
      return bad(fmt::format("\"{}\" is neither a file nor a folder", path->string()));
    const auto kept = below(*path, fs::path(inner));
    if (type != AE_IFREG || !kept) continue;
    auto written = write_file(reader.get(), *kept, folder);
    if (!written) return bad(written.status().message());
    manifest.files.push_back(std::move(*written));
  }
  if (manifest.files.empty()) return bad(fmt::format("it does not contain the folder {}", inner));
  return manifest;
}

std::string digest_of_unpacked(const fs::path& file, std::string_view like) {
  const Reader reader(archive_read_new(), archive_read_free);
  archive_read_support_filter_gzip(reader.get());
  archive_read_support_format_raw(reader.get());
  archive_entry* entry = nullptr;
  if (archive_read_open_filename(reader.get(), file.c_str(), kBlock) != ARCHIVE_OK ||
      archive_read_next_header(reader.get(), &entry) != ARCHIVE_OK ||
      archive_filter_code(reader.get(), 0) != ARCHIVE_FILTER_GZIP)
    return {};
  Digest digest(like);
  const void* bytes = nullptr;
  std::size_t size = 0;
  la_int64_t offset = 0;
  for (;;) {
    const int code = archive_read_data_block(reader.get(), &bytes, &size, &offset);
    if (code == ARCHIVE_EOF) return digest.text();
    if (code != ARCHIVE_OK) return {};
    digest.add({static_cast<const std::byte*>(bytes), size});
  }
}

}  // namespace capstan::fetch
