#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace capstan::data {

// Where a dataset's files may be: `data_dir` or `data_dir`/`name`, without data_dir data/`name`; and in each
// of them the first of `folders` that is there, if any. Returns the first place that holds `sign`, a file or
// folder (a file may end in .gz). Throws UserError that says what was looked for, where, and `remedy`.
std::filesystem::path locate(const std::string& data_dir, std::string_view name,
                             std::span<const std::string_view> folders, std::string_view sign,
                             std::string_view remedy);

// The remedy for what `capstan data get` fetches.
std::string fetched_by_get(std::string_view name);

}  // namespace capstan::data
