#include "capstan/launch/child.h"

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capstan/user_error.h"

#include "support/processes.h"
#include "support/temporary_folder.h"

namespace capstan::launch {
namespace {

using capstan::testing::contents;
using capstan::testing::TemporaryFolder;
using ::testing::HasSubstr;

TimePoint soon() {
  return SteadyClock::now() + std::chrono::seconds(60);
}

Child::Options shell(const std::string& script) {
  Child::Options options;
  options.arguments = {"/bin/sh", "-c", script};
  return options;
}

Child::Options sleeper() {
  Child::Options options;
  options.arguments = {"/bin/sleep", "1000"};
  return options;
}

bool is_alive(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

bool ends_soon(pid_t pid) {
  return testing::all_ended({pid});
}

TEST(Child, ReportsItsExitCode) {
  for (int code : {0, 1, 2, 77}) {
    Child child(shell("exit " + std::to_string(code)));
    const auto exit = child.wait(soon());
    ASSERT_TRUE(exit);
    EXPECT_EQ(exit->code, code);
    EXPECT_EQ(exit->signal, 0);
    EXPECT_EQ(exit->text(), "exit code " + std::to_string(code));
    EXPECT_TRUE(child.poll());  // and again
  }
}

TEST(Child, ReportsTheSignalThatKilledIt) {
  Child child(shell("kill -USR1 $$; sleep 100"));
  const auto exit = child.wait(soon());
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 128 + SIGUSR1);
  EXPECT_EQ(exit->signal, SIGUSR1);
  EXPECT_THAT(exit->text(), HasSubstr("killed by signal 10"));
}

TEST(Child, ReceivesSignals) {
  Child child(sleeper());
  EXPECT_FALSE(child.poll());
  EXPECT_FALSE(child.wait(SteadyClock::now()));
  child.signal(SIGKILL);
  const auto exit = child.wait(soon());
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->signal, SIGKILL);
  child.signal(SIGKILL);  // no effect: the process has ended
}

TEST(Child, IgnoresTheStopSignalsOfTerminalsAndSchedulers) {
  auto options = shell("kill -INT $$; kill -HUP $$; kill -TERM $$; echo still here");
  options.read_output = true;
  Child child(options);
  EXPECT_EQ(child.read_line(soon()), "still here");
}

TEST(Child, ReceivesStopSignalsIfConfigured) {
  auto options = shell("kill -INT $$; sleep 100");
  options.ignore_stop_signals = false;
  Child child(options);
  const auto exit = child.wait(soon());
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->signal, SIGINT);
}

TEST(Child, ReturnsItsOutputLineByLine) {
  auto options = shell("printf 'one\\ntwo\\n\\nfo'; printf 'ur\\n'");
  options.read_output = true;
  Child child(options);
  for (const auto* line : {"one", "two", "", "four"}) EXPECT_EQ(child.read_line(soon()), line);
  EXPECT_FALSE(child.read_line(soon()));
  EXPECT_TRUE(child.wait(soon()));
}

TEST(Child, ALastLineNeedsNoNewline) {
  auto options = shell("printf 'one\\ntwo'");
  options.read_output = true;
  Child child(options);
  EXPECT_EQ(child.read_line(TimePoint::max()), "one");
  EXPECT_EQ(child.read_line(soon()), "two");
  EXPECT_FALSE(child.read_line(soon()));
}

TEST(Child, ReadingALineEndsAtTheDeadline) {
  auto options = shell("exec sleep 1000");
  options.read_output = true;
  Child child(options);
  const auto deadline = SteadyClock::now() + std::chrono::milliseconds(20);
  EXPECT_FALSE(child.read_line(deadline));
  EXPECT_GE(SteadyClock::now(), deadline);
  EXPECT_FALSE(child.read_line(SteadyClock::now() - std::chrono::seconds(1)));
  EXPECT_FALSE(child.poll()) << "the deadline passed, but the process still runs";
}

TEST(Child, WritesStandardErrorToItsLog) {
  const TemporaryFolder folder;
  auto options = shell("echo first >&2; echo; echo last words >&2; echo >&2; echo ==== >&2");
  options.error_log = folder / "log";
  Child child(options);
  ASSERT_TRUE(child.wait(soon()));
  EXPECT_EQ(contents(folder / "log"), "first\nlast words\n\n====\n");
  EXPECT_EQ(last_line(folder / "log"), "last words");
  EXPECT_EQ(last_line(folder / "missing"), "");
}

TEST(Child, InheritsTheEnvironmentAndMore) {
  ::setenv("CAPSTAN_TEST_OUTER", "outer", 1);
  auto options = shell("echo $CAPSTAN_TEST_OUTER $CAPSTAN_TEST_INNER");
  options.environment = {"CAPSTAN_TEST_INNER=inner"};
  options.read_output = true;
  Child child(options);
  EXPECT_EQ(child.read_line(soon()), "outer inner");
}

