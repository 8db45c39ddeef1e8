#include "capstan/metrics/run_folder.h"

#include <algorithm>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "capstan/user_error.h"

namespace capstan::metrics {
namespace {

constexpr const char* kMetrics = "metrics.jsonl";
constexpr std::size_t kMostName = 100;  // the name of a dataset may contain long paths

std::filesystem::path fresh_folder(const std::string& name) {
  auto safe = name.substr(0, kMostName);
  std::ranges::replace_if(
      safe, [](char c) { return c == ':' || c == '/' || c == ' '; }, '-');
  const auto base = fmt::format("{:%Y%m%d-%H%M%S}-{}", fmt::localtime(std::time(nullptr)), safe);
  std::filesystem::create_directories("runs");
  for (int i = 1;; ++i) {
    const auto path = std::filesystem::path("runs") / (i == 1 ? base : fmt::format("{}-{}", base, i));
    if (std::filesystem::create_directory(path)) return path;
  }
}

}  // namespace

RunFolder::RunFolder(const std::filesystem::path& folder, const std::string& name, bool resumes) {
  try {
    if (folder.empty()) {
      path_ = fresh_folder(name);
    } else {
      std::filesystem::create_directories(folder);
      path_ = folder;
    }
  } catch (const std::filesystem::filesystem_error& error) {
    throw UserError(
        fmt::format("cannot create the run folder {}: {}", error.path1().string(), error.code().message()));
  }
  if (!resumes && std::filesystem::exists(path_ / kMetrics)) {
    throw UserError(fmt::format("{} holds a run already: choose another --train-dir", path_.string()));
  }
  metrics_.open(path_ / kMetrics, std::ios::app);
  if (!metrics_) throw UserError(fmt::format("cannot write {}", (path_ / kMetrics).string()));
}

void RunFolder::write(const std::string& file, const std::string& text) const {
  std::ofstream out(path_ / file);
  out << text;
  out.close();
  if (!out) throw UserError(fmt::format("cannot write {}: is the disk full?", (path_ / file).string()));
}

void RunFolder::append(const std::string& json_line) {
  metrics_ << json_line << '\n' << std::flush;
}

}  // namespace capstan::metrics
