#include <fmt/format.h>

#include "capstan/checkpoint/checkpoint.h"
#include "capstan/checkpoint/inspection.h"
#include "capstan/checkpoint/model_file.h"
#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/user_error.h"

namespace capstan::cli {
namespace {

namespace fs = std::filesystem;

template <class Inspection>
int show(const Inspection& inspection, bool json) {
  fmt::print("{}", json ? json_line(inspection.json()) + "\n" : inspection.text());
  return inspection.good() ? kSuccess : kFailed;
}

// The newest valid checkpoint of a run, for an export.
fs::path newest_of(const fs::path& run) {
  std::vector<std::string> complaints;
  const auto found = checkpoint::newest_good(run, complaints);
  for (const auto& complaint : complaints) say("capstan: " + complaint);
  if (!found) throw UserError(fmt::format("{} has no valid checkpoint", run.string()));
  return found->folder;
}

}  // namespace

int run_inspect(const Arguments& arguments) {
  fs::path path, export_to;
  bool json = false;
  CommandLine line("inspect",
                   "Shows the contents of a checkpoint and verifies every checksum; for a run, all\n"
                   "its checkpoints; for a safetensors file, its tensors.\n\n"
                   "  capstan inspect runs/NAME\n"
                   "  capstan inspect runs/NAME/checkpoints/step-00000500\n"
                   "  capstan inspect runs/NAME --export model.pt     its newest valid checkpoint\n"
                   "                                                  as a PyTorch state dict\n");
  line.positional("PATH", &path, "A run's folder, a checkpoint's folder, or a safetensors file").required =
      true;
  line.flag("export", &export_to,
            "Write weights and buffers as a PyTorch state dict: FILE.pt or FILE.safetensors", {}, "FILE");
  line.flag("json", &json, "Print one JSON object");
  if (!line.parse(arguments)) return kSuccess;

  if (!export_to.empty()) checkpoint::check_model_file(export_to);
  if (!fs::exists(path)) throw UserError(fmt::format("{} does not exist", path.string()));
  if (fs::exists(path / checkpoint::kManifestFile))
    return show(checkpoint::inspect_checkpoint(path, export_to), json);
  if (fs::is_directory(path)) {
    if (checkpoint::list(path).empty())
      throw UserError(fmt::format("{} is neither a checkpoint nor a run that has one", path.string()));
    if (export_to.empty()) return show(checkpoint::inspect_run(path), json);
    return show(checkpoint::inspect_checkpoint(newest_of(path), export_to), json);
  }
  if (!export_to.empty()) throw UserError("--export needs a checkpoint or a run's folder");
  return show(checkpoint::inspect_file(path), json);
}

}  // namespace capstan::cli
