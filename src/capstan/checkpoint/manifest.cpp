#include "capstan/checkpoint/manifest.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "capstan/checkpoint/checksum.h"
#include "capstan/user_error.h"

namespace capstan::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "capstan-checkpoint-1";
constexpr int kDeepest = 8;  // no manifest nests deeper; bounds the parser's recursion

// As text, since many readers parse JSON numbers as doubles.
std::string hex(std::uint64_t value) {
  return fmt::format("{:016x}", value);
}

std::uint64_t unhex(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size() || text.size() != 16)
    throw UserError(fmt::format("'{}' is not 16 hexadecimal digits", text));
  return value;
}

// Rejects negative numbers, fractions and booleans, which would convert silently.
std::uint64_t whole(const Json& json) {
  if (!json.is_number_unsigned())
    throw UserError(fmt::format("{} is not a whole number", json.dump().substr(0, 20)));
  return json.get<std::uint64_t>();
}

std::vector<std::uint64_t> whole_numbers(const Json& json) {
  std::vector<std::uint64_t> list;
  for (const auto& value : json) list.push_back(whole(value));
  return list;
}

Json parse(const std::string& text) {
  return Json::parse(text, [](int depth, Json::parse_event_t, const Json&) {
    if (depth > kDeepest) throw UserError("it is truncated or damaged");
    return true;
  });
}

Json to_json(const std::vector<TensorShape>& shapes) {
  auto list = Json::array();
  for (const auto& s : shapes) {
    list.push_back({{"name", s.name}, {"shape", s.dims}});
    if (s.sparse) list.back()["sparse"] = true;
  }
  return list;
}

std::vector<TensorShape> shapes(const Json& json) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 48;
  std::vector<TensorShape> list;
  for (const auto& s : json) {
    auto& shape = list.emplace_back(s.at("name").get<std::string>(), std::vector<std::int64_t>{});
    std::uint64_t elements = 1;
    for (const auto dim : whole_numbers(s.at("shape"))) {
      if (dim > kMost || (dim > 0 && elements > kMost / dim))
        throw UserError(fmt::format("tensor {} is too large", shape.name));
      elements *= dim;
      shape.dims.push_back(static_cast<std::int64_t>(dim));
    }
    shape.sparse = s.value("sparse", false);
    if (shape.sparse && shape.dims.size() != 2)
      throw UserError(fmt::format("tensor {} has sparse gradients and not two dimensions", shape.name));
  }
  return list;
}

Json body(const Manifest& m) {
  Json json = {{"format", kFormat},
               {"version", m.version.value},
               {"strategy", m.strategy},
               {"optimizer", m.optimizer},
               {"optimizer_state", m.state},
               {"schedule", m.schedule},
               {"learning_rate", m.learning_rate}};
  auto segments = Json::array();
  for (const auto& segment : m.segments)
    segments.push_back({{"batch", segment.batch}, {"steps", segment.steps}});
  json["data"] = {
      {"samples", m.samples}, {"seed", m.seed}, {"trained_samples", m.trained_samples}, {"legs", segments}};
  auto marks = Json::array();
  for (const auto& mark : m.marks) {
    auto& entry = marks.emplace_back(Json{{"worker", mark.worker.value},
                                          {"incarnation", hex(mark.incarnation.value)},
                                          {"sequence", mark.sequence.value}});
    if (mark.group > 0) entry["group"] = mark.group;
  }
  json["marks"] = marks;
  if (!m.phases.empty()) {
    auto phases = Json::array();
    for (const auto& p : m.phases) phases.push_back({{"phase", p.name}, {"tensors", p.globs}});
    json["phases"] = phases;
  }
  if (!m.groups.empty()) {
    auto groups = Json::array();
    for (const auto& g : m.groups) groups.push_back({{"group", g.group}, {"version", g.version.value}});
    json["groups"] = groups;
  }
  json["parameters"] = to_json(m.parameters);
  json["statistics"] = to_json(m.buffers);
  auto pieces = Json::array();
  for (const auto& p : m.pieces) {
    pieces.push_back({{"file", p.file},
                      {"key", p.key},
                      {"array", p.array},
                      {"tensor", p.tensor},
                      {"elements", {p.elements.begin, p.elements.end}},
                      {"xxh3", hex(p.checksum)}});
  }
  json["tensors"] = pieces;
  return json;
}

std::string checksum_of(const Json& json) {
  const auto text = json.dump();
  return hex(checksum(std::as_bytes(std::span(text))));
}

