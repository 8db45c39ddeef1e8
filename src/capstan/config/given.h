#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "capstan/config/fields.h"

namespace capstan::config {

// One value as a user gave it.
struct Given {
  const Field* field;
  std::string text;   // "true" for a switch
  std::string place;  // "run.toml:3"; empty on the command line
};

// The keys of a TOML file in the order of its lines. Dashes and underscores are the same, an empty text means
// the default, and the table [derived] (toml_file.h) is not read. `fields` are what it may name. Throws
// UserError with the line, and the nearest known key where one is unknown.
std::vector<Given> read_file(const std::filesystem::path& file, std::span<const Field> fields);
// The same of a text; `name` stands for the file in messages.
std::vector<Given> read_text(const std::string& text, const std::string& name, std::span<const Field> fields);

// Sets the fields. A later layer overrides an earlier one, also where it names the same field differently;
// of two values for one name in a layer the last one counts. Fields are set in the order of `fields`. Throws
// UserError that names the value, its place and what would be right.
void apply(std::span<const Field> fields, std::vector<std::vector<Given>> layers);

// The field that `name` means, of two with one name the first; null for none.
const Field* find(std::span<const Field> fields, std::string_view name);

// ", did you mean --epochs?" without the comma and the dashes; empty where nothing is near.
std::string suggestion(std::span<const Field> fields, std::string_view word);

// Throws UserError; whatever a user typed, the message is one line.
[[noreturn]] void fail(std::string message);

}  // namespace capstan::config
