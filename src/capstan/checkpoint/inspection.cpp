#include "capstan/checkpoint/inspection.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "capstan/base/text.h"
#include "capstan/checkpoint/aliases.h"
#include "capstan/checkpoint/checkpoint.h"
#include "capstan/checkpoint/model_file.h"
#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/checkpoint/safetensors.h"
#include "capstan/user_error.h"

namespace capstan::checkpoint {
namespace {

namespace fs = std::filesystem;

std::string table(const std::vector<TensorSummary>& tensors) {
  auto text = fmt::format("\n{:<42} {:>15} {:>10} {:>10}\n", "tensor", "shape", "mean", "deviation");
  for (const auto& t : tensors) {
    text += fmt::format("{:<42} {:>15} {:>10.3g} {:>10.3g}{}\n", t.name, shape_text(t.dims), t.mean,
                        t.deviation, t.not_finite > 0 ? fmt::format("  {} not finite!", t.not_finite) : "");
  }
  return text;
}

Json list(const std::vector<TensorSummary>& tensors) {
  auto rows = Json::array();
  for (const auto& t : tensors) rows.push_back(t.json());
  return rows;
}

std::uint64_t bytes_of(const fs::path& folder) {
  std::uint64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(folder))
    bytes += file.is_regular_file() ? file.file_size() : 0;
  return bytes;
}

double megabytes(std::uint64_t bytes) {
  return static_cast<double>(bytes) / 1e6;
}

void summarize(const FlatLayout& layout, std::span<const float> flat, std::vector<TensorSummary>& tensors) {
  for (std::size_t i = 0; i < layout.tensors().size(); ++i)
    tensors.emplace_back(layout.tensors()[i].name, layout.tensors()[i].dims,
                         flat.subspan(layout.range(i).begin, layout.range(i).size()));
}

std::string data_text(const Manifest& m) {
  if (m.samples == 0) return "no training set of its own";
  auto text = fmt::format("{} samples, seed {}, {:.2f} epochs trained", m.samples, m.seed,
                          static_cast<double>(m.trained_samples) / static_cast<double>(m.samples));
  for (const auto& segment : m.segments) {
    const auto [least, most] = std::ranges::minmax(segment.steps);
    text += fmt::format("\n          {} of batch size {}: {} steps each",
                        counted(segment.workers(), "worker"), segment.batch,
                        least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most));
  }
  return text;
}

}  // namespace

TensorSummary::TensorSummary(std::string tensor, std::vector<std::int64_t> shape,
                             std::span<const float> values)
    : name(std::move(tensor)), dims(std::move(shape)) {
  double sum = 0, squares = 0;
  for (const double v : values) {
    if (!std::isfinite(v)) {
      ++not_finite;
      continue;
    }
    sum += v;
    squares += v * v;
  }
  const auto count = static_cast<double>(std::max<std::uint64_t>(1, values.size() - not_finite));
  mean = sum / count;
  deviation = std::sqrt(std::max(0.0, squares / count - mean * mean));
}

Json TensorSummary::json() const {
  return {
      {"name", name}, {"shape", dims}, {"mean", mean}, {"deviation", deviation}, {"not_finite", not_finite}};
}

CheckpointInspection inspect_checkpoint(const fs::path& folder, const fs::path& export_to) {
  const auto manifest = read_manifest(folder);
  verify(folder, manifest);
  const FlatLayout layout(manifest.parameters), buffer_layout(manifest.buffers);
  std::vector<float> weights(layout.size());
  const NamedArray array[] = {{"weights", weights}};
  load(folder, manifest, {0, layout.size()}, array);
  const auto buffers = load_buffers(folder, manifest);
  if (!export_to.empty())
    write_model(export_to, layout, weights, buffer_layout, buffers, read_aliases(run_of(folder)));

  CheckpointInspection inspection{folder, manifest, bytes_of(folder), {}, export_to};
  summarize(layout, weights, inspection.tensors);
  summarize(buffer_layout, buffers, inspection.tensors);
  return inspection;
}