Manifest read(const Json& json) {
  Manifest m;
  m.version = {whole(json.at("version"))};
  json.at("strategy").get_to(m.strategy);
  json.at("optimizer").get_to(m.optimizer);
  json.at("optimizer_state").get_to(m.state);
  json.at("schedule").get_to(m.schedule);
  json.at("learning_rate").get_to(m.learning_rate);
  const auto& data = json.at("data");
  m.samples = whole(data.at("samples"));
  m.seed = whole(data.at("seed"));
  m.trained_samples = whole(data.at("trained_samples"));
  for (const auto& segment : data.at("legs")) {
    auto& l = m.segments.emplace_back();
    l.batch = whole(segment.at("batch"));
    l.steps = whole_numbers(segment.at("steps"));
    if (l.batch == 0 || l.steps.empty()) throw UserError("a data segment has no workers or no batch size");
    if (!is_possible(l)) throw UserError("a data segment is too large");
  }
  if (json.contains("phases")) {
    for (const auto& p : json.at("phases"))
      m.phases.push_back({p.at("phase").get<std::string>(), p.at("tensors").get<std::vector<std::string>>()});
  }
  if (json.contains("groups")) {
    for (const auto& g : json.at("groups"))
      m.groups.push_back({g.at("group").get<std::string>(), {whole(g.at("version"))}});
    if (m.groups.empty() || m.groups[0].version != m.version)
      throw UserError("the version of its first group is not the checkpoint's");
  }
  for (const auto& mark : json.at("marks")) {
    const auto worker = whole(mark.at("worker"));
    if (worker > std::numeric_limits<std::uint32_t>::max())
      throw UserError(fmt::format("{} is not the rank of a worker", worker));
    m.marks.push_back({{static_cast<std::uint32_t>(worker)},
                       {unhex(mark.at("incarnation").get<std::string>())},
                       {whole(mark.at("sequence"))}});
    if (!mark.contains("group")) continue;
    const auto group = whole(mark.at("group"));
    if (group >= std::max<std::size_t>(1, m.groups.size()))
      throw UserError(fmt::format("a mark is of group {}, which does not exist", group));
    m.marks.back().group = static_cast<std::uint32_t>(group);
  }
  m.parameters = shapes(json.at("parameters"));
  m.buffers = shapes(json.at("statistics"));
  for (const auto& p : json.at("tensors")) {
    auto& piece = m.pieces.emplace_back();
    p.at("file").get_to(piece.file);
    p.at("key").get_to(piece.key);
    p.at("array").get_to(piece.array);
    p.at("tensor").get_to(piece.tensor);
    piece.elements = {whole(p.at("elements").at(0)), whole(p.at("elements").at(1))};
    piece.checksum = unhex(p.at("xxh3").get<std::string>());
    const auto& owners = piece.array == "statistics" ? m.buffers : m.parameters;
    const auto owner = std::ranges::find(owners, piece.tensor, &TensorShape::name);
    if (owner == owners.end())
      throw UserError(fmt::format("a piece is of tensor {}, which it does not list", piece.tensor));
    if (piece.elements.begin > piece.elements.end || piece.elements.end > owner->elements())
      throw UserError(fmt::format("a piece is outside of tensor {}", piece.tensor));
    if (piece.file.find('/') != std::string::npos || piece.file.empty() || piece.file[0] == '.')
      throw UserError(fmt::format("'{}' is not the name of a file in this folder", piece.file));
  }
  check_complete(m);
  return m;
}

}  // namespace

std::vector<Version> Manifest::versions_of(const std::vector<std::string>& names) const {
  if (!std::ranges::equal(groups, names, {}, &GroupVersion::group))
    return std::vector<Version>(names.size(), version);
  std::vector<Version> versions;
  for (const auto& g : groups) versions.push_back(g.version);
  return versions;
}

std::vector<HighWaterMark> Manifest::marks_of(const std::vector<std::string>& names) const {
  if (std::ranges::equal(groups, names, {}, &GroupVersion::group)) return marks;
  std::vector<HighWaterMark> all;
  for (auto mark : marks) {
    if (mark.group != 0) continue;
    for (mark.group = 0; mark.group < names.size(); ++mark.group) all.push_back(mark);
  }
  return all;
}

void check_complete(const Manifest& manifest) {
  std::map<std::pair<std::string, std::string>, std::vector<Range>> found;
  for (const auto& p : manifest.pieces) found[{p.array, p.tensor}].push_back(p.elements);
  const auto check = [&](const std::string& array, const std::vector<TensorShape>& tensors) {
    for (const auto& tensor : tensors) {
      auto& ranges = found[{array, tensor.name}];
      std::ranges::sort(ranges, {}, [](const Range& r) { return std::pair(r.begin, r.end); });
      std::uint64_t at = 0;
      for (const auto& r : ranges) {
        if (r.begin != at) break;
        at = r.end;
      }
      if (at != tensor.elements() || (!ranges.empty() && ranges.back().end != at))
        throw UserError(fmt::format("it does not list every element of {} of tensor {} exactly once", array,
                                    tensor.name));
    }
  };
  check("weights", manifest.parameters);
  for (const auto& array : manifest.state) check(array, manifest.parameters);
  check("statistics", manifest.buffers);
}

std::string to_json(const Manifest& manifest) {
  auto json = body(manifest);
  json["checksum"] = checksum_of(json);
  return json.dump(1) + "\n";
}

Manifest parse_manifest(const std::string& text, const std::string& name) {
  const auto fail = [&](const std::string& why) {
    throw UserError(fmt::format("{} is not a valid manifest: {}", name, why));
  };
  try {
    auto json = parse(text);
    if (!json.is_object() || json.value("format", "") != kFormat)
      fail("it is not the manifest of a Capstan checkpoint");
    const auto said = json.value("checksum", "");
    json.erase("checksum");
    if (said != checksum_of(json)) fail("its checksum does not match");
    return read(json);
  } catch (const Json::exception&) {
    fail("it is truncated or damaged");
  } catch (const UserError& error) {
    if (std::string_view(error.what()).starts_with(name)) throw;
    fail(error.what());
  }
  return {};
}

}  // namespace capstan::checkpoint
