#include "capstan/data/locate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capstan/user_error.h"

namespace capstan::data {

namespace fs = std::filesystem;

std::vector<fs::path> places(const std::string& data_dir, std::string_view name) {
  if (data_dir.empty()) return {fs::path("data") / name};
  return {fs::path(data_dir), fs::path(data_dir) / name};
}

std::optional<fs::path> find_place(const std::string& data_dir, std::string_view name,
                                   std::span<const std::string_view> folders, std::string_view sign) {
  std::error_code ignored;
  for (const auto& place : places(data_dir, name)) {
    std::vector<fs::path> inside = {place};
    for (const auto& folder : folders) inside.push_back(place / folder);
    for (const auto& candidate : inside) {
      const auto path = candidate / sign;
      if (fs::exists(path, ignored) || fs::exists(fs::path(path.string() + ".gz"), ignored)) return candidate;
    }
  }
  return {};
}

fs::path locate(const std::string& data_dir, std::string_view name, std::span<const std::string_view> folders,
                std::string_view sign, std::string_view remedy) {
  if (const auto found = find_place(data_dir, name, folders, sign)) return *found;
  std::vector<std::string> names;
  for (const auto& place : places(data_dir, name)) names.push_back(place.string());
  throw UserError(fmt::format("{}: there is no {} in {}{}; {}", name, sign, fmt::join(names, " or "),
                              data_dir.empty() ? " (--data-dir names another folder)" : "", remedy));
}

std::string fetched_by_get(std::string_view name) {
  return fmt::format("capstan data get {} fetches it", name);
}

}  // namespace capstan::data
