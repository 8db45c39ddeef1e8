#include "capstan/fetch/verify.h"

#include <fmt/format.h>

#include "capstan/base/check.h"
#include "capstan/base/text.h"
#include "capstan/fetch/archive.h"
#include "capstan/fetch/digest.h"
#include "capstan/fetch/manifest.h"

namespace capstan::fetch {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// "a.gz" → "a".
fs::path without_gz(const fs::path& path) {
  return path.extension() == ".gz" ? fs::path(path).replace_extension() : fs::path();
}

Verdict verify_files(const Entry& entry, const fs::path& data_dir) {
  Verdict verdict;
  for (const auto& file : entry.files) {
    const auto path = find_file(entry, file, data_dir);
    if (!path) {
      verdict.problems.push_back(fmt::format("{} is missing", place_of(entry, file, data_dir).string()));
      continue;
    }
    ++verdict.files;
    if (!is_as_published(*path, file))
      verdict.problems.push_back(fmt::format("{} differs from the published file", path->string()));
  }
  return verdict;
}

Verdict verify_unpacked(const Entry& entry, const fs::path& data_dir) {
  const auto folder = folder_of(entry, data_dir);
  switch (presence(entry, data_dir)) {
    case Presence::kAbsent:
      return {0, {fmt::format("{} is missing", folder.string())}};
    case Presence::kPartial:
      return {0, {fmt::format("{} is missing: its archive is not unpacked", folder.string())}};
    case Presence::kForeign:
      return {.problems = {fmt::format("{} was not created by capstan data get, so it cannot be verified",
                                       folder.string())},
              .is_foreign = true};
    case Presence::kComplete:
      break;
  }
  const auto manifest = read_manifest(folder);
  CAPSTAN_CHECK(manifest, "a complete dataset has a manifest");
  return {manifest->files.size(), compare(folder, *manifest)};
}

}  // namespace

fs::path folder_of(const Entry& entry, const fs::path& data_dir) {
  return data_dir / entry.name;
}

fs::path place_of(const Entry& entry, const RemoteFile& file, const fs::path& data_dir) {
  return (entry.kind == Kind::kArchive ? data_dir : folder_of(entry, data_dir)) / file.name;
}

std::optional<fs::path> find_file(const Entry& entry, const RemoteFile& file, const fs::path& data_dir) {
  const auto place = place_of(entry, file, data_dir);
  const auto plain = without_gz(place);
  if (entry.kind == Kind::kFiles && !plain.empty() && is_file(plain)) return plain;
  return is_file(place) ? std::optional(place) : std::nullopt;
}

fs::path part_of(const fs::path& file) {
  return file.string() + ".part";
}

Presence presence(const Entry& entry, const fs::path& data_dir) {
  std::size_t whole = 0, begun = 0;
  for (const auto& file : entry.files) {
    whole += find_file(entry, file, data_dir) ? 1 : 0;
    begun += is_file(part_of(place_of(entry, file, data_dir))) ? 1 : 0;
  }
  if (entry.kind == Kind::kArchive) {
    if (read_manifest(folder_of(entry, data_dir))) return Presence::kComplete;
    std::error_code error;
    const auto folder = folder_of(entry, data_dir);
    if (fs::exists(folder, error) && !fs::is_empty(folder, error)) return Presence::kForeign;
    return whole + begun > 0 ? Presence::kPartial : Presence::kAbsent;
  }
  if (whole == entry.files.size()) return Presence::kComplete;
  return whole + begun > 0 ? Presence::kPartial : Presence::kAbsent;
}

bool is_as_published(const fs::path& path, const RemoteFile& file) {
  const bool is_plain = path.filename() == without_gz(file.name);
  if (is_plain)
    return file.unpacked_checksum.empty() ||
           digest_of(path, file.unpacked_checksum) == file.unpacked_checksum;
  if (file.checksum.empty() || digest_of(path, file.checksum) == file.checksum) return true;
  return !file.unpacked_checksum.empty() &&
         digest_of_unpacked(path, file.unpacked_checksum) == file.unpacked_checksum;
}

Verdict verify(const Entry& entry, const fs::path& data_dir) {
  auto verdict =
      entry.kind == Kind::kArchive ? verify_unpacked(entry, data_dir) : verify_files(entry, data_dir);
  verdict.name = entry.name;
  verdict.folder = folder_of(entry, data_dir);
  return verdict;
}

std::string Verdict::text() const {
  if (good()) return fmt::format("{}: {} verified", name, counted(files, "file"));
  if (is_foreign)
    return fmt::format("{} has no recorded checksums: capstan data get {} --data-dir OTHER gets a new copy",
                       name, name);
  return fmt::format("{} is incomplete or damaged: capstan data get {} repairs it", name, name);
}

Json Verdict::json() const {
  return {
      {"ok", good()}, {"name", name}, {"folder", folder.string()}, {"files", files}, {"problems", problems}};
}

}  // namespace capstan::fetch
