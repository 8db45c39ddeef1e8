#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capstan::data {

// Where a dataset's files may be: `data_dir` or `data_dir`/`name`, without data_dir data/`name`.
std::vector<std::filesystem::path> places(const std::string& data_dir, std::string_view name);

// Finds a dataset's folder: one of its places, or in each of them one of `folders`. Returns the first that
// contains `sign`, a file (which may end in .gz) or folder; no value if there is none.
std::optional<std::filesystem::path> find_place(const std::string& data_dir, std::string_view name,
                                                std::span<const std::string_view> folders,
                                                std::string_view sign);
// The same; throws UserError that names what is missing, where, and `remedy`.
std::filesystem::path locate(const std::string& data_dir, std::string_view name,
                             std::span<const std::string_view> folders, std::string_view sign,
                             std::string_view remedy);

// The remedy for datasets that `capstan data get` can fetch.
std::string fetched_by_get(std::string_view name);

}  // namespace capstan::data
