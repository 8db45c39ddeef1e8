#include "capstan/lab/resolve.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capstan/lab/names.h"
#include "capstan/lab/plan_draft.h"
#include "capstan/lab/resolve_processes.h"
#include "capstan/lab/resolve_work.h"
#include "capstan/lab/shipped_files.h"

namespace capstan::lab {
namespace {

void find_files(PlanDraft& draft) {
  auto& plan = draft.plan;
  const auto find = [&](std::filesystem::path& file, const char* option, const char* shipped) {
    if (!draft.is_given(option)) file = find_shipped("configurations", shipped);
    if (!file.empty()) file = std::filesystem::absolute(file);
  };
  find(plan.data_config, "data-config-path", "data_configurations.json");
  find(plan.model_config, "model-config-path", "model_configurations.json");
  find(plan.trainer_config, "trainer-config-path", "trainer_configurations.json");
  find(plan.server_config, "server-config-path", "parameter_server_configurations.json");
  if (!plan.data_dir.empty()) plan.data_dir = std::filesystem::absolute(plan.data_dir);
  if (!plan.save.empty()) plan.save = std::filesystem::absolute(plan.save);
}

std::string cuda_needs(const Choices& choices) {
  Names reasons;
  if (choices.cuda_trainers > 0) reasons.push_back(fmt::format("--ncudatrainer {}", choices.cuda_trainers));
  if (choices.cuda_servers > 0) reasons.push_back(fmt::format("--ncudaserver {}", choices.cuda_servers));
  if (choices.use_cuda_rpc) reasons.emplace_back("use_cuda_rpc");
  if (choices.plan.backend != "gloo") reasons.push_back("--backend " + choices.plan.backend);
  if (reasons.empty()) return "";
  return fmt::format("needs CUDA devices ({}), which this build of Capstan does not support yet",
                     fmt::join(reasons, ", "));
}

report::LabValue lab_value(const config::Value& value) {
  return std::visit(
      []<class P>(const P& place) -> report::LabValue {
        if constexpr (std::is_same_v<P, std::string*> || std::is_same_v<P, std::filesystem::path*>) {
          if (place->empty()) return nullptr;
          return std::string(*place);
        } else if constexpr (std::is_same_v<P, bool*> || std::is_same_v<P, double*>) {
          return *place;
        } else if constexpr (std::is_same_v<P, std::uint16_t*> || std::is_same_v<P, std::uint32_t*> ||
                             std::is_same_v<P, std::uint64_t*>) {
          return static_cast<std::int64_t>(*place);
        } else {
          return nullptr;
        }
      },
      value);
}

// The values of the plug-ins' entries, such as data.sample_count: the names of entries and files do not say
// what was measured.
void add_values(report::LabOptions& out, const char* kind, const Configuration& values) {
  for (const auto& [name, value] : values.values())
    out.emplace_back(fmt::format("{}.{}", kind, name),
                     std::visit([](const auto& v) { return report::LabValue(v); }, value));
}

report::LabOptions options_of(Choices& choices) {
  report::LabOptions out;
  for (const auto& setting : settings(choices)) {
    std::string name(setting.name);
    std::ranges::replace(name, '-', '_');
    out.emplace_back(std::move(name), lab_value(setting.value));
  }
  const auto& plan = choices.plan;
  if (!plan.data.empty()) add_values(out, "data", plugin_entry(plan, Kind::kData).values);
  add_values(out, "model", plugin_entry(plan, Kind::kModel).values);
  add_values(out, "trainer", plugin_entry(plan, Kind::kTrainer).values);
  if (!plan.server.empty()) add_values(out, "server", plugin_entry(plan, Kind::kServer).values);
  return out;
}

}  // namespace

Resolved resolve(const Layers& layers, const Registry& registry) {
  PlanDraft draft(layers, registry);
  find_files(draft);
  resolve_processes(draft);
  resolve_work(draft);
  if (draft.is_given("filestore")) draft.note("filestore", "is not needed: trainers meet at --master-addr");
  return {draft.plan, options_of(draft.choices), cuda_needs(draft.choices), std::move(draft.notes)};
}

}  // namespace capstan::lab
