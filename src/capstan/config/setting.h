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

// What a flag does that has no value of its own. It gets the text that was checked; a switch runs it only
// when it is on. It may throw UserError.
struct Action {
  std::function<void(const std::string&)> run;
  bool is_switch = false;
};

// Where a value is kept. The type says which text is right.
using Value = std::variant<std::string*, std::filesystem::path*, bool*, std::uint16_t*, std::uint32_t*,
                           std::uint64_t*, double*, std::optional<bool>*, std::optional<std::uint32_t>*,
                           std::optional<std::uint64_t>*, std::optional<double>*, Action>;

// The largest whole number that a configuration file can hold.
inline constexpr std::uint64_t kMostWhole = std::numeric_limits<std::int64_t>::max();

// Which values are right, both ends included. Without limits a number is finite, and a whole number is as
// large as its type and a configuration file can hold.
struct WholeRange {
  std::uint64_t low = 0, high = kMostWhole;
};
struct NumberRange {
  double low = 0, high = 0;
};
using Words = std::vector<std::string_view>;
using Limits = std::variant<std::monostate, WholeRange, NumberRange, Words>;

// One value that a user can give: a flag, and a key of a configuration file. Texts are literals.
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
};

bool is_switch(const Setting& setting);

// Sets the value. Returns "" or, where the text is wrong, what would be right ("should be a number"); then
// nothing is changed. Throws what an Action throws.
[[nodiscard]] std::string assign(const Setting& setting, const std::string& text);

// The value as assign() takes it; empty for an absent one and for an Action.
std::string text_of(const Value& value);

}  // namespace capstan::config
