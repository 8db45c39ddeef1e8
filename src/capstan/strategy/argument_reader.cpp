#include "capstan/strategy/argument_reader.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "capstan/user_error.h"

namespace capstan::strategy {
namespace {

// Parses all of the text as a number.
template <class T>
bool read(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

ArgumentReader::ArgumentReader(const std::string& text, std::string spelling)
    : spelling_(std::move(spelling)) {
  for (std::size_t begin = 0; !text.empty() && begin <= text.size();) {
    const auto end = std::min(text.find(':', begin), text.size());
    fields_.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

const std::string* ArgumentReader::take() {
  return next_ < fields_.size() ? &fields_[next_++] : nullptr;
}

void ArgumentReader::reject(const char* name, const std::string& right) const {
  throw UserError(
      fmt::format("strategy {}: {} must be {}, not \"{}\"", spelling_, name, right, fields_[next_ - 1]));
}

std::uint64_t ArgumentReader::whole(const char* name, std::uint64_t missing, std::uint64_t least,
                                    std::uint64_t most) {
  const auto* field = take();
  if (!field) return missing;
  std::uint64_t value = 0;
  if (!read(*field, value) || value < least || value > most)
    reject(name, fmt::format("a whole number from {} to {}", least, most));
  return value;
}

double ArgumentReader::number(const char* name, double missing, double least, double most) {
  const auto* field = take();
  if (!field) return missing;
  double value = 0;
  if (!read(*field, value) || !(value >= least && value <= most))
    reject(name, fmt::format("a number from {:g} to {:g}", least, most));
  return value;
}

Duration ArgumentReader::time(const char* name, Duration missing) {
  const auto* field = take();
  if (!field) return missing;
  const std::string_view text = *field;
  const bool milliseconds = text.ends_with("ms");
  double value = 0;
  if (!text.ends_with("s") || !read(text.substr(0, text.size() - (milliseconds ? 2 : 1)), value) ||
      !(value >= 0 && value <= 86400))
    reject(name, "a time of at most a day, such as 2s or 500ms");
  return from_seconds(milliseconds ? value / 1000 : value);
}

bool ArgumentReader::is(const char* word) {
  if (next_ >= fields_.size() || fields_[next_] != word) return false;
  ++next_;
  return true;
}

void ArgumentReader::end() const {
  if (next_ < fields_.size())
    throw UserError(fmt::format("strategy {}: unexpected option \"{}\"", spelling_, fields_[next_]));
}

std::string text_of(double value) {
  return fmt::format("{}", value);
}

std::string text_of(Duration value) {
  return fmt::format("{}s", seconds(value));
}

}  // namespace capstan::strategy
