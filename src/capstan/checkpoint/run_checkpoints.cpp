#include "capstan/checkpoint/run_checkpoints.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <unistd.h>

#include "capstan/base/json.h"
#include "capstan/checkpoint/atomic_file.h"
#include "capstan/checkpoint/checkpoint.h"
#include "capstan/checkpoint/checksum.h"
#include "capstan/user_error.h"

namespace capstan::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "checkpoints";
constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kAside = "aside-step-";
constexpr const char* kBest = "best";
constexpr const char* kFinished = "finished.json";

fs::path home(const fs::path& run) {
  return run / kFolder;
}

std::optional<Version> version_of(const fs::path& folder, std::string_view prefix = kPrefix) {
  const auto name = folder.filename().string();
  if (!name.starts_with(prefix)) return {};
  Version version;
  const auto* const end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + prefix.size(), end, version.value);
  return error == std::errc{} && at == end ? std::optional(version) : std::nullopt;
}

// Folders named by a version, complete or not, oldest first.
std::vector<Entry> folders(const fs::path& run, std::string_view prefix = kPrefix) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(home(run), error), end; !error && it != end; it.increment(error)) {
    if (const auto version = version_of(it->path(), prefix); version && !it->is_symlink())
      entries.push_back({*version, it->path()});
  }
  std::ranges::sort(entries, {}, &Entry::version);
  return entries;
}

bool is_complete(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / kManifestFile, ignored);
}

}  // namespace

fs::path folder_of(const fs::path& run, Version version) {
  return home(run) / fmt::format("{}{:08}", kPrefix, version.value);
}

fs::path run_of(const fs::path& checkpoint) {
  auto folder = fs::absolute(checkpoint).lexically_normal();
  if (folder.filename().empty()) folder = folder.parent_path();
  folder = folder.parent_path();
  return folder.filename() == kFolder ? folder.parent_path() : fs::path();
}

std::vector<Entry> list(const fs::path& run) {
  auto entries = folders(run);
  std::erase_if(entries, [](const Entry& e) { return !is_complete(e.folder); });
  return entries;
}

std::optional<Found> newest_good(const fs::path& run, std::vector<std::string>& complaints) {
  auto entries = list(run);
  std::ranges::reverse(entries);
  for (const auto& entry : entries) {
    try {
      Found found{entry.folder, read_manifest(entry.folder)};
      verify(found.folder, found.manifest);
      return found;
    } catch (const UserError& error) {
      complaints.push_back(error.what());
    }
  }
  return {};
}

void remove_old(const fs::path& run, std::size_t keep) {
  std::error_code ignored;
  const auto best = version_of(fs::read_symlink(home(run) / kBest, ignored));
  const auto complete = list(run);
  if (complete.empty()) return;
  const auto newest = complete.back().version;
  const auto first_kept =
      complete.size() > keep ? complete[complete.size() - keep].version : complete.front().version;
  for (const auto& entry : folders(run)) {
    const bool kept = is_complete(entry.folder) ? entry.version >= first_kept || entry.version == best
                                                : entry.version > newest;
    if (kept) continue;
    fs::remove(entry.folder / kManifestFile, ignored);  // first: from now on it is incomplete
    fs::remove_all(entry.folder, ignored);
  }
  for (const auto& entry : folders(run, kAside)) {
    if (entry.version <= newest) fs::remove_all(entry.folder, ignored);
  }
}

void set_newer_aside(const fs::path& run, Version start) {
  std::error_code ignored;
  for (const auto& entry : folders(run)) {
    if (entry.version <= start) continue;
    const auto aside = home(run) / fmt::format("{}{:08}", kAside, entry.version.value);
    fs::remove_all(aside, ignored);
    fs::rename(entry.folder, aside, ignored);
  }
  const auto best = version_of(fs::read_symlink(home(run) / kBest, ignored));
  if (best && *best > start) fs::remove(home(run) / kBest, ignored);
}

std::string identity(const fs::path& folder) {
  std::ifstream file(folder / kManifestFile);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return text.empty() ? "" : fmt::format("{:016x}", checksum(std::as_bytes(std::span(text))));
}

void link_best(const fs::path& run, Version version) {
  const auto temporary = home(run) / fmt::format("{}.tmp-{}", kBest, ::getpid());
  std::error_code error;
  fs::remove(temporary, error);
  fs::create_directory_symlink(folder_of(run, version).filename(), temporary, error);
  if (!error) fs::rename(temporary, home(run) / kBest, error);
  if (error)
    throw UserError(fmt::format("cannot link {}: {}", (home(run) / kBest).string(), error.message()));
}

void mark_finished(const fs::path& run, Version version, const std::string& why) {
  std::error_code ignored;
  fs::create_directories(home(run), ignored);
  AtomicFile file(home(run) / kFinished);
  const auto text = Json{{"version", version.value}, {"why", why}}.dump() + "\n";
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

void mark_running(const fs::path& run) {
  std::error_code ignored;
  fs::remove(home(run) / kFinished, ignored);
}

bool is_finished(const fs::path& run) {
  std::error_code ignored;
  return fs::exists(home(run) / kFinished, ignored);
}

}  // namespace capstan::checkpoint
