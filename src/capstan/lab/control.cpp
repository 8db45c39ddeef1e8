#include "capstan/lab/control.h"

#include <limits>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace capstan::lab {
namespace {

using Json = nlohmann::json;

constexpr const char* kKinds[] = {"prepare", "run", "report"};

Json json_of(const ProcessReport& report) {
  auto series = Json::array();
  for (const auto& s : report.series)
    series.push_back({{"type", s.type}, {"name", s.name}, {"unit", s.unit}, {"values", s.values}});
  return {{"begin_ns", report.begin_ns},
          {"end_ns", report.end_ns},
          {"steps", report.steps},
          {"samples", report.samples},
          {"loss", report.loss},  // null if it is not finite
          {"bytes_pushed", report.bytes_pushed},
          {"bytes_pulled", report.bytes_pulled},
          {"hidden", report.hidden ? Json(*report.hidden) : Json()},
          {"series", std::move(series)}};
}

ProcessReport report_of(const Json& json) {
  ProcessReport report;
  report.begin_ns = json.at("begin_ns");
  report.end_ns = json.at("end_ns");
  report.steps = json.at("steps");
  report.samples = json.at("samples");
  report.loss =
      json.at("loss").is_null() ? std::numeric_limits<double>::quiet_NaN() : json.at("loss").get<double>();
  report.bytes_pushed = json.at("bytes_pushed");
  report.bytes_pulled = json.at("bytes_pulled");
  if (!json.at("hidden").is_null()) report.hidden = json.at("hidden").get<double>();
  for (const auto& s : json.at("series"))
    report.series.push_back({s.at("type"), s.at("name"), s.at("unit"), s.at("values")});
  return report;
}

template <class Read>
auto parsed(const std::string& line, Read read) {
  try {
    return read(Json::parse(line));
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error("not a line of the lab's protocol: " + line.substr(0, 200));
  }
}

}  // namespace

std::string Command::line() const {
  Json json{{"do", kKinds[static_cast<int>(kind)]}};
  if (kind == Kind::kPrepare) {
    json["run"] = run;
    json["group"] = group;
    json["servers"] = servers;
  }
  return json.dump() + "\n";
}

Command Command::parse(const std::string& line) {
  return parsed(line, [](const Json& json) {
    Command command;
    const auto& kind = json.at("do");
    command.kind = kind == kKinds[0] ? Kind::kPrepare : kind == kKinds[1] ? Kind::kRun : Kind::kReport;
    if (command.kind == Kind::kPrepare) {
      command.run = json.at("run");
      command.group = json.at("group");
      command.servers = json.at("servers").get<std::vector<std::string>>();
    }
    return command;
  });
}

std::string Answer::line() const {
  Json json = Json::object();
  if (started) json = {{"started", true}, {"group", address}};
  if (ready) json = {{"ready", true}, {"address", address}};
  if (progress) json = {{"step", progress->step}, {"of", progress->of}};
  if (done) json["done"] = json_of(*done);
  return json.dump() + "\n";
}

Answer Answer::parse(const std::string& line) {
  return parsed(line, [](const Json& json) {
    Answer answer;
    answer.started = json.contains("started");
    answer.ready = json.contains("ready");
    if (answer.started) answer.address = json.at("group");
    if (answer.ready) answer.address = json.at("address");
    if (json.contains("step")) answer.progress = {json.at("step"), json.at("of")};
    if (json.contains("done")) answer.done = report_of(json.at("done"));
    return answer;
  });
}

}  // namespace capstan::lab
