#pragma once

#include <functional>
#include <string>
#include <vector>

#include "capstan/base/time.h"

namespace capstan::cli {

// Shows how far something long is: on a terminal lines that are drawn over and over, elsewhere plain lines.
// What is drawn goes with the object. Not thread-safe.
class StatusLine {
 public:
  struct Style {
    bool terminal = false;  // lines can be drawn over
    bool color = false;
  };
  using Write = std::function<void(const std::string& text)>;

  // Of standard error, with TERM and NO_COLOR respected.
  static Style style_of_errors();

  // Writes to standard error.
  explicit StatusLine(Style style = style_of_errors());
  // `begin` is when show() begins to count.
  StatusLine(Style style, Write write, TimePoint begin = SteadyClock::now());
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  ~StatusLine();

  const Style& style() const { return style_; }

  // Replaces what is drawn by these lines.
  void draw(const std::vector<std::string>& lines);
  // Draws one line now and then: nothing happens within 0.2 s of the last on a terminal, 5 s elsewhere.
  void show(const std::string& line, TimePoint now = SteadyClock::now());
  // A line that stays.
  void say(const std::string& line);
  void erase();

 private:
  const Style style_;
  const Write write_;
  TimePoint last_;         // when show() drew
  std::size_t drawn_ = 0;  // lines
};

}  // namespace capstan::cli
