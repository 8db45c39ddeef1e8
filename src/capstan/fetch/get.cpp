#include "capstan/fetch/get.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "capstan/base/check.h"
#include "capstan/base/failure.h"
#include "capstan/base/unique_fd.h"
#include "capstan/fetch/archive.h"
#include "capstan/fetch/digest.h"
#include "capstan/fetch/output_file.h"
#include "capstan/fetch/verify.h"
#include "capstan/user_error.h"

namespace capstan::fetch {
namespace {

namespace fs = std::filesystem;

constexpr int kMostTries = 4;  // per mirror, while each yields some bytes

std::uint64_t size_of(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return error ? 0 : size;
}

void discard(const fs::path& file) {
  std::error_code ignored;
  fs::remove(file, ignored);
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw UserError(fmt::format("cannot create the folder {}: {}", folder.string(), error.message()));
}

void rename_to(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0)
    throw Failure(kFailed, fmt::format("cannot create {}: {}", to.string(), std::strerror(errno)));
  sync_folder(to.has_parent_path() ? to.parent_path() : fs::path("."));
}

// One process at a time. The lock file is not removed: otherwise two processes could lock two files.
UniqueFd lock(const Entry& entry, const fs::path& data_dir) {
  const auto path = data_dir / fmt::format(".{}.lock", entry.name);
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file) throw UserError(fmt::format("{} cannot be written: {}", path.string(), std::strerror(errno)));
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    throw Failure(kFailed, fmt::format("another capstan data get is working on {}: wait until it ends",
                                       folder_of(entry, data_dir).string()));
  }
  return file;
}

std::vector<std::string> sources(const Entry& entry, const std::string& mirror) {
  if (mirror.empty()) return entry.mirrors;
  auto one = mirror;
  while (one.size() > 1 && one.ends_with('/')) one.pop_back();
  std::error_code error;
  if (!is_url(one) && !fs::is_directory(one, error))
    throw UserError(fmt::format("--mirror {}: should be http://…, https://… or a folder", mirror));
  return {one};
}

class Getter {
 public:
  Getter(const Entry& entry, const GetOptions& options)
      : entry_(entry),
        options_(options),
        folder_(folder_of(entry, options.data_dir)),
        mirrors_(sources(entry, options.mirror)) {}

  GetResult run() {
    const auto before = presence(entry_, options_.data_dir);
    if (entry_.kind == Kind::kArchive && before == Presence::kForeign) {
      throw UserError(
          fmt::format("{} exists, but was not created by capstan data get: move it away or choose another "
                      "--data-dir",
                      folder_.string()));
    }
    make_folder(entry_.kind == Kind::kArchive ? options_.data_dir : folder_);
    const auto held = lock(entry_, options_.data_dir);
    const auto state = verify(entry_, options_.data_dir);
    if (state.problems.empty()) return {entry_.name, false, folder_};
    if (before == Presence::kComplete)
      for (const auto& problem : state.problems) say(problem + ": fetching it again");
    check_space();
    for (const auto& file : entry_.files) fetch(file);
    if (entry_.kind == Kind::kArchive) unpack_archive();
    return {entry_.name, true, folder_};
  }

 private:
  void say(const std::string& line) const {
    if (options_.say) options_.say(line);
  }

  fs::path place(const RemoteFile& file) const { return place_of(entry_, file, options_.data_dir); }

  void check_space() const {
    std::uint64_t needed = 0;
    for (const auto& file : entry_.files) {
      const auto there = std::max(size_of(place(file)), size_of(part_of(place(file))));
      needed += file.bytes - std::min(there, file.bytes);
    }
    if (entry_.kind == Kind::kArchive) needed += std::max(entry_.unpacked_bytes, entry_.bytes());
    struct statvfs facts {};
    if (::statvfs(options_.data_dir.c_str(), &facts) != 0) return;
    const auto free = static_cast<std::uint64_t>(facts.f_bavail) * facts.f_frsize;
    if (needed > free) {
      throw Failure(kFailed,
                    fmt::format("{} needs {:.1f} MB more in {}, but {:.1f} MB are free: free some space or "
                                "choose another --data-dir",
                                entry_.name, static_cast<double>(needed) / 1e6, options_.data_dir.string(),
                                static_cast<double>(free) / 1e6));
    }
  }

  // Downloads from the first mirror that has the file, beginning with that of the last file.
  void fetch(const RemoteFile& file) {
    if (const auto path = find_file(entry_, file, options_.data_dir)) {
      if (is_as_published(*path, file)) return;
      // Readers prefer an unpacked file, so a wrong one must not stay beside the downloaded file.
      const auto aside = path->string() + ".old";
      rename_to(*path, aside);
      say(fmt::format("{} differs from the published file: renamed to {}", path->string(), aside));
    }
    if (file.checksum.empty())
      say(fmt::format("{}: no checksum is published, so the file is not verified", file.name));
    std::string wrong;
    for (std::size_t i = 0; i < mirrors_.size(); ++i) {
      const auto at = (mirror_ + i) % mirrors_.size();
      if (fetch_from(mirrors_[at], file, wrong)) {
        mirror_ = at;
        return;
      }
    }
    throw Failure(kFailed, no_mirror_has(file, wrong));
  }

