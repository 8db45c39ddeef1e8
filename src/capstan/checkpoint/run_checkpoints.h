#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "capstan/checkpoint/manifest.h"

namespace capstan::checkpoint {

// The checkpoints of one run: folders `checkpoints/step-00000500` below the run's folder. Beside them `best`
// is a link to the best of them, and `finished.json` says that no more will come.

std::filesystem::path folder_of(const std::filesystem::path& run, Version version);

// Complete ones, the oldest first; whether their content is good is another question.
struct Entry {
  Version version;
  std::filesystem::path folder;
};
std::vector<Entry> list(const std::filesystem::path& run);

// The newest checkpoint that is good, every checksum compared, and one line for each newer one that is not.
struct Found {
  std::filesystem::path folder;
  Manifest manifest;
};
std::optional<Found> newest_good(const std::filesystem::path& run, std::vector<std::string>& complaints);

// Removes all but the newest `keep` complete checkpoints and the one `best` links to, what unfinished
// attempts older than the newest have left behind, and what was set aside and is now behind the run. What
// cannot be removed stays.
void remove_old(const std::filesystem::path& run, std::size_t keep);

// Renames checkpoints newer than `start` to `aside-…`: a run that goes on from there makes its own, and what
// it would otherwise have left are those, which are damaged or of another way. Where `best` is one of them,
// it goes. What cannot be renamed stays.
void set_newer_aside(const std::filesystem::path& run, Version start);

// Tells one checkpoint of a version from another that a run has made after it went back; empty where there
// is none.
std::string identity(const std::filesystem::path& folder);

// Makes `best` a link to this checkpoint of the run, at once as others see it.
void link_best(const std::filesystem::path& run, Version version);

// No more checkpoints will come, because `why`; or more will.
void mark_finished(const std::filesystem::path& run, Version version, const std::string& why);
void mark_running(const std::filesystem::path& run);
bool is_finished(const std::filesystem::path& run);

}  // namespace capstan::checkpoint
