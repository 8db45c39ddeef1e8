#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "capstan/base/user_error.h"
#include "capstan/checkpoint/checkpoint.h"
#include "capstan/checkpoint/model_file.h"
#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/checkpoint/safetensors.h"
#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/output.h"

namespace capstan::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// One line about a tensor's values.
struct Row {
  std::string name;
  std::vector<std::int64_t> dims;
  double mean = 0, deviation = 0;
  std::uint64_t not_finite = 0;

  Row(std::string tensor, std::vector<std::int64_t> shape, std::span<const float> values)
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

  Json json() const {
    return {{"name", name},
            {"shape", dims},
            {"mean", mean},
            {"deviation", deviation},
            {"not_finite", not_finite}};
  }
};

void print_rows(const std::vector<Row>& rows) {
  fmt::print("\n{:<42} {:>15} {:>10} {:>10}\n", "tensor", "shape", "mean", "deviation");
  for (const auto& row : rows) {
    fmt::print("{:<42} {:>15} {:>10.3g} {:>10.3g}{}\n", row.name, shape_text(row.dims), row.mean,
               row.deviation, row.not_finite > 0 ? fmt::format("  {} not finite!", row.not_finite) : "");
  }
}

std::uint64_t bytes_of(const fs::path& folder) {
  std::uint64_t bytes = 0;
  for (const auto& file : fs::directory_iterator(folder))
    bytes += file.is_regular_file() ? file.file_size() : 0;
  return bytes;
}

// Everything of a checkpoint that is in memory at once: the weights, and the buffers.
struct Model {
  FlatLayout layout, buffer_layout;
  std::vector<float> weights, buffers;

  Model(const fs::path& folder, const checkpoint::Manifest& manifest)
      : layout(manifest.parameters), buffer_layout(manifest.buffers), weights(layout.size()) {
    const checkpoint::NamedArray array[] = {{"weights", weights}};
    checkpoint::load(folder, manifest, {0, layout.size()}, array);
    buffers = checkpoint::load_buffers(folder, manifest);
  }

  std::vector<Row> rows() const {
    std::vector<Row> list;
    const auto add = [&](const FlatLayout& l, std::span<const float> flat) {
      for (std::size_t i = 0; i < l.tensors().size(); ++i)
        list.emplace_back(l.tensors()[i].name, l.tensors()[i].dims,
                          flat.subspan(l.range(i).begin, l.range(i).size()));
    };
    add(layout, weights);
    add(buffer_layout, buffers);
    return list;
  }
};

