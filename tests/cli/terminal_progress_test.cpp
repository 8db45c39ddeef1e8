#include "capstan/cli/terminal_progress.h"

#include <gtest/gtest.h>

#include "support/evaluations.h"

namespace capstan::cli {
namespace {

wire::WorkerRow worker(std::uint64_t steps, std::uint64_t samples, float loss = 0.5f,
                       wire::WorkerState state = wire::WorkerState::kLive) {
  wire::WorkerRow row;
  row.state = state;
  row.steps = {steps};
  row.samples = samples;
  row.loss = loss;
  row.compute_seconds = 3;
  row.wait_seconds = 1;
  return row;
}

// Two workers at step 25 of 100, after two seconds.
job::Progress quarter() {
  job::Progress p;
  p.status.version = {25};
  p.status.seconds = 2;
  p.status.workers = {worker(25, 800), worker(24, 760)};
  p.at = TimePoint() + std::chrono::seconds(100);
  p.done = 25;
  p.total = 100;
  p.seconds = 2;
  p.loss = 0.5;
  return p;
}

struct Screen {
  std::string text;
  TerminalProgress::Write write() {
    return [this](const std::string& more) { text += more; };
  }
  std::string take() { return std::exchange(text, {}); }
};

TEST(TerminalProgress, WritesPlainLinesWithoutATerminal) {
  Screen screen;
  TerminalProgress shown({}, screen.write());
  shown.progress(quarter());
  EXPECT_EQ(screen.take(),
            "total  25 %  step 25/100  loss 0.5000  780 samples/s  ETA 0:06\n"
            "  worker 0  step 25  loss 0.5000  400 samples/s  computing 75 %\n"
            "  worker 1  step 24  loss 0.5000  380 samples/s  computing 75 %\n");
  shown.message("checkpoint at step 25");
  shown.evaluated({{25}, 1, 100, 2, testing::classified(0.25, 0.75, 1, 50)});
  EXPECT_EQ(screen.take(),
            "checkpoint at step 25\nepoch 1  step 25  test accuracy 75.00 %  test loss 0.2500\n");
}

TEST(TerminalProgress, AMessageDoesNotControlTheTerminal) {
  Screen screen;
  TerminalProgress shown({}, screen.write());
  shown.message("a checkpoint could not be written: \x1b[2Jdisk\nfull");
  EXPECT_EQ(screen.take(), "a checkpoint could not be written: ?[2Jdisk full\n");
}

TEST(TerminalProgress, RedrawsItsLinesOnATerminal) {
  Screen screen;
  {
    TerminalProgress shown({true, false}, screen.write());
    shown.progress(quarter());
    EXPECT_EQ(screen.take(),
              "\033[?7l████░░░░░░░░░░░░  25 %  step 25/100  loss 0.5000  780 samples/s  ETA 0:06\033[K\n"
              "  worker 0  step 25  loss 0.5000  400 samples/s  computing 75 %\033[K\n"
              "  worker 1  step 24  loss 0.5000  380 samples/s  computing 75 %\033[K\n\033[?7h");
    shown.message("a line that stays");
    EXPECT_EQ(screen.take(), "\r\033[3A\033[Ja line that stays\n");
    shown.message("another");
    EXPECT_EQ(screen.take(), "another\n") << "no lines are redrawn";
    shown.progress(quarter());
    screen.take();
    shown.progress(quarter());
    EXPECT_TRUE(screen.take().starts_with("\r\033[3A\033[J\033[?7l"));
  }
  EXPECT_EQ(screen.take(), "\r\033[3A\033[J") << "the progress lines are erased at the end";
}

TEST(TerminalProgress, ColorsTheBarOnly) {
  Screen screen;
  TerminalProgress shown({true, true}, screen.write());
  shown.progress(quarter());
  EXPECT_TRUE(screen.take().starts_with("\033[?7l\033[36m████░░░░░░░░░░░░\033[0m  25 %"));
}

TEST(TerminalProgress, RatesCoverTheTimeSinceTheLastLine) {
  Screen screen;
  TerminalProgress shown({}, screen.write());
  auto p = quarter();
  shown.progress(p);
  screen.take();
  p.at += std::chrono::milliseconds(500);
  p.status.workers[0].samples += 1000;
  shown.progress(p);
  EXPECT_NE(screen.take().find("780 samples/s"), std::string::npos) << "a window is at least 0.9 s";
  p.at += std::chrono::milliseconds(500);
  p.status.workers[0].samples += 1000;
  shown.progress(p);
  EXPECT_NE(screen.take().find("  2000 samples/s  ETA"), std::string::npos) << "2,000 in one second";
}

TEST(TerminalProgress, ARestartedWorkerCountsFromZero) {
  Screen screen;
  TerminalProgress shown({}, screen.write());
  auto p = quarter();
  shown.progress(p);
  screen.take();
  p.at += std::chrono::seconds(1);
  p.status.workers[0] = worker(3, 96);
  p.status.workers[1].samples += 100;
  shown.progress(p);
  EXPECT_EQ(screen.take(),
            "total  25 %  step 25/100  loss 0.5000  196 samples/s  ETA 0:06\n"
            "  worker 0  step 3  loss 0.5000  96 samples/s  computing 75 %\n"
            "  worker 1  step 24  loss 0.5000  100 samples/s  computing 75 %\n");
}

TEST(TerminalProgress, ShowsTheStateOfIdleWorkers) {
  Screen screen;
  TerminalProgress shown({}, screen.write());
  auto p = quarter();
  p.status.workers = {worker(0, 0, 0, wire::WorkerState::kAbsent), worker(9, 9, 0, wire::WorkerState::kLeft),
                      worker(9, 9, 0, wire::WorkerState::kLost)};
  p.loss.reset();
  p.done = 0;
  shown.progress(p);
  EXPECT_EQ(screen.take(),
            "total   0 %  step 0/100  loss -  9 samples/s  ETA -\n"
            "  worker 0  starting\n  worker 1  done\n  worker 2  lost\n");
}

TEST(TerminalProgress, ManyWorkersAreSummarized) {
  auto p = quarter();
  p.status.workers.assign(17, worker(1, 32));
  const auto lines = [&](bool terminal) {
    Screen screen;
    TerminalProgress shown({terminal, false}, screen.write());
    shown.progress(p);
    return std::ranges::count(screen.take(), '\n');
  };
  EXPECT_EQ(lines(false), 1);
  EXPECT_EQ(lines(true), 17);
}

TEST(TerminalProgress, LongTimesAreHours) {
  auto p = quarter();
  const auto shown = [&](double seconds) {
    Screen screen;
    p.seconds = seconds / 3;  // three quarters are left
    TerminalProgress(TerminalProgress::Style{}, screen.write()).progress(p);
    const auto at = screen.text.find("ETA ") + 4;
    return screen.text.substr(at, screen.text.find('\n') - at);
  };
  EXPECT_EQ(shown(59.5), "0:59");
  EXPECT_EQ(shown(3600 + 62), "1:01:02");
  EXPECT_EQ(shown(1e8), "-");
}

TEST(TerminalProgress, LinesOfATerminalStayWithin80Columns) {
  auto p = quarter();
  p.status.workers = {worker(999'999, 5'000'000)};
  p.done = 999'999, p.total = 1'000'000, p.seconds = 3600;
  Screen screen;
  TerminalProgress shown({}, screen.write());
  shown.progress(p);
  EXPECT_LE(screen.take().find('\n'), 80u);
}

TEST(ProgressInterval, IsGivenOrTheDefaultOfTheTerminal) {
  EXPECT_EQ(progress_interval(7, {true, true}), 7);
  EXPECT_EQ(progress_interval(0, {true, true}), 0.2);
  EXPECT_EQ(progress_interval(0, {}), 2);
}

}  // namespace
}  // namespace capstan::cli
