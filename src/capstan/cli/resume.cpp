#include "capstan/cli/resume.h"

#include <algorithm>

#include <fmt/format.h>

#include "capstan/base/user_error.h"
#include "capstan/checkpoint/checkpoint.h"
#include "capstan/config/differences.h"
#include "capstan/config/toml_file.h"

namespace capstan::cli {
namespace {

namespace fs = std::filesystem;

// A file that cannot be read is of no job that could go on.
bool is_same_job(const fs::path& file, const config::JobConfig& config) {
  try {
    return std::ranges::all_of(config::differences(config::load(file), config),
                               [](const auto& d) { return d.rule == config::OnResume::kMayDiffer; });
  } catch (const UserError&) {
    return false;
  }
}

// The run below runs/ that was begun last and has checkpoints and the same configuration.
std::optional<fs::path> newest_such_run(const config::JobConfig& config) {
  std::vector<fs::path> runs;
  std::error_code error;
  for (fs::directory_iterator it("runs", error), end; !error && it != end; it.increment(error))
    runs.push_back(it->path());
  std::ranges::sort(runs, std::greater());
  for (const auto& run : runs) {
    if (is_same_job(run / "config.toml", config) && !checkpoint::list(run).empty()) return run;
  }
  return {};
}

}  // namespace

std::optional<Resumed> find_resume(const config::JobConfig& config, std::vector<std::string>& complaints) {
  if (config.resume.empty()) return {};
  fs::path run = config.resume;
  if (config.resume == "auto") {
    const auto found = config.train_dir.empty() ? newest_such_run(config) : config.train_dir;
    if (!found || checkpoint::list(*found).empty()) return {};
    run = *found;
  } else if (fs::exists(run / checkpoint::kManifestFile)) {
    Resumed resumed{{run, checkpoint::read_manifest(run)}, fs::absolute(run).lexically_normal()};
    checkpoint::verify(run, resumed.from.manifest);
    if (resumed.run.filename().empty()) resumed.run = resumed.run.parent_path();
    resumed.run = resumed.run.parent_path().parent_path();  // RUN/checkpoints/step-N
    return resumed;
  }
  auto found = checkpoint::newest_good(run, complaints);
  if (found) return Resumed{std::move(*found), run};
  if (complaints.empty())
    throw UserError(
        fmt::format("--resume {}: neither a checkpoint nor the folder of a run that has one", config.resume));
  throw UserError(fmt::format("--resume {}: no checkpoint of {} is good: {}", config.resume, run.string(),
                              fmt::join(complaints, "; ")));
}

}  // namespace capstan::cli
