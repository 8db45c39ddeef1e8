#include "capstan/config/shared_fields.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "capstan/base/text.h"
#include "capstan/config/given.h"

namespace capstan::config {
namespace {

// The file of a module is elsewhere on other hosts: members compare its name, and its digest.
constexpr std::string_view kNetwork = "network";

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

// One of the dataset's words is an absolute path, or a path with "..".
bool leaves_folder(const std::string& dataset) {
  auto words = dataset;
  for (auto& c : words) {
    if (c == ',' || c == '=') c = ':';
  }
  return std::ranges::any_of(split(words, ':'), [](const std::filesystem::path& path) {
    return path.is_absolute() || std::ranges::find(path, "..") != path.end();
  });
}

std::string text(const JobConfig& config, bool given_only) {
  auto own = config;
  std::ostringstream out;
  for (const auto& field : fields(own)) {
    if (!field.is_shared() || is_unset(field)) continue;
    if (given_only && !config.given.contains(field.name())) continue;
    auto value = text_of(field.setting.value);
    if (field.name() == kNetwork && config.has_module()) value = file_name(value);
    // Every value as a string: the reader accepts strings for every type.
    out << field.name() << " = "
        << toml::toml_formatter(toml::value<std::string>(value), toml::format_flags::allow_literal_strings)
        << "\n";
  }
  return out.str();
}

void take(JobConfig& config, const std::string& lines, const std::string& name) {
  const auto table = fields(config);
  const auto given = read_text(lines, name, table);
  for (const auto& g : given) {
    if (!g.field->is_shared())
      fail(fmt::format("{}: not a field that all processes of a job share", g.place));
    config.given.emplace(g.field->target());
  }
  apply(table, {given});
}

}  // namespace

std::string job_text(const JobConfig& config) {
  return text(config.resolved(), false);
}

std::string given_text(const JobConfig& config) {
  return text(config, true);
}

std::string contradictions(const std::string& job, const std::string& member) {
  JobConfig ours, theirs;
  take(ours, job, "the job");
  take(theirs, member, "the member");
  const auto ours_fields = fields(ours), theirs_fields = fields(theirs);
  std::string out;
  for (std::size_t i = 0; i < ours_fields.size(); ++i) {
    const auto& field = theirs_fields[i];
    if (!theirs.given.contains(field.name())) continue;
    const auto has = text_of(ours_fields[i].setting.value), gives = text_of(field.setting.value);
    if (has != gives)
      out += fmt::format("{}--{} {}: the job has {}", out.empty() ? "" : "; ", field.name(), gives,
                         has.empty() ? "none" : has);
  }
  return out;
}

void adopt(JobConfig& config, const std::string& job) {
  if (const auto differs = contradictions(job, given_text(config)); !differs.empty()) fail(differs);
  const auto own_module = config.has_module() ? config.network : "", own_dataset = config.dataset;
  take(config, job, "the job");
  if (config.network.find('/') != std::string::npos)
    fail(
        fmt::format("--network {}: the job names a file in a folder; a worker takes a name only, and the "
                    "file from its own --network",
                    config.network));
  if (file_name(own_module) == config.network) config.network = own_module;
  if (config.dataset != own_dataset && leaves_folder(config.dataset))
    fail(
        fmt::format("--dataset {}: the job names a file outside of this worker's --data-dir; give the worker "
                    "the same --dataset if it may read this file",
                    config.dataset));
}

}  // namespace capstan::config
