#include "capstan/checkpoint/checkpointer.h"

#include <fmt/format.h>

#include "capstan/base/check.h"
#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/user_error.h"

namespace capstan::checkpoint {

namespace fs = std::filesystem;

std::vector<Piece> write_part(const fs::path& folder, const FlatLayout& layout,
                              std::span<const std::string> state_names, std::uint32_t server,
                              std::uint32_t servers, Range range, Snapshot& snapshot,
                              const FlatLayout& buffers_layout, std::span<const float> buffers) {
  const auto arrays = snapshot.arrays();
  CAPSTAN_CHECK(arrays.size() == state_names.size() + 1,
                "the arrays are the weights and the optimizer's state");
  Shard shard{server, servers, range, {}, buffers_layout, buffers};
  for (std::size_t i = 0; i < arrays.size(); ++i)
    shard.arrays.push_back({i == 0 ? "weights" : state_names[i - 1], arrays[i]});
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw UserError(fmt::format("cannot create {}: {}", folder.string(), error.message()));
  return write_shard(folder, layout, shard);
}

Snapshot::Snapshot(std::size_t arrays, std::size_t size) : size_(size) {
  // Not zeroed: every element is written before it is read.
  for (std::size_t i = 0; i < arrays; ++i) arrays_.push_back(std::make_unique_for_overwrite<float[]>(size));
}

std::vector<float*> Snapshot::destinations() const {
  std::vector<float*> pointers;
  for (const auto& array : arrays_) pointers.push_back(array.get());
  return pointers;
}

std::vector<std::span<float>> Snapshot::arrays() const {
  std::vector<std::span<float>> spans;
  for (const auto& array : arrays_) spans.emplace_back(array.get(), size_);
  return spans;
}

bool may_follow(CheckpointState from, CheckpointState to) {
  using enum CheckpointState;
  switch (from) {
    case kIdle:
      return to == kCollectingBuffers;
    case kCollectingBuffers:
      return to == kWriting || to == kRemoving;
    case kWriting:
      return to == kPublishing || to == kRemoving;
    case kPublishing:
      return to == kIdle || to == kRemoving;
    case kRemoving:
      return to == kIdle;
  }
  return false;
}

Checkpointer::Checkpointer(const CheckpointOptions& options, Version start, Background& background,
                           std::function<void()> done, std::function<TimePoint()> now)
    : options_(options),
      background_(background),
      done_(std::move(done)),
      now_(std::move(now)),
      newest_(start),
      tried_(start),
      tried_at_(now_()) {
  if (options_.is_on()) set_newer_aside(options_.run, start);
}

void Checkpointer::enter(CheckpointState next) {
  CAPSTAN_CHECK(may_follow(state_, next), "the transition is in the table");
  state_ = next;
}

bool Checkpointer::is_due(Version version) const {
  if (!options_.is_on() || is_saving() || version == tried_) return false;
  if (options_.every_steps > 0 && version.value / options_.every_steps > tried_.value / options_.every_steps)
    return true;
  return options_.every_time > Duration{} && now_() - tried_at_ >= options_.every_time;
}

fs::path Checkpointer::begin(Manifest manifest, std::uint32_t servers) {
  enter(CheckpointState::kCollectingBuffers);
  tried_ = manifest.version;
  tried_at_ = now_();
  pending_.emplace();
  pending_->manifest = std::move(manifest);
  pending_->folder = folder_of(options_.run, tried_);
  for (std::uint32_t i = 0; i < servers; ++i) pending_->missing.insert(i);
  return pending_->folder;
}

void Checkpointer::describe_buffers(const FlatLayout& layout) {
  if (state_ != CheckpointState::kCollectingBuffers) return;
  pending_->manifest.buffers = layout.tensors();
  enter(CheckpointState::kWriting);
}

void Checkpointer::written(std::uint32_t server, Version version, const std::string& error,
                           std::vector<Piece> pieces) {
  if (!pending_ || pending_->manifest.version != version || !pending_->missing.contains(server)) return;
  if (!error.empty()) return fail(error);
  pending_->missing.erase(server);
  auto& all = pending_->manifest.pieces;
  all.insert(all.end(), std::make_move_iterator(pieces.begin()), std::make_move_iterator(pieces.end()));
  if (pending_->missing.empty()) complete();
}

void Checkpointer::lost(std::uint32_t server) {
  if (pending_ && pending_->missing.contains(server)) fail(fmt::format("server {} is lost", server));
}

void Checkpointer::complete() {
  enter(CheckpointState::kPublishing);
  background_.post(
      [folder = pending_->folder, manifest = pending_->manifest, options = options_] {
        for (const auto& piece : manifest.pieces) {
          if (!fs::exists(folder / piece.file))
            throw UserError(
                fmt::format("{} is not visible on this host: all servers need the same --train-dir on a "
                            "shared file system",
                            (folder / piece.file).string()));
        }
        check_complete(manifest);
        write_manifest(folder, manifest);
        remove_old(options.run, options.keep);
      },
      [this, version = pending_->manifest.version](const std::string& error) {
        if (!error.empty()) return fail(error);
        newest_ = version;
        finish("");
      });
}

void Checkpointer::fail(const std::string& error) {
  // Its files are removed to free space, for example on a full disk. Parts that other servers are still
  // writing may remain; the next checkpoint removes them.
  enter(CheckpointState::kRemoving);
  pending_->missing.clear();
  background_.post([folder = pending_->folder] { fs::remove_all(folder); },
                   [this, error](const std::string&) { finish(error); });
}

void Checkpointer::finish(const std::string& error) {
  enter(CheckpointState::kIdle);
  error_ = error;
  pending_.reset();
  done_();
}

}  // namespace capstan::checkpoint
