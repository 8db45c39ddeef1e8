#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capstan/base/time.h"

namespace capstan::strategy {

// What stands between the colons behind a strategy's name, taken one after the other; one that is missing
// takes its default. Every function throws UserError that says what is wrong and what would be right.
class ArgumentReader {
 public:
  // `spelling` is how the strategy is written with all its options: "easgd:ALPHA:T".
  ArgumentReader(const std::string& text, std::string spelling);

  std::uint64_t whole(const char* name, std::uint64_t missing, std::uint64_t least, std::uint64_t most);
  double number(const char* name, double missing, double least, double most);
  // "2s", "500ms".
  Duration time(const char* name, Duration missing);
  // True where the option is there and is this word; then it is taken.
  bool is(const char* word);
  // Nothing may be left.
  void end() const;

 private:
  [[noreturn]] void reject(const char* name, const std::string& right) const;
  const std::string* take();

  const std::string spelling_;
  std::vector<std::string> fields_;
  std::size_t next_ = 0;
};

// The shortest text that reads back as the same number, or the same time.
std::string text_of(double value);
std::string text_of(Duration value);

}  // namespace capstan::strategy
