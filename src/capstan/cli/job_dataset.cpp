#include "capstan/cli/job_dataset.h"

#include <fstream>

#include <fmt/format.h>

#include "capstan/cli/output.h"

namespace capstan::cli {
namespace {

constexpr std::string_view kWarning = "warning: ";

}  // namespace

data::DatasetOptions dataset_options(const config::JobConfig& config) {
  data::DatasetOptions options;
  options.name = config.dataset;
  options.data_dir = config.data_dir.string();
  options.seed = config.seed;
  options.augment = data::parse_augment(config.augment);
  options.strict = config.strict;
  options.image_size = config.image_size;
  return options;
}

void say_unreadable(const data::ImageSource& source, const char* kind) {
  const auto unreadable = source.unreadable();
  if (unreadable.images == 0) return;
  say(fmt::format("{}{} could not be read, and others of the class were shown instead; the first: {}",
                  kWarning, counted(unreadable.images, fmt::format("{} image", kind)), unreadable.first));
}

std::vector<std::string> warnings_in(const std::filesystem::path& log) {
  std::vector<std::string> warnings;
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(kWarning)) warnings.push_back(line.substr(kWarning.size()));
  return warnings;
}

}  // namespace capstan::cli
