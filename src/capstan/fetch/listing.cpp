#include "capstan/fetch/listing.h"

#include <fmt/format.h>

#include "capstan/fetch/verify.h"
#include "capstan/user_error.h"

namespace capstan::fetch {
namespace {

constexpr const char* kRow = "{:<14} {:>7} {:>8} {:>10}  {}";

std::string megabytes(std::uint64_t bytes) {
  return bytes == 0 ? "-" : fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

std::string or_any(std::uint64_t number) {
  return number == 0 ? "any" : fmt::format("{}", number);
}

std::string here(const Entry& entry, const std::filesystem::path& data_dir) {
  if (entry.kind == Kind::kBuiltIn) return "built in";
  if (entry.kind == Kind::kOwn) return "your own";
  switch (presence(entry, data_dir)) {
    case Presence::kAbsent:
      return "no";
    case Presence::kPartial:
      return "in part";
    case Presence::kComplete:
      return "yes";
    case Presence::kForeign:
      return "unknown";
  }
  return "";
}

}  // namespace

Listing list_datasets(const std::filesystem::path& data_dir) {
  Listing listing;
  for (const auto& entry : catalogue())
    listing.rows.push_back({entry.name, entry.classes, entry.images, entry.bytes(), here(entry, data_dir),
                            entry.files.empty() ? "" : folder_of(entry, data_dir).string()});
  return listing;
}

std::string Listing::text() const {
  auto text = fmt::format(kRow, "name", "classes", "images", "download", "downloaded");
  for (const auto& row : rows)
    text += "\n" + fmt::format(kRow, row.name, or_any(row.classes), or_any(row.images), megabytes(row.bytes),
                               row.here);
  return text;
}

Json Listing::json() const {
  auto list = Json::array();
  for (const auto& row : rows)
    list.push_back({{"name", row.name},
                    {"classes", row.classes},
                    {"images", row.images},
                    {"bytes", row.bytes},
                    {"here", row.here},
                    {"folder", row.folder}});
  return {{"ok", true}, {"datasets", std::move(list)}};
}

std::optional<BuiltIn> built_in(const Entry& entry) {
  if (entry.kind == Kind::kOwn) {
    throw UserError(fmt::format("{} is for your own images: capstan train --dataset {} --data-dir FOLDER",
                                entry.name, entry.name));
  }
  if (entry.kind == Kind::kBuiltIn) return BuiltIn{entry.name};
  return std::nullopt;
}

std::string BuiltIn::text() const {
  return fmt::format("{} is part of the program: there is nothing to fetch or verify", name);
}

Json BuiltIn::json() const {
  return {{"ok", true}, {"name", name}, {"folder", ""}, {"what", text()}};
}

}  // namespace capstan::fetch
