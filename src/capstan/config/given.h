#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "capstan/config/fields.h"

namespace capstan::config {

// One value from the command line or a file.
struct Given {
  const Field* field;
  std::string text;   // "true" for a switch
  std::string place;  // "run.toml:3"; empty on the command line
};

// The values of a TOML file in the order of its lines. Dashes and underscores are equivalent, an empty string
// means the default, and the table [derived] (toml_file.h) is ignored. `fields` lists the valid keys. Throws
// UserError with the line; for an unknown key, with the nearest known one.
std::vector<Given> read_file(const std::filesystem::path& file, std::span<const Field> fields);
// The same for a string; `name` is used for the file in messages.
std::vector<Given> read_text(const std::string& text, const std::string& name, std::span<const Field> fields);

// The value of one key of a file; empty if it has none, or cannot be read.
std::string find_in_file(const std::filesystem::path& file, std::string_view key);

// Sets the fields. A later layer overrides an earlier one, also by an alternative name of the same field; of
// two values for one name in a layer the last one counts. Fields are set in the order of `fields`. Throws
// UserError with the value, its place and the valid values.
void apply(std::span<const Field> fields, std::vector<std::vector<Given>> layers);

// The defaults of the task that the layers name, as the first layer (tasks.h); none if they name no task.
// Throws UserError for an unknown task.
std::vector<Given> task_defaults(std::span<const Field> fields,
                                 const std::vector<std::vector<Given>>& layers);

// The first field of that name; null for none.
const Field* find(std::span<const Field> fields, std::string_view name);

// The most similar field name, such as "epochs"; empty if none is similar.
std::string suggestion(std::span<const Field> fields, std::string_view word);

// Throws UserError; replaces control characters, so that the message is one line.
[[noreturn]] void fail(std::string message);

}  // namespace capstan::config
