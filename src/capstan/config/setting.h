#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace capstan::config {

// A function that a flag calls instead of storing a value. It receives the checked text; a switch calls it
// only when on. It may throw UserError.
struct Action {
  std::function<void(const std::string&)> run;
  bool is_switch = false;
};

// Where a value is stored. The type determines which texts are valid.
using Value = std::variant<std::string*, std::filesystem::path*, bool*, std::uint16_t*, std::uint32_t*,
                           std::uint64_t*, double*, std::optional<bool>*, std::optional<std::uint32_t>*,
                           std::optional<std::uint64_t>*, std::optional<double>*, Action>;

// The largest whole number in a TOML file.
inline constexpr std::uint64_t kMostWhole = std::numeric_limits<std::int64_t>::max();

// The valid values, both ends included. Without limits, a number must be finite, and a whole number must fit
// its type and TOML.
struct WholeRange {
  std::uint64_t low = 0, high = kMostWhole;
};
struct NumberRange {
  double low = 0, high = 0;
};
using Words = std::vector<std::string_view>;
using Limits = std::variant<std::monostate, WholeRange, NumberRange, Words>;

// One value that a user can set, by a flag and a key of configuration files. Texts are literals.
struct Setting {
  std::string_view name;       // without dashes
  std::string_view also = {};  // another spelling, with dashes: "-v", "--model-dir"
  Value value;
  Limits limits = {};
  std::string_view help = {};
  std::string_view group = "Options";  // heading in the help
  std::string_view hint = {};          // what help shows for the value; empty: by its type
  bool required = false;
  bool positional = false;  // given without its name
  bool hidden = false;      // not in the help
  bool shows_default = true;
};

bool is_switch(const Setting& setting);

// Sets the value and returns "". For an invalid text, returns the valid values ("should be a number") and
// changes nothing. Throws what an Action throws.
[[nodiscard]] std::string assign(const Setting& setting, const std::string& text);

// The value as assign() takes it; empty for an absent one and for an Action.
std::string text_of(const Value& value);

}  // namespace capstan::config