std::string data_text(const checkpoint::Manifest& m) {
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

int show_checkpoint(const fs::path& folder, const fs::path& export_to, bool json) {
  const auto m = checkpoint::read_manifest(folder);
  checkpoint::verify(folder, m);
  const Model model(folder, m);
  if (!export_to.empty())
    checkpoint::write_model(export_to, model.layout, model.weights, model.buffer_layout, model.buffers);
  const auto rows = model.rows();
  if (json) {
    auto tensors = Json::array();
    for (const auto& row : rows) tensors.push_back(row.json());
    auto segments = Json::array();
    for (const auto& segment : m.segments)
      segments.push_back({{"batch", segment.batch}, {"steps", segment.steps}});
    auto groups = Json::object();
    for (const auto& g : m.groups) groups[g.group] = g.version.value;
    fmt::print("{}\n", json_line(Json{{"ok", true},
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
                                      {"parameters", model.layout.parameters()},
                                      {"bytes", bytes_of(folder)},
                                      {"tensors", tensors}}));
    return kSuccess;
  }
  fmt::print(
      "{}\nstep      {}\nstrategy  {}\noptimizer {}{}, schedule {}, learning rate {:g}\ndata      {}\n",
      folder.string(), m.version.value, m.strategy, m.optimizer,
      m.state.empty() ? "" : fmt::format(" with {}", fmt::join(m.state, ", ")), m.schedule, m.learning_rate,
      data_text(m));
  for (const auto& g : m.groups) fmt::print("group     {}: {} updates\n", g.group, g.version.value);
  fmt::print("model     {} parameters in {}, {:.1f} MB on disk\n", model.layout.parameters(),
             counted(model.layout.tensors().size(), "tensor"), static_cast<double>(bytes_of(folder)) / 1e6);
  fmt::print("good      every checksum fits\n");
  print_rows(rows);
  if (!export_to.empty()) fmt::print("\nwritten to {}\n", export_to.string());
  return kSuccess;
}

int show_run(const fs::path& run, bool json) {
  auto list = Json::array();
  bool all_good = true;
  for (const auto& entry : checkpoint::list(run)) {
    std::string fault;
    try {
      checkpoint::verify(entry.folder, checkpoint::read_manifest(entry.folder));
    } catch (const UserError& error) {
      fault = error.what();
      all_good = false;
    }
    if (!json)
      fmt::print("step {:>8}  {:>8.1f} MB  {}\n", entry.version.value,
                 static_cast<double>(bytes_of(entry.folder)) / 1e6, fault.empty() ? "good" : fault);
    list.push_back({{"version", entry.version.value},
                    {"path", entry.folder.string()},
                    {"bytes", bytes_of(entry.folder)},
                    {"error", fault}});
  }
  const bool finished = checkpoint::is_finished(run);
  if (json) {
    fmt::print("{}\n",
               json_line(Json{
                   {"ok", all_good}, {"path", run.string()}, {"finished", finished}, {"checkpoints", list}}));
  } else {
    fmt::print("{}; capstan inspect of one of them shows more\n",
               finished ? "the run has ended" : "the run goes on, or was killed");
  }
  return all_good ? kSuccess : kFailed;
}

int show_file(const fs::path& file, bool json) {
  const auto content = checkpoint::read_safetensors(file);
  std::vector<Row> rows;
  std::uint64_t values = 0;
  for (const auto& t : content.tensors) {
    rows.emplace_back(t.name, t.dims, t.values);
    values += t.values.size();
  }
  if (json) {
    auto tensors = Json::array();
    for (const auto& row : rows) tensors.push_back(row.json());
    fmt::print("{}\n", json_line(Json{
                           {"ok", true}, {"path", file.string()}, {"values", values}, {"tensors", tensors}}));
    return kSuccess;
  }
  fmt::print("{}: {} values in {}\n", file.string(), values, counted(rows.size(), "tensor"));
  print_rows(rows);
  return kSuccess;
}

// The newest checkpoint of a run that is good, for an export.
fs::path newest_of(const fs::path& run) {
  std::vector<std::string> complaints;
  const auto found = checkpoint::newest_good(run, complaints);
  for (const auto& complaint : complaints) say("capstan: " + complaint);
  if (!found) throw UserError(fmt::format("{} has no checkpoint that is good", run.string()));
  return found->folder;
}

}  // namespace

int run_inspect(const Arguments& arguments) {
  fs::path path, export_to;
  bool json = false;
  CommandLine line("inspect",
                   "Shows what is in a checkpoint and compares every checksum; of a run, all its\n"
                   "checkpoints; or the tensors of a safetensors file.\n\n"
                   "  capstan inspect runs/NAME\n"
                   "  capstan inspect runs/NAME/checkpoints/step-00000500\n"
                   "  capstan inspect runs/NAME --export model.pt     its newest good checkpoint\n"
                   "                                                  as a PyTorch state dict\n");
  line.add({.name = "PATH",
            .value = &path,
            .help = "A run's folder, a checkpoint's folder, or a safetensors file",
            .required = true,
            .positional = true});
  line.add({.name = "export",
            .value = &export_to,
            .help = "Write weights and buffers as a PyTorch state dict: FILE.pt or FILE.safetensors",
            .hint = "FILE"});
  line.add({.name = "json", .value = &json, .help = "Print one JSON object"});
  if (!line.parse(arguments)) return kSuccess;

  if (!export_to.empty()) checkpoint::check_model_file(export_to);
  if (!fs::exists(path)) throw UserError(fmt::format("{} does not exist", path.string()));
  if (fs::exists(path / checkpoint::kManifestFile)) return show_checkpoint(path, export_to, json);
  if (fs::is_directory(path)) {
    if (checkpoint::list(path).empty())
      throw UserError(fmt::format("{} is neither a checkpoint nor a run that has one", path.string()));
    return export_to.empty() ? show_run(path, json) : show_checkpoint(newest_of(path), export_to, json);
  }
  if (!export_to.empty()) throw UserError("--export needs a checkpoint or a run's folder");
  return show_file(path, json);
}

}  // namespace capstan::cli
