#include "capstan/cli/status_line.h"

#include <utility>

#include <gtest/gtest.h>

namespace capstan::cli {
namespace {

struct Screen {
  std::string text;
  StatusLine::Write write() {
    return [this](const std::string& more) { text += more; };
  }
  std::string take() { return std::exchange(text, {}); }
};

TimePoint at(double s) {
  return TimePoint() + from_seconds(s);
}

TEST(StatusLine, WritesPlainLinesWithoutATerminal) {
  Screen screen;
  {
    StatusLine status({}, screen.write());
    status.draw({"one", "two"});
    status.draw({"three"});
    status.say("four");
  }
  EXPECT_EQ(screen.take(), "one\ntwo\nthree\nfour\n");
}

TEST(StatusLine, DrawsNoMoreLinesThanTheTerminalHas) {
  Screen screen;
  StatusLine status({true, false, 3}, screen.write());
  status.draw({"one", "two", "three", "four"});
  EXPECT_EQ(screen.take(), "\033[?7lone\033[K\ntwo\033[K\n\033[?7h");
  status.erase();
  EXPECT_EQ(screen.take(), "\r\033[2A\033[J");
}

// ESC[?7l and ESC[?7h: no wrapping, wrapping; ESC[K clears to the end of the line; ESC[2A ESC[J moves two
// lines up and clears everything below.
TEST(StatusLine, RedrawsItsLinesOnATerminal) {
  Screen screen;
  {
    StatusLine status({true, false}, screen.write());
    status.draw({"one", "two"});
    EXPECT_EQ(screen.take(), "\033[?7lone\033[K\ntwo\033[K\n\033[?7h");
    status.draw({"three"});
    EXPECT_EQ(screen.take(), "\r\033[2A\033[J\033[?7lthree\033[K\n\033[?7h");
    status.say("stays");
    EXPECT_EQ(screen.take(), "\r\033[1A\033[Jstays\n");
    status.erase();
    EXPECT_EQ(screen.take(), "") << "nothing is drawn";
    status.draw({"four"});
    screen.take();
  }
  EXPECT_EQ(screen.take(), "\r\033[1A\033[J") << "the destructor erases the lines";
}

TEST(StatusLine, ShowsALineEveryFiveSecondsWithoutATerminal) {
  Screen screen;
  StatusLine status({}, screen.write(), at(100));
  status.show("early", at(104.9));
  EXPECT_EQ(screen.take(), "");
  status.show("due", at(105));
  EXPECT_EQ(screen.take(), "due\n");
  status.show("early again", at(109.9));
  EXPECT_EQ(screen.take(), "");
  status.show("due again", at(111));
  EXPECT_EQ(screen.take(), "due again\n");
}

TEST(StatusLine, ShowsALineFiveTimesASecondOnATerminal) {
  Screen screen;
  StatusLine status({true, false}, screen.write(), at(100));
  status.show("early", at(100.19));
  EXPECT_EQ(screen.take(), "");
  status.show("due", at(100.25));
  EXPECT_EQ(screen.take(), "\033[?7ldue\033[K\n\033[?7h");
  status.say("stays");
  screen.take();
  status.show("early again", at(100.4));
  EXPECT_EQ(screen.take(), "");
  status.show("due again", at(100.5));
  EXPECT_EQ(screen.take(), "\033[?7ldue again\033[K\n\033[?7h");
}

}  // namespace
}  // namespace capstan::cli
