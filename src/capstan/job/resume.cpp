#include "capstan/job/resume.h"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include "capstan/checkpoint/checkpoint.h"
#include "capstan/config/differences.h"
#include "capstan/config/toml_file.h"
#include "capstan/job/run_record.h"
#include "capstan/user_error.h"

namespace capstan::job {
namespace {

namespace fs = std::filesystem;
using config::Difference;
using config::OnResume;

bool is_checkpoint(const fs::path& folder) {
  return fs::exists(folder / checkpoint::kManifestFile);
}

std::string shown(const std::string& value) {
  return value.empty() ? "none" : value;
}

// The fields that make a run another job; none if its configuration cannot be read.
std::optional<std::vector<Difference>> obstacles(const fs::path& run, const config::JobConfig& config) {
  try {
    auto list = config::differences(config::load(run / kConfiguration), config);
    std::erase_if(list, [](const auto& d) { return d.rule == OnResume::kMayDiffer; });
    return list;
  } catch (const UserError&) {
    return {};
  }
}

// Runs that have checkpoints, the newest first.
std::vector<fs::path> resumable(const fs::path& runs) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(runs, error), end; !error && it != end; it.increment(error)) {
    if (!checkpoint::list(it->path()).empty()) found.push_back(it->path());
  }
  std::ranges::sort(found, std::greater());
  return found;
}

}  // namespace

fs::path run_of(const fs::path& path) {
  return is_checkpoint(path) ? checkpoint::run_of(path) : path;
}

fs::path configuration_of(const fs::path& path) {
  if (path.empty()) return {};
  const auto run = run_of(path);
  const auto file = run / kConfiguration;
  return !run.empty() && fs::exists(file) && !fs::is_empty(file) ? file : fs::path();
}

fs::path configuration_to_resume(const fs::path& path) {
  const auto file = configuration_of(path);
  if (!file.empty() || is_checkpoint(path) || checkpoint::list(path).empty()) return file;
  int number = 0;
  while (fs::exists(path / older_configuration(number + 1))) ++number;
  throw UserError(fmt::format(
      "{} has no {}: pass --config {}", path.string(), kConfiguration,
      number > 0 ? (path / older_configuration(number)).string() + ", the run's previous configuration"
                 : "FILE with the run's configuration"));
}

void check_no_run(const fs::path& folder) {
  if (folder.empty() || !fs::exists(folder / "metrics.jsonl")) return;
  throw UserError(fmt::format("{} holds a run already{}", folder.string(),
                              checkpoint::list(folder).empty()
                                  ? ", without a checkpoint to resume from: choose another --train-dir"
                                  : ": choose another --train-dir, or continue it with --resume auto"));
}

SameJob find_same_job(const fs::path& runs, const config::JobConfig& config) {
  std::optional<std::pair<fs::path, std::vector<Difference>>> closest;
  for (const auto& run : resumable(runs)) {
    auto list = obstacles(run, config);
    if (!list) continue;
    if (list->empty()) return {run, {}};
    if (!closest || list->size() < closest->second.size()) closest.emplace(run, std::move(*list));
  }
  if (!closest) return {};
  std::vector<std::string> why;
  for (const auto& d : closest->second)
    why.push_back(
        fmt::format("--{} is {} in that run, {} in this job", d.name, shown(d.before), shown(d.now)));
  return {{}, fmt::format("the closest is {}: {}", closest->first.string(), fmt::join(why, ", "))};
}

std::vector<std::string> changes(const fs::path& run, const config::JobConfig& now) {
  const auto file = configuration_of(run);
  if (file.empty()) return {};
  std::vector<std::string> lines, impossible;
  for (const auto& d : config::differences(config::load(file), now)) {
    auto& list = d.may_differ() ? lines : impossible;
    list.push_back(fmt::format("--{} {} (before: {})", d.name, shown(d.now), shown(d.before)));
  }
  if (!impossible.empty())
    throw UserError(
        fmt::format("{} cannot be resumed with {}", run_of(run).string(), fmt::join(impossible, ", ")));
  return lines;
}

bool has_made_an_update(const fs::path& run) {
  if (!checkpoint::list(run).empty()) return true;
  if (!fs::exists(run / "weights.safetensors")) return false;
  // A run that ended before its first update has saved its initial weights.
  std::ifstream metrics(run / "metrics.jsonl");
  for (std::string line; std::getline(metrics, line);)
    if (line.find("\"steps\":0,") != std::string::npos) return false;
  return true;
}

std::optional<Resumed> find_resume(const config::JobConfig& config, std::vector<std::string>& complaints) {
  const bool automatic = config.resume == "auto";
  const fs::path path = automatic ? config.train_dir : fs::path(config.resume);
  if (path.empty() || (automatic && checkpoint::list(path).empty())) return {};
  if (is_checkpoint(path)) {
    Resumed resumed{{path, checkpoint::read_manifest(path)}, run_of(path)};
    checkpoint::verify(path, resumed.from.manifest);
    return resumed;
  }
  if (auto found = checkpoint::newest_good(path, complaints)) return Resumed{std::move(*found), path};
  if (complaints.empty())
    throw UserError(
        fmt::format("--resume {}: neither a checkpoint nor the folder of a run that has one", config.resume));
  throw UserError(fmt::format("--resume {}: no valid checkpoint in {}: {}", config.resume, path.string(),
                              fmt::join(complaints, "; ")));
}

}  // namespace capstan::job
