#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "capstan/checkpoint/manifest.h"

namespace capstan::checkpoint {

// The checkpoints of one run: folders `checkpoints/step-00000500` below the run's folder. Beside them, `best`
// links to the best checkpoint, and `finished.json` marks that no more will follow.

std::filesystem::path folder_of(const std::filesystem::path& run, Version version);
// The run of a checkpoint's folder; empty if it is outside of a run.
std::filesystem::path run_of(const std::filesystem::path& checkpoint);

// The complete checkpoints, oldest first; their contents are not verified.
struct Entry {
  Version version;
  std::filesystem::path folder;
};
std::vector<Entry> list(const std::filesystem::path& run);

// The newest valid checkpoint, by its checksums; `complaints` gets one line for each newer one that is
// damaged.
struct Found {
  std::filesystem::path folder;
  Manifest manifest;
};
std::optional<Found> newest_good(const std::filesystem::path& run, std::vector<std::string>& complaints);

// Removes all but the newest `keep` complete checkpoints and the target of `best`, incomplete ones older than
// the newest, and set-aside ones that the run has passed. What cannot be removed stays.
void remove_old(const std::filesystem::path& run, std::size_t keep);

// Renames checkpoints newer than `start` to `aside-…`: a run that resumes from `start` writes its own, and
// the newer ones are damaged or belong to another course of training. Removes `best` if it links to one of
// them. What cannot be renamed stays.
void set_newer_aside(const std::filesystem::path& run, Version start);

// Distinguishes two checkpoints of the same version, of which one was written after the run resumed from an
// earlier one; empty if there is none.
std::string identity(const std::filesystem::path& folder);

// Makes `best` a link to this checkpoint of the run, atomically.
void link_best(const std::filesystem::path& run, Version version);

// Marks that no more checkpoints will follow, with the reason; or that more will.
void mark_finished(const std::filesystem::path& run, Version version, const std::string& why);
void mark_running(const std::filesystem::path& run);
bool is_finished(const std::filesystem::path& run);

}  // namespace capstan::checkpoint