TEST(Child, ItsOwnEnvironmentOverridesTheInheritedOne) {
  ::setenv("CAPSTAN_TEST_OUTER", "outer", 1);
  auto options = shell("env | grep -c ^CAPSTAN_TEST_OUTER=; echo $CAPSTAN_TEST_OUTER");
  options.environment = {"CAPSTAN_TEST_OUTER=mine"};
  options.read_output = true;
  Child child(options);
  EXPECT_EQ(child.read_line(soon()), "1");
  EXPECT_EQ(child.read_line(soon()), "mine");
}

TEST(Child, HasAnEmptyStandardInput) {
  auto options = shell("cat; echo end");
  options.read_output = true;
  Child child(options);
  EXPECT_EQ(child.read_line(soon()), "end");
}

TEST(Child, ReadsWhatIsWrittenToItsInputUntilItIsClosed) {
  auto options = shell("while read line; do echo \"got $line\"; done; echo end");
  options.read_output = options.write_input = true;
  Child child(options);
  ASSERT_TRUE(child.write_input("one\ntw"));
  EXPECT_EQ(child.read_line(soon()), "got one");
  ASSERT_TRUE(child.write_input("o\n"));
  EXPECT_EQ(child.read_line(soon()), "got two");
  EXPECT_FALSE(child.output_ended());
  child.close_input();
  EXPECT_EQ(child.read_line(soon()), "end");
  EXPECT_FALSE(child.read_line(soon()));
  EXPECT_TRUE(child.output_ended());
}

TEST(Child, ALargeInputArrivesWhole) {
  auto options = shell("wc -c");
  options.read_output = options.write_input = true;
  Child child(options);
  ASSERT_TRUE(child.write_input(std::string(3'000'000, 'x')));
  child.close_input();
  EXPECT_EQ(child.read_line(soon()), "3000000");
}

// By default, SIGPIPE ends a process.
TEST(Child, WritingToAProcessThatHasEndedIsNoSignal) {
  auto options = shell("exit 0");
  options.write_input = true;
  Child child(options);
  ASSERT_TRUE(child.wait(soon()));
  EXPECT_FALSE(child.write_input("text\n"));
}

TEST(Child, TheInputOfOneProcessIsNotHeldOpenByAnother) {
  auto options = shell("cat; echo end");
  options.read_output = options.write_input = true;
  Child first(options);
  const Child second(sleeper());
  first.close_input();
  EXPECT_EQ(first.read_line(soon()), "end");
}

TEST(Child, ALineThatHasArrivedIsReadAfterTheDeadline) {
  auto options = shell("echo one");
  options.read_output = true;
  Child child(options);
  ASSERT_TRUE(child.wait(soon()));
  EXPECT_EQ(child.read_line(SteadyClock::now() - std::chrono::seconds(1)), "one");
}

TEST(Child, ItIsKnownWhetherItIsStopped) {
  Child child(sleeper());
  EXPECT_FALSE(child.is_stopped());
  child.signal(SIGSTOP);
  EXPECT_TRUE(testing::eventually([&] { return child.is_stopped(); }));
  child.signal(SIGCONT);
  EXPECT_TRUE(testing::eventually([&] { return !child.is_stopped(); }));
}

TEST(Child, IsKilledByTheDestructor) {
  pid_t pid = -1;
  {
    Child child(shell("exec sleep 1000"));
    pid = child.pid();
    EXPECT_TRUE(is_alive(pid));
  }
  EXPECT_FALSE(is_alive(pid));
}

TEST(Child, MovesWithItsProcess) {
  auto first = std::make_optional<Child>(shell("exec sleep 1000"));
  const auto pid = first->pid();
  const Child second(std::move(*first));
  first.reset();
  EXPECT_EQ(second.pid(), pid);
  EXPECT_TRUE(is_alive(pid));
}

TEST(Child, AMissingProgramIsAnErrorWithItsPath) {
  try {
    Child::Options options;
    options.arguments = {"/no/such/program"};
    Child child(options);
    FAIL() << "it started";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("/no/such/program"));
  }
}

// An intermediate process starts the child, prints its pid and is killed: the kernel must kill the child.
TEST(Child, DoesNotOutliveItsParent) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t middle = ::fork();
  ASSERT_GE(middle, 0);
  if (middle == 0) {
    Child child(sleeper());
    const pid_t pid = child.pid();
    if (::write(ends[1], &pid, sizeof pid) != sizeof pid) ::_exit(1);
    for (;;) ::pause();
  }
  pid_t pid = -1;
  ASSERT_EQ(::read(ends[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  EXPECT_TRUE(is_alive(pid));
  ASSERT_EQ(::kill(middle, SIGKILL), 0);
  ASSERT_EQ(::waitpid(middle, nullptr, 0), middle);
  EXPECT_TRUE(ends_soon(pid));
  ::close(ends[0]);
  ::close(ends[1]);
}

// A parent process may ignore SIGCHLD, and children inherit that.
TEST(Child, ItsExitCodeIsKnownEvenIfSigchldWasIgnored) {
  ::signal(SIGCHLD, SIG_IGN);
  Child child(shell("exit 7"));
  const auto exit = child.wait(soon());
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 7);
}

TEST(Programs, AreInTheFolderOfThisOne) {
  EXPECT_TRUE(std::filesystem::exists(own_folder() / "launch_test"));
}

}  // namespace
}  // namespace capstan::launch
