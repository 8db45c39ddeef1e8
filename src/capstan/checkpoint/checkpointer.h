#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "capstan/base/time.h"
#include "capstan/checkpoint/background.h"
#include "capstan/checkpoint/checkpoint.h"

namespace capstan::checkpoint {

struct CheckpointOptions {
  std::filesystem::path run;      // the run's folder; empty: no checkpoints
  std::uint64_t every_steps = 0;  // in updates; 0: not by steps
  Duration every_time = {};       // 0: not by time
  std::size_t keep = 3;           // older ones are removed

  bool is_on() const { return !run.empty(); }
};

// The state of the checkpoint that is being made.
enum class CheckpointState : std::uint8_t {
  kIdle,               // no checkpoint is being made
  kCollectingBuffers,  // servers copy and write their parts; the first waits for the workers' buffers
  kWriting,            // parts are missing
  kPublishing,         // all parts are written; the manifest follows
  kRemoving            // failed: its files are being removed
};
// The one table of transitions.
bool may_follow(CheckpointState from, CheckpointState to);

// A shard's arrays at one version: the weights, then the optimizer's state.
class Snapshot {
 public:
  Snapshot(std::size_t arrays, std::size_t size);
  std::vector<float*> destinations() const;
  std::vector<std::span<float>> arrays() const;

 private:
  std::size_t size_;
  std::vector<std::unique_ptr<float[]>> arrays_;
};

// Writes a run's checkpoints: decides when one is due and tracks which parts are missing. Once every server
// has written its part, it writes the manifest and removes old checkpoints. Owned by the thread that
// `background` delivers to; not thread-safe.
class Checkpointer {
 public:
  // `done` runs when a checkpoint is complete or has failed.
  Checkpointer(const CheckpointOptions& options, Version start, Background& background,
               std::function<void()> done, std::function<TimePoint()> now = SteadyClock::now);

  // Whether a checkpoint is due at this version; never while one is being written.
  bool is_due(Version version) const;
  // True until the checkpoint is complete or, after a failure, removed.
  bool is_saving() const { return state_ != CheckpointState::kIdle; }
  CheckpointState state() const { return state_; }
  bool has_tried(Version version) const { return tried_ == version; }
  Version newest() const { return newest_; }           // complete; 0 for none
  const std::string& error() const { return error_; }  // of the newest attempt

  // Begins a checkpoint with parts of `servers` servers, including this one (0). Returns its folder.
  std::filesystem::path begin(Manifest manifest, std::uint32_t servers);
  // The layout of the buffers in the first server's part; empty for none.
  void describe_buffers(const FlatLayout& layout);
  // A server has written its part or failed to, or is lost.
  void written(std::uint32_t server, Version version, const std::string& error, std::vector<Piece> pieces);
  void lost(std::uint32_t server);

 private:
  struct Pending {
    Manifest manifest;
    std::filesystem::path folder;
    std::set<std::uint32_t> missing;  // servers whose part is to come
  };

  void enter(CheckpointState next);
  void finish(const std::string& error);
  void complete();
  void fail(const std::string& error);

  const CheckpointOptions options_;
  Background& background_;
  const std::function<void()> done_;
  const std::function<TimePoint()> now_;
  CheckpointState state_ = CheckpointState::kIdle;
  std::optional<Pending> pending_;
  Version newest_;
  Version tried_;
  TimePoint tried_at_;
  std::string error_;
};

// Writes one server's part; run on a background thread.
std::vector<Piece> write_part(const std::filesystem::path& folder, const FlatLayout& layout,
                              std::span<const std::string> state_names, std::uint32_t server,
                              std::uint32_t servers, Range range, Snapshot& snapshot,
                              const FlatLayout& buffers_layout = {}, std::span<const float> buffers = {});

}  // namespace capstan::checkpoint