  // `wrong` is set to the checksum of a complete file with the wrong checksum.
  bool fetch_from(const std::string& mirror, const RemoteFile& file, std::string& wrong) {
    const auto part = part_of(place(file));
    for (bool first = true;; first = false) {
      const bool continued = first && size_of(part) > 0;
      if (const auto status = transfer(mirror, file, part); !status) {
        say(fmt::format("{}/{}: {}", mirror, file.name, status.message()));
        if (status.code() != StatusCode::kMalformed) return false;
        discard(part);
        if (!continued) return false;
        continue;
      }
      if (is_as_published(part, file)) {
        rename_to(part, place(file));
        return true;
      }
      const auto found = digest_of(part, file.checksum);
      discard(part);
      if (!continued) {
        wrong = found;
        say(fmt::format("{}/{}: wrong checksum {}", mirror, file.name, wrong));
        return false;
      }
      say(fmt::format("{}: the partial download is of another file: starting over", file.name));
    }
  }

  // Retries a broken connection as long as each attempt yields more bytes.
  Status transfer(const std::string& mirror, const RemoteFile& file, const fs::path& part) const {
    Transfer t;
    t.url = mirror + "/" + file.name;
    t.part = part;
    t.most_bytes = file.unpacked_checksum.empty() ? file.bytes : 0;
    t.timeouts = options_.timeouts;
    t.interrupted = options_.interrupted;
    if (options_.progress)
      t.progress = [&](std::uint64_t done, std::uint64_t total) {
        options_.progress(file.name, done, total > 0 ? total : file.bytes);
      };
    for (int tries = 1;; ++tries) {
      const auto before = size_of(part);
      auto status = download(t);
      if (status || status.code() != StatusCode::kUnavailable || tries == kMostTries ||
          size_of(part) <= before)
        return status;
      say(fmt::format("{}: {}: retrying", t.url, status.message()));
    }
  }

  std::string no_mirror_has(const RemoteFile& file, const std::string& wrong) const {
    std::vector<std::string> names;
    for (const auto& f : entry_.files)
      if (!find_file(entry_, f, options_.data_dir)) names.push_back(f.name);
    const auto advice = fmt::format("place {} in {}, or give a mirror with --mirror", fmt::join(names, ", "),
                                    place(file).parent_path().string());
    if (wrong.empty()) return fmt::format("{} cannot be fetched: {}", entry_.name, advice);
    return fmt::format("{}: no mirror has the right {}: expected {}, found {}; {}", entry_.name, file.name,
                       file.checksum, wrong, advice);
  }

  void unpack_archive() {
    CAPSTAN_CHECK(entry_.files.size() == 1, "an archive is one file");
    const auto archive = place(entry_.files[0]);
    const auto fresh = options_.data_dir / fmt::format(".{}.unpacking", entry_.name);
    std::error_code ignored;
    fs::remove_all(fresh, ignored);
    make_folder(fresh);
    say(fmt::format("unpacking {}", entry_.files[0].name));
    try {
      auto manifest = unpack(archive, entry_.archive_folder, fresh, options_.interrupted);
      if (!manifest) throw Failure(kFailed, manifest.status().message());
      write_manifest(fresh, *manifest);
    } catch (const Failure&) {
      fs::remove_all(fresh, ignored);
      throw;
    }
    sync_all(fresh);
    set_aside_old();
    rename_to(fresh, folder_);
    discard(archive);
  }

  // One call for thousands of small files.
  static void sync_all(const fs::path& folder) {
    const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || ::syncfs(fd.get()) != 0)
      throw Failure(kFailed, fmt::format("{} cannot be written: {}", folder.string(), std::strerror(errno)));
  }

  // Removes a damaged copy, but keeps files that the user has added to it.
  void set_aside_old() const {
    std::error_code ignored;
    if (const auto old = read_manifest(folder_)) {
      for (const auto& file : old->files) fs::remove(folder_ / file.path, ignored);
      fs::remove(folder_ / kManifestName, ignored);
      remove_empty(folder_);
    }
    if (!fs::exists(folder_, ignored) || fs::is_empty(folder_, ignored)) return;
    const auto aside = folder_.string() + ".old";
    rename_to(folder_, aside);
    say(fmt::format("other files of {} were moved to {}", folder_.string(), aside));
  }

  static void remove_empty(const fs::path& folder) {
    std::error_code ignored;
    std::vector<fs::path> inner;
    for (const auto& entry : fs::directory_iterator(folder, ignored))
      if (entry.is_directory(ignored) && !entry.is_symlink(ignored)) inner.push_back(entry.path());
    for (const auto& path : inner) remove_empty(path);
    if (fs::is_empty(folder, ignored)) fs::remove(folder, ignored);
  }

  const Entry& entry_;
  const GetOptions& options_;
  const fs::path folder_;
  const std::vector<std::string> mirrors_;
  std::size_t mirror_ = 0;
};

}  // namespace

std::string GetResult::text() const {
  return fmt::format("{} is in {}{}", name, folder.string(), fetched ? "" : " already, and complete");
}

Json GetResult::json() const {
  return {{"ok", true}, {"name", name}, {"folder", folder.string()}, {"fetched", fetched}};
}

GetResult get(const Entry& entry, const GetOptions& options) {
  CAPSTAN_CHECK(entry.kind == Kind::kFiles || entry.kind == Kind::kArchive, "the dataset can be downloaded");
  return Getter(entry, options).run();
}

}  // namespace capstan::fetch
