#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "capstan/data/image_source.h"

namespace capstan::job {

// A line about images that could not be read, empty where there are none; `kind` is training or test.
std::string unreadable_images(const data::ImageSource& source, const char* kind);

// A line that other processes find again in this one's log.
std::string as_warning(const std::string& line);
// The warnings that another process left in its log.
std::vector<std::string> warnings_in(const std::filesystem::path& log);

// What a program of ours said before it ended, without its own name.
std::string without_name(const std::string& words);

}  // namespace capstan::job
