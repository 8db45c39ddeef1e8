#include "capstan/cli/resume.h"

#include <algorithm>
#include <fstream>
#include <set>

#include <fmt/format.h>

#include "capstan/base/user_error.h"
#include "capstan/checkpoint/checkpoint.h"

namespace capstan::cli {
namespace {

namespace fs = std::filesystem;

// What a run may change when it goes on: how long, on how much, and how it is watched.
const std::set<std::string> kMayDiffer = {
    "workers",        "servers",        "epochs",    "max-steps",        "threads",
    "server-threads", "loader-threads", "transport", "checkpoint-every", "keep"};

std::set<std::string> what_makes_it(const std::string& toml) {
  std::set<std::string> lines;
  for (std::size_t begin = 0; begin < toml.size();) {
    const auto end = std::min(toml.find('\n', begin), toml.size());
    const auto line = toml.substr(begin, end - begin);
    begin = end + 1;
    if (!line.empty() && !kMayDiffer.contains(line.substr(0, line.find(' ')))) lines.insert(line);
  }
  return lines;
}

std::string read_text(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The run below runs/ that was begun last and has checkpoints and the same configuration.
std::optional<fs::path> newest_such_run(const config::JobConfig& config) {
  const auto wanted = what_makes_it(config.to_toml());
  std::vector<fs::path> runs;
  std::error_code error;
  for (fs::directory_iterator it("runs", error), end; !error && it != end; it.increment(error))
    runs.push_back(it->path());
  std::ranges::sort(runs, std::greater());
  for (const auto& run : runs) {
    if (what_makes_it(read_text(run / "config.toml")) == wanted && !checkpoint::list(run).empty()) return run;
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
