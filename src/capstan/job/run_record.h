#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "capstan/checkpoint/aliases.h"
#include "capstan/job/evaluation_schedule.h"
#include "capstan/job/result.h"
#include "capstan/metrics/run_folder.h"
#include "capstan/wire/messages.h"

namespace capstan::job {

inline constexpr const char* kConfiguration = "config.toml";  // in a run's folder
inline constexpr const char* kDataset = "dataset.json";       // how the run encodes and normalises its data
std::string older_configuration(int number);                  // "config.1.toml" for the oldest

// Writes a run's folder, except checkpoints: config.toml, dataset.json, aliases.json, versions.json,
// weights.safetensors, and a line of metrics.jsonl for each event. Not thread-safe.
class RunRecord {
 public:
  explicit RunRecord(metrics::RunFolder folder);

  const std::filesystem::path& path() const { return folder_.path(); }
  // Throws UserError if it cannot be written; then the earlier configuration stays. A different earlier
  // configuration of the same run is kept as config.1.toml, the next as config.2.toml, and so on.
  void write_configuration(const std::string& toml);
  // Other names of tensors, for the weights. Throws UserError if they cannot be written.
  void write_aliases(const checkpoint::Aliases& aliases);
  // Throws UserError if the file cannot be written.
  void write_weights(const FlatLayout& layout, std::span<const float> weights,
                     const FlatLayout& buffer_layout, std::span<const float> buffers);
  void write_dataset(const std::string& json) { folder_.write(kDataset, json + "\n"); }
  void write_versions(const std::string& json) { folder_.write("versions.json", json); }

  void resumed(Version from);
  void progress(const wire::StatusReport& status);
  void checkpoint(Version version);
  void evaluation(const EvaluationRecord& record);
  void result(const TrainResult& result);
  bool is_complete() const { return folder_.is_complete(); }  // every line was written

 private:
  metrics::RunFolder folder_;
  checkpoint::Aliases aliases_;
};

}  // namespace capstan::job
