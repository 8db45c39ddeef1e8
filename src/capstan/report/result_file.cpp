#include "capstan/report/result_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "capstan/base/text.h"
#include "capstan/report/lab_reader.h"
#include "capstan/user_error.h"

namespace capstan::report {
namespace {

namespace fs = std::filesystem;

using Reader = LabResult (*)(const nlohmann::json& json, const std::string& file);

// A kind of result.
struct Kind {
  const char* file;  // its name in a folder
  const char* kind;  // the member "kind" of its JSON object; empty for none
  const char* name;
  Reader read;  // null: not supported yet
};

constexpr Kind kKinds[] = {
    {"lab.json", kLabKind, "a result of capstan bench ps", read_lab},
    {"metrics.jsonl", "", "the folder of a training run", nullptr},
};

[[noreturn]] void fail_unsupported(const std::string& path, const std::string& what) {
  throw UserError(fmt::format("{} is {}; capstan report shows results of capstan bench ps only", path, what));
}

fs::path file_in(const fs::path& folder) {
  for (const auto& kind : kKinds) {
    if (!fs::exists(folder / kind.file)) continue;
    if (!kind.read) fail_unsupported(folder.string(), kind.name);
    return folder / kind.file;
  }
  throw UserError(fmt::format("{} has no lab.json, which capstan bench ps writes", folder.string()));
}

std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (in.peek() != std::ifstream::traits_type::eof()) text << in.rdbuf();
  if (!in.is_open() || in.bad() || text.bad())
    throw UserError(fmt::format("cannot read {}: {}", file.string(), std::strerror(errno)));
  return text.str();
}

nlohmann::json parsed(const std::string& text, const std::string& file) {
  if (text.empty()) throw UserError(fmt::format("{} is empty: was it written completely?", file));
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw UserError(fmt::format("{}: not valid JSON at byte {} of {}: was it written completely?", file,
                                error.byte, text.size()));
  } catch (const nlohmann::json::exception&) {  // a number that is too large
    throw UserError(fmt::format("{}: not valid JSON: has a number that is out of range", file));
  }
}

}  // namespace

LabFile read_result(const fs::path& path) {
  if (!fs::exists(path)) throw UserError(fmt::format("{} does not exist", path.string()));
  const auto file = (fs::is_directory(path) ? file_in(path) : path).string();
  const auto json = parsed(contents(file), file);
  const auto member = json.is_object() ? json.find("kind") : json.end();
  if (!json.is_object() || member == json.end() || !member->is_string())
    throw UserError(
        fmt::format("{}: has no \"kind\"; a result of capstan bench ps has \"{}\"", file, kLabKind));
  const auto name = member->get<std::string>();
  const auto kind = std::ranges::find_if(kKinds, [&](const Kind& k) { return name == k.kind; });
  if (kind == std::end(kKinds) || !kind->read)
    fail_unsupported(file, fmt::format("a result of kind {}", shortened(json_line(*member), 40)));
  return {path.string(), kind->read(json, file)};
}

}  // namespace capstan::report
