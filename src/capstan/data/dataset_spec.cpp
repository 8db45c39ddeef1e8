#include "capstan/data/dataset_spec.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "capstan/base/spelling.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

DatasetSpec::DatasetSpec(const std::string& text, std::span<const SpecOption> known, std::string_view form,
                         const std::string& data_dir)
    : text_(text), form_(form), data_dir_(data_dir) {
  const auto parts = split_at(text_, ':');
  if (parts.size() < 2 || parts[1].empty()) fail("it names no file");
  file_ = locate(std::string(parts[1]));
  for (std::size_t i = 2; i < parts.size(); ++i) {
    const auto equals = parts[i].find('=');
    const auto name = parts[i].substr(0, equals);
    const auto option = std::ranges::find(known, name, &SpecOption::name);
    if (option == known.end()) {
      std::vector<std::string_view> names;
      for (const auto& k : known) names.push_back(k.name);
      const auto near = nearest(name, names);
      fail(fmt::format("it has no option '{}'{}", name,
                       near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
    }
    const bool given = equals != std::string_view::npos;
    const auto value = given ? parts[i].substr(equals + 1) : std::string_view();
    if (option->has_value && value.empty()) fail(fmt::format("option '{}' needs a value", name));
    if (!option->has_value && given) fail(fmt::format("option '{}' takes no value", name));
    if (!values_.emplace(name, value).second) fail(fmt::format("option '{}' is given twice", name));
  }
}

std::string DatasetSpec::value(std::string_view option) const {
  const auto found = values_.find(option);
  return found == values_.end() ? "" : found->second;
}

std::filesystem::path DatasetSpec::locate(const std::string& path) const {
  return data_dir_.empty() ? std::filesystem::path(path) : std::filesystem::path(data_dir_) / path;
}

std::vector<std::int64_t> DatasetSpec::shape() const {
  const auto text = value("shape");
  if (text.empty()) return {};
  std::vector<std::int64_t> dims;
  for (const auto part : split_at(text, 'x')) {
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), size);
    const bool valid =
        error == std::errc{} && end == part.data() + part.size() && size >= 1 && size <= 1 << 20;
    dims.push_back(valid ? size : 0);
  }
  if (dims.size() != 3 || std::ranges::count(dims, 0) > 0)
    fail(fmt::format("shape={}: must be CxHxW, such as 1x28x28", text));
  return dims;
}

void DatasetSpec::fail(const std::string& what) const {
  throw UserError(fmt::format("dataset '{}': {}; the form is {}", text_, what, form_));
}

}  // namespace capstan::data
