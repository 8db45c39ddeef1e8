#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace capstan::data {

// Finds a dataset's folder: `data_dir` or `data_dir`/`name`, without data_dir data/`name`; and in each of
// them the first existing one of `folders`, if any. Returns the first that contains `sign`, a file (which may
// end in .gz) or folder. Throws UserError that names what is missing, where, and `remedy`.
std::filesystem::path locate(const std::string& data_dir, std::string_view name,
                             std::span<const std::string_view> folders, std::string_view sign,
                             std::string_view remedy);

// The remedy for datasets that `capstan data get` can fetch.
std::string fetched_by_get(std::string_view name);

}  // namespace capstan::data
