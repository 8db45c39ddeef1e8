#pragma once

#include <filesystem>

#include "capstan/report/lab.h"

namespace capstan::report {

// Reads a result from its file, or from the file of a known name in a folder (lab.json). Throws UserError if
// there is none, if the file is not complete, or if it is a kind of result that cannot be shown yet. To add a
// kind, add a line to the table in result_file.cpp, and its reader.
LabFile read_result(const std::filesystem::path& path);

}  // namespace capstan::report
