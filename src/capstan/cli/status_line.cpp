#include "capstan/cli/status_line.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace capstan::cli {
namespace {

constexpr Duration kOnTerminal = std::chrono::milliseconds(200);
constexpr Duration kWithoutTerminal = std::chrono::seconds(5);
constexpr const char* kNoWrap = "\033[?7l";
constexpr const char* kWrap = "\033[?7h";
constexpr const char* kLineEnd = "\033[K\n";  // clears the rest of a longer earlier line

void write_errors(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace

StatusLine::Style StatusLine::style_of_errors() {
  const char* term = std::getenv("TERM");
  const bool terminal = ::isatty(STDERR_FILENO) != 0 && term && std::string_view(term) != "dumb";
  winsize size{};
  if (terminal) (void)::ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
  return {terminal, terminal && !std::getenv("NO_COLOR"), size.ws_row};
}

StatusLine::StatusLine(Style style) : StatusLine(style, write_errors) {}

StatusLine::StatusLine(Style style, Write write, TimePoint begin)
    : style_(style), write_(std::move(write)), last_(begin) {}

StatusLine::~StatusLine() {
  erase();
}

void StatusLine::draw(const std::vector<std::string>& lines) {
  const auto count =
      style_.terminal && style_.rows > 1 ? std::min(lines.size(), style_.rows - 1) : lines.size();
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += lines[i] + (style_.terminal ? kLineEnd : "\n");
  if (!style_.terminal) return write_(text);
  erase();
  drawn_ = count;
  // Without wrapping, a long line is cut in a narrow window, so that drawn_ stays right.
  write_(kNoWrap + text + kWrap);
}

void StatusLine::show(const std::string& line, TimePoint now) {
  if (now - last_ < (style_.terminal ? kOnTerminal : kWithoutTerminal)) return;
  last_ = now;
  draw({line});
}

void StatusLine::say(const std::string& line) {
  erase();
  write_(line + "\n");
}

void StatusLine::erase() {
  if (drawn_ > 0) write_(fmt::format("\r\033[{}A\033[J", drawn_));
  drawn_ = 0;
}

}  // namespace capstan::cli
