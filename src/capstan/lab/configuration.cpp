#include "capstan/lab/configuration.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capstan/base/spelling.h"
#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

const char* kind_of(const Configuration::Value& value) {
  constexpr const char* kNames[] = {"true or false", "a whole number", "a number", "a text"};
  return kNames[value.index()];
}

}  // namespace

void Configuration::fail(std::string_view key, const std::string& what) const {
  throw UserError(fmt::format("{}: {} {}", place_, key, what));
}

const Configuration::Value& Configuration::find(std::string_view key) const {
  const auto found = values_.find(std::string(key));
  if (found == values_.end()) fail(key, "is missing");
  read_.emplace(key);
  return found->second;
}

std::int64_t Configuration::integer(std::string_view key, std::int64_t least, std::int64_t most) const {
  const auto& value = find(key);
  const auto* const number = std::get_if<std::int64_t>(&value);
  if (!number) fail(key, fmt::format("must be a whole number, not {}", kind_of(value)));
  if (*number < least || *number > most)
    fail(key, most == std::numeric_limits<std::int64_t>::max()
                  ? fmt::format("is {}; it must be at least {}", *number, least)
                  : fmt::format("is {}; it must be from {} to {}", *number, least, most));
  return *number;
}

double Configuration::number(std::string_view key) const {
  const auto& value = find(key);
  if (const auto* const whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* const number = std::get_if<double>(&value)) return *number;
  fail(key, fmt::format("must be a number, not {}", kind_of(value)));
}

bool Configuration::boolean(std::string_view key) const {
  const auto& value = find(key);
  if (const auto* const flag = std::get_if<bool>(&value)) return *flag;
  fail(key, fmt::format("must be true or false, not {}", kind_of(value)));
}

std::string Configuration::text(std::string_view key) const {
  const auto& value = find(key);
  if (const auto* const text = std::get_if<std::string>(&value)) return *text;
  fail(key, fmt::format("must be a text, not {}", kind_of(value)));
}

void Configuration::accept_old_name(const std::string& old_name, const std::string& key) {
  auto node = values_.extract(old_name);
  if (node.empty()) return;
  if (has(key)) fail(old_name, fmt::format("is the old name of {}; give one of them", key));
  node.key() = key;
  values_.insert(std::move(node));
}

void Configuration::check_all_read() const {
  for (const auto& [key, value] : values_) {
    if (read_.contains(key)) continue;
    const std::vector<std::string_view> known(read_.begin(), read_.end());
    if (known.empty()) fail(key, "is unknown; there is nothing to configure");
    const auto near = nearest(key, known);
    fail(key, near.empty() ? fmt::format("is unknown; the keys are {}", fmt::join(known, ", "))
                           : fmt::format("is unknown; did you mean {}?", near));
  }
}

}  // namespace capstan::lab