std::string CheckpointInspection::text() const {
  const auto& m = manifest;
  auto text = fmt::format(
      "{}\nstep      {}\nstrategy  {}\noptimizer {}{}, schedule {}, learning rate {:g}\ndata      {}\n",
      folder.string(), m.version.value, m.strategy, m.optimizer,
      m.state.empty() ? "" : fmt::format(" with {}", fmt::join(m.state, ", ")), m.schedule, m.learning_rate,
      data_text(m));
  for (const auto& g : m.groups) text += fmt::format("group     {}: {} updates\n", g.group, g.version.value);
  text +=
      fmt::format("model     {} parameters in {}, {:.1f} MB on disk\n", FlatLayout(m.parameters).parameters(),
                  counted(m.parameters.size(), "tensor"), megabytes(bytes));
  text += "good      every checksum fits\n" + table(tensors);
  if (!exported_to.empty()) text += fmt::format("\nwritten to {}\n", exported_to.string());
  return text;
}

Json CheckpointInspection::json() const {
  const auto& m = manifest;
  auto segments = Json::array();
  for (const auto& segment : m.segments)
    segments.push_back({{"batch", segment.batch}, {"steps", segment.steps}});
  auto groups = Json::object();
  for (const auto& g : m.groups) groups[g.group] = g.version.value;
  return {{"ok", true},
          {"path", folder.string()},
          {"version", m.version.value},
          {"strategy", m.strategy},
          {"groups", groups},
          {"optimizer", m.optimizer},
          {"optimizer_state", m.state},
          {"schedule", m.schedule},
          {"learning_rate", m.learning_rate},
          {"samples", m.samples},
          {"seed", m.seed},
          {"trained_samples", m.trained_samples},
          {"legs", segments},
          {"parameters", FlatLayout(m.parameters).parameters()},
          {"bytes", bytes},
          {"tensors", list(tensors)}};
}

RunInspection inspect_run(const fs::path& run) {
  RunInspection inspection{run, {}, false};
  for (const auto& entry : checkpoint::list(run)) {
    RunInspection::Row row{entry.version, entry.folder, bytes_of(entry.folder), ""};
    try {
      verify(entry.folder, read_manifest(entry.folder));
    } catch (const UserError& error) {
      row.fault = error.what();
    }
    inspection.checkpoints.push_back(std::move(row));
  }
  inspection.finished = is_finished(run);
  return inspection;
}

bool RunInspection::good() const {
  return std::ranges::all_of(checkpoints, [](const Row& row) { return row.fault.empty(); });
}

std::string RunInspection::text() const {
  std::string text;
  for (const auto& row : checkpoints)
    text += fmt::format("step {:>8}  {:>8.1f} MB  {}\n", row.version.value, megabytes(row.bytes),
                        row.fault.empty() ? "good" : row.fault);
  return text + (finished ? "the run has ended" : "the run is active or was killed") +
         "; capstan inspect of one of them shows more\n";
}

Json RunInspection::json() const {
  auto rows = Json::array();
  for (const auto& row : checkpoints)
    rows.push_back({{"version", row.version.value},
                    {"path", row.folder.string()},
                    {"bytes", row.bytes},
                    {"error", row.fault}});
  return {{"ok", good()}, {"path", run.string()}, {"finished", finished}, {"checkpoints", rows}};
}

FileInspection inspect_file(const fs::path& safetensors) {
  FileInspection inspection{safetensors, 0, {}};
  const SafetensorsReader reader(safetensors);
  for (std::size_t i = 0; i < reader.tensors(); ++i) {
    const auto t = reader.read(i);
    inspection.tensors.emplace_back(t.name, t.dims, t.values);
    inspection.values += t.values.size();
  }
  return inspection;
}

std::string FileInspection::text() const {
  return fmt::format("{}: {} values in {}\n", file.string(), values, counted(tensors.size(), "tensor")) +
         table(tensors);
}

Json FileInspection::json() const {
  return {{"ok", true}, {"path", file.string()}, {"values", values}, {"tensors", list(tensors)}};
}

}  // namespace capstan::checkpoint
