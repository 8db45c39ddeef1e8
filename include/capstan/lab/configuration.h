#pragma once

#include "capstan/cxx20.h"

#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>

namespace capstan::lab {

// The values of one plug-in: the object `configurations` of its entry in a configuration file. The plug-in
// reads each value by its key; a key that it does not read is an error of the user. All functions throw
// UserError that names the file, the entry and the key. A value; not thread-safe.
class Configuration {
 public:
  using Value = std::variant<bool, std::int64_t, double, std::string>;

  Configuration() = default;
  // `place` is for messages: "data_configurations.json: DummyData".
  Configuration(std::string place, std::map<std::string, Value> values)
      : place_(std::move(place)), values_(std::move(values)) {}

  const std::string& place() const { return place_; }
  const std::map<std::string, Value>& values() const { return values_; }
  bool has(std::string_view key) const { return values_.contains(std::string(key)); }

  // A whole number within the limits.
  std::int64_t integer(std::string_view key, std::int64_t least = 0,
                       std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  double number(std::string_view key) const;
  bool boolean(std::string_view key) const;
  std::string text(std::string_view key) const;

  // Makes `key` the name of a value that older files call `old_name`.
  void accept_old_name(const std::string& old_name, const std::string& key);
  // Marks a key as read, or all.
  void ignore(std::string_view key) const { read_.emplace(key); }
  void ignore_all() const {
    for (const auto& [key, value] : values_) ignore(key);
  }

  // Throws for a key that has not been read. Called after a plug-in was made.
  void check_all_read() const;
  [[noreturn]] void fail(std::string_view key, const std::string& what) const;

 private:
  const Value& find(std::string_view key) const;

  std::string place_;
  std::map<std::string, Value> values_;
  mutable std::set<std::string, std::less<>> read_;
};

}  // namespace capstan::lab
