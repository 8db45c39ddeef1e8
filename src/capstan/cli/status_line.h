#pragma once

#include <functional>
#include <string>
#include <vector>

#include "capstan/base/time.h"

namespace capstan::cli {

// Shows the progress of a long operation: on a terminal, lines that are redrawn in place; elsewhere, plain
// lines. The destructor erases drawn lines. Not thread-safe.
class StatusLine {
 public:
  struct Style {
    bool terminal = false;  // lines can be redrawn in place
    bool color = false;
    std::size_t rows = 0;  // of the terminal; 0: unknown
  };
  using Write = std::function<void(const std::string& text)>;

  // The style of standard error, by TERM and NO_COLOR.
  static Style style_of_errors();

  // Writes to standard error.
  explicit StatusLine(Style style = style_of_errors());
  // `begin`: show() measures its first interval from here.
  StatusLine(Style style, Write write, TimePoint begin = SteadyClock::now());
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  ~StatusLine();

  const Style& style() const { return style_; }

  // Replaces the drawn lines. Draws only those that fit on the terminal: others could not be erased.
  void draw(const std::vector<std::string>& lines);
  // Draws one line, at most every 0.2 s on a terminal and every 5 s elsewhere; other calls have no effect.
  void show(const std::string& line, TimePoint now = SteadyClock::now());
  // Prints a permanent line.
  void say(const std::string& line);
  void erase();

 private:
  const Style style_;
  const Write write_;
  TimePoint last_;         // time of the last line by show()
  std::size_t drawn_ = 0;  // lines
};

}  // namespace capstan::cli
