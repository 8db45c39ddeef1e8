#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capstan/base/time.h"

namespace capstan::strategy {

// Reads the options between the colons after a strategy's name, one after the other. A missing option takes
// its default. Every function throws UserError that names the option, its value and what is allowed.
class ArgumentReader {
 public:
  // `spelling` is the strategy's name with all its options: "easgd:ALPHA:T".
  ArgumentReader(const std::string& text, std::string spelling);

  std::uint64_t whole(const char* name, std::uint64_t missing, std::uint64_t least, std::uint64_t most);
  double number(const char* name, double missing, double least, double most);
  // "2s", "500ms".
  Duration time(const char* name, Duration missing);
  // True if the next option is this word; then it is consumed.
  bool is(const char* word);
  // Rejects options that were not read.
  void end() const;

 private:
  [[noreturn]] void reject(const char* name, const std::string& right) const;
  const std::string* take();

  const std::string spelling_;
  std::vector<std::string> fields_;
  std::size_t next_ = 0;
};

// The shortest text that parses to the same value.
std::string text_of(double value);
std::string text_of(Duration value);

}  // namespace capstan::strategy
