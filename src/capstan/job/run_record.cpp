#include "capstan/job/run_record.h"

#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "capstan/base/json.h"
#include "capstan/base/text.h"
#include "capstan/checkpoint/atomic_file.h"
#include "capstan/checkpoint/model_file.h"

namespace capstan::job {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

std::string older_configuration(int number) {
  return fmt::format("config.{}.toml", number);
}

RunRecord::RunRecord(metrics::RunFolder folder) : folder_(std::move(folder)) {}

void RunRecord::write_configuration(const std::string& toml) {
  const auto earlier = text_of(path() / kConfiguration);
  if (earlier == toml) return;
  checkpoint::AtomicFile current(path() / kConfiguration);
  current.write(std::as_bytes(std::span(toml)));
  std::optional<checkpoint::AtomicFile> kept;
  if (!earlier.empty()) {
    int number = 1;
    while (fs::exists(path() / older_configuration(number))) ++number;
    kept.emplace(path() / older_configuration(number)).write(std::as_bytes(std::span(earlier)));
  }
  current.commit();
  if (kept) kept->commit();
}

void RunRecord::write_aliases(const checkpoint::Aliases& aliases) {
  checkpoint::write_aliases(path(), aliases);
  aliases_ = aliases;
}

void RunRecord::write_weights(const FlatLayout& layout, std::span<const float> weights,
                              const FlatLayout& buffer_layout, std::span<const float> buffers) {
  checkpoint::write_model(path() / "weights.safetensors", layout, weights, buffer_layout, buffers, aliases_);
}

void RunRecord::resumed(Version from) {
  folder_.append(json_line(Json{{"kind", "resume"}, {"step", from.value}}));
}

void RunRecord::progress(const wire::StatusReport& status) {
  folder_.append(json_line(Json{{"kind", "progress"},
                                {"step", status.version.value},
                                {"seconds", status.seconds},
                                {"samples", status.samples},
                                {"train_loss", status.loss}}));
}

void RunRecord::checkpoint(Version version) {
  folder_.append(json_line(Json{{"kind", "checkpoint"}, {"step", version.value}}));
}

void RunRecord::evaluation(const EvaluationRecord& record) {
  Json json{{"kind", "evaluation"},
            {"epoch", record.epoch},
            {"step", record.version.value},
            {"seconds", record.seconds},
            {"samples", record.samples}};
  record.test.add_to(json);
  folder_.append(json_line(json));
}

void RunRecord::result(const TrainResult& result) {
  folder_.append(result.json());
}

}  // namespace capstan::job
