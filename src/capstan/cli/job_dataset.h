#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capstan/config/job_config.h"
#include "capstan/data/dataset.h"

namespace capstan::cli {

// Which dataset a job asks for.
data::DatasetOptions dataset_options(const config::JobConfig& config);

// Warns the user of images that could not be read, if there are any; `kind` is training or test.
void say_unreadable(const data::ImageSource& source, const char* kind);

// The warnings that another process left in its log.
std::vector<std::string> warnings_in(const std::filesystem::path& log);

}  // namespace capstan::cli
