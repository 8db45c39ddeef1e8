#include "capstan/data/encoding.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "capstan/base/json.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

using Parsed = nlohmann::json;

Encoding read(const Parsed& json) {
  Encoding out;
  for (const auto& column : json.at("columns"))
    out.columns.push_back(
        {column.at("name").get<std::string>(), column.value("categories", std::vector<std::string>())});
  out.targets = json.at("targets").get<std::vector<std::string>>();
  out.classes = json.at("classes").get<std::int64_t>();
  out.class_names = json.at("class_names").get<std::vector<std::string>>();
  out.statistics.mean = json.at("mean").get<std::vector<double>>();
  out.statistics.deviation = json.at("deviation").get<std::vector<double>>();
  return out;
}

bool is_possible(const Encoding& e) {
  const auto positive = [](double v) { return v > 0 && std::isfinite(v); };
  return e.classes >= 0 && e.statistics.mean.size() == e.statistics.deviation.size() &&
         std::ranges::all_of(e.statistics.deviation, positive) &&
         (e.class_names.empty() || e.class_names.size() == static_cast<std::size_t>(e.classes));
}

}  // namespace

std::string Encoding::to_json() const {
  auto list = Json::array();
  for (const auto& column : columns) {
    Json item{{"name", column.name}};
    if (!column.categories.empty()) item["categories"] = column.categories;
    list.push_back(std::move(item));
  }
  auto json = Json::object();
  json["columns"] = std::move(list);
  json["targets"] = targets;
  json["classes"] = classes;
  json["class_names"] = class_names;
  json["mean"] = statistics.mean;
  json["deviation"] = statistics.deviation;
  return json.dump();
}

Encoding Encoding::parse(const std::string& json, const std::string& name) {
  try {
    auto out = read(Parsed::parse(json));
    if (is_possible(out)) return out;
  } catch (const Parsed::exception&) {
  }
  throw UserError(fmt::format("{}: is not the description of a dataset that capstan train writes", name));
}

}  // namespace capstan::data
