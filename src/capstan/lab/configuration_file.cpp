#include "capstan/lab/configuration_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "capstan/base/spelling.h"
#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

using nlohmann::json;

// The member that names the class; older files use the names that follow.
std::vector<std::string> class_keys(Kind kind) {
  switch (kind) {
    case Kind::kData:
      return {"data_class"};
    case Kind::kModel:
      return {"model_class"};
    case Kind::kTrainer:
      return {"trainer_class"};
    case Kind::kServer:
      return {"server_class", "parameter_server_class", "ps_class"};
  }
  return {};
}

[[noreturn]] void fail(const std::string& place, const std::string& what) {
  throw UserError(fmt::format("{}: {}", place, what));
}

// ": a comma before } is not valid" if that is what the parser has stumbled over, at this byte (from 1).
std::string comma_hint(const std::string& text, std::size_t byte) {
  if (byte == 0 || byte > text.size() || (text[byte - 1] != '}' && text[byte - 1] != ']')) return "";
  const auto before = text.find_last_not_of(" \t\r\n", byte >= 2 ? byte - 2 : 0);
  if (before == std::string::npos || before + 1 >= byte || text[before] != ',') return "";
  return fmt::format("; a comma before {} is not valid", text[byte - 1]);
}

// nlohmann::json keeps the last of two members with the same name.
json parse(const std::string& path) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(status)) fail(path, "no such file");
  if (!std::filesystem::is_regular_file(status)) fail(path, "is not a regular file");
  std::ifstream in(path);
  if (!in) fail(path, "cannot be read");
  const std::string text(std::istreambuf_iterator<char>(in), {});
  std::vector<std::set<std::string>> open;  // the members of each object that is being read
  std::string repeated;
  const auto check = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) open.emplace_back();
    if (event == json::parse_event_t::object_end) open.pop_back();
    if (event == json::parse_event_t::key && !open.back().insert(value.get<std::string>()).second &&
        repeated.empty())
      repeated = value.get<std::string>();
    return true;
  };
  json content;
  try {
    content = json::parse(text, check);
  } catch (const json::parse_error& error) {
    // "[json.exception.parse_error.101] parse error at line 3, column 5: …"
    const std::string what = error.what();
    const auto at = what.find("parse error at ");
    fail(path, "is not valid JSON: " + (at == std::string::npos ? what : what.substr(at + 15)) +
                   comma_hint(text, error.byte));
  }
  if (!repeated.empty()) fail(path, fmt::format("the name {} appears twice", repeated));
  if (!content.is_object()) fail(path, "must be an object of entries");
  return content;
}

Configuration::Value value_of(const json& value, const std::string& place, const std::string& key) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max())
    fail(place, fmt::format("{} is too large", key));
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  fail(place, fmt::format("{} must be a number, a text, true or false, not {}", key, value.type_name()));
}

Configuration values_of(const json& object, const std::string& place) {
  if (!object.is_object()) fail(place, "configurations must be an object");
  std::map<std::string, Configuration::Value> values;
  for (const auto& [key, value] : object.items()) values.emplace(key, value_of(value, place, key));
  return {place, std::move(values)};
}

Entry entry_of(const std::string& name, const json& object, const std::string& place, Kind kind) {
  if (!object.is_object()) fail(place, "must be an object");
  const auto keys = class_keys(kind);
  Entry entry{name, {}};
  std::string class_key;
  for (const auto& key : keys) {
    if (!object.contains(key)) continue;
    if (!class_key.empty()) fail(place, fmt::format("{} and {} name the class; give one", class_key, key));
    class_key = key;
    if (!object[key].is_string()) fail(place, fmt::format("{} must be the name of a class", key));
    entry.class_name = object[key].get<std::string>();
  }
  if (class_key.empty() && !object.contains("configurations")) {
    entry.values = values_of(object, place);
    return entry;
  }
  if (class_key.empty()) fail(place, fmt::format("{} is missing", keys[0]));
  for (const auto& [key, value] : object.items())
    if (key != class_key && key != "configurations")
      fail(place, fmt::format("{} is unknown; an entry has {} and configurations", key, keys[0]));
  entry.values = object.contains("configurations") ? values_of(object["configurations"], place)
                                                   : Configuration(place, {});
  return entry;
}

}  // namespace

ConfigurationFile::ConfigurationFile(const std::filesystem::path& path, Kind kind) : path_(path.string()) {
  const auto content = parse(path_);
  for (const auto& [name, object] : content.items())
    entries_.emplace(name, entry_of(name, object, fmt::format("{}: {}", path_, name), kind));
}

const Entry& ConfigurationFile::entry(const std::string& name) const {
  if (const auto found = entries_.find(name); found != entries_.end()) return found->second;
  const auto known = names();
  const std::vector<std::string_view> views(known.begin(), known.end());
  const auto near = nearest(name, views);
  throw UserError(fmt::format("{} has no entry {}; {}", path_, name,
                              !near.empty() ? fmt::format("did you mean {}?", near)
                                            : fmt::format("it has {}", fmt::join(known, ", "))));
}

std::vector<std::string> ConfigurationFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

}  // namespace capstan::lab
