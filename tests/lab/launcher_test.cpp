#include "capstan/lab/launcher.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "capstan/base/failure.h"

#include "support/processes.h"
#include "support/temporary_folder.h"

namespace capstan::lab {
namespace {

using capstan::testing::contents;
using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct NoStop final : job::StopToken {
  int requests() override { return 0; }
};

// Processes that are shell scripts: they speak the launcher's protocol, and log what they are told.
class LauncherTest : public ::testing::Test {
 protected:
  // `special` is a shell command that runs before the answer to each line, with the process's role in $role
  // and the line in $line.
  LaunchOptions scripts(const std::string& special = ":") {
    write_file(folder_ / "process.sh", R"(
      role=${1#--as-}
      echo $$ > DIR/$role.pid
      echo "$CAPSTAN_TOKEN" > DIR/$role.token
      line=start
      SPECIAL
      case $role in trainer=0) group=here ;; *) group= ;; esac
      echo '{"started": true, "group": "'$group'"}'
      while read -r line; do
        echo "$role $line" >> DIR/$role.lines
        SPECIAL
        case "$line" in
          *'"do":"prepare"'*) echo '{"ready": true, "address": "'$role'"}' ;;
          *'"do":"run"'*)
            echo '{"step": 1, "of": 2}'
            echo '{"step": 2, "of": 2}'
            echo '{"done": {"begin_ns": 1, "end_ns": 3, "steps": 2, "samples": 64, "loss": 0.5,
              "bytes_pushed": 7, "bytes_pulled": 8, "hidden": null, "series": []}}' | tr -d '\n'
            echo ;;
          *'"do":"report"'*)
            echo '{"done": {"begin_ns": 0, "end_ns": 0, "steps": 0, "samples": 0, "loss": 0,
              "bytes_pushed": 0, "bytes_pulled": 0, "hidden": null, "series":
              [{"type": "t", "name": "'$role'", "unit": "ms", "values": [1]}]}}' | tr -d '\n'
            echo ;;
        esac
      done
      line=end
      SPECIAL
    )");
    replace("SPECIAL", special);
    replace("DIR", folder_.path().string());
    LaunchOptions options;
    options.command = {"/bin/sh", (folder_ / "process.sh").string()};
    options.program = "capstan";
    options.plan.trainers = 2;
    options.plan.servers = 2;
    options.repeat = 2;
    options.on_run = [this](const RunReports& reports) { runs_.push_back(reports); };
    options.on_progress = [this](const LaunchProgress& p) { progress_.push_back(p); };
    options.on_note = [this](const std::string& line) { notes_.push_back(line); };
    return options;
  }

  // The failure of a launch; {0, ""} if there is none. Afterwards no process runs.
  std::pair<int, std::string> failure_of(const LaunchOptions& options) {
    NoStop stop;
    return failure_of(options, stop);
  }
  std::pair<int, std::string> failure_of(const LaunchOptions& options, job::StopToken& stop) {
    std::pair<int, std::string> out{0, ""};
    try {
      launch(options, stop);
    } catch (const Failure& failure) {
      out = {failure.code(), failure.what()};
    }
    for (const auto& pid : pids()) EXPECT_NE(::kill(pid, 0), 0) << pid << " still runs";
    return out;
  }

  std::vector<pid_t> pids() const {
    std::vector<pid_t> out;
    for (const auto* role : {"server=0", "server=1", "trainer=0", "trainer=1"}) {
      std::ifstream file(folder_ / (std::string(role) + ".pid"));
      pid_t pid = 0;
      if (file >> pid) out.push_back(pid);
    }
    return out;
  }

  void replace(const std::string& word, const std::string& by) {
    auto text = contents(folder_ / "process.sh");
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + by.size()))
      text.replace(at, word.size(), by);
    write_file(folder_ / "process.sh", text);
  }

  const TemporaryFolder folder_;
  std::vector<RunReports> runs_;
  std::vector<LaunchProgress> progress_;
  std::vector<std::string> notes_;
};

TEST_F(LauncherTest, RunsAWarmUpAndTheMeasuredRuns) {
  EXPECT_EQ(failure_of(scripts()), (std::pair<int, std::string>{0, ""}));
  ASSERT_EQ(runs_.size(), 2u);
  for (const auto& run : runs_) {
    ASSERT_EQ(run.trainers.size(), 2u);
    ASSERT_EQ(run.servers.size(), 2u);
    EXPECT_EQ(run.trainers[1].samples, 64u);
    EXPECT_EQ(run.servers[0].series[0].name, "server=0");
    EXPECT_EQ(run.servers[1].series[0].name, "server=1");
  }
}

TEST_F(LauncherTest, PreparesServersInOrderThenTrainers) {
  ASSERT_EQ(failure_of(scripts()).second, "");
  const auto prepare = [](const std::string& role, int run, const std::string& servers) {
    return role + R"( {"do":"prepare","group":"here","run":)" + std::to_string(run) + R"(,"servers":[)" +
           servers + "]}\n";
  };
  std::string first, second, trainer;
  for (int run = 0; run < 3; ++run) {
    first += prepare("server=0", run, "") + "server=0 {\"do\":\"report\"}\n";
    second += prepare("server=1", run, "\"server=0\"") + "server=1 {\"do\":\"report\"}\n";
    trainer += prepare("trainer=1", run, "\"server=0\",\"server=1\"") + "trainer=1 {\"do\":\"run\"}\n";
  }
  EXPECT_EQ(contents(folder_ / "server=0.lines"), first);
  EXPECT_EQ(contents(folder_ / "server=1.lines"), second);
  EXPECT_EQ(contents(folder_ / "trainer=1.lines"), trainer);
}

TEST_F(LauncherTest, AllProcessesHaveOneTokenAndThePlan) {
  auto options = scripts("case $line in start) cp ${2#--plan=} DIR/plan.$role ;; esac");
  options.plan.model = "some model";
  ASSERT_EQ(failure_of(options).second, "");
  const auto token = contents(folder_ / "trainer=0.token");
  EXPECT_EQ(token.size(), 65u);
  EXPECT_EQ(contents(folder_ / "server=1.token"), token);
  EXPECT_EQ(Plan::parse(contents(folder_ / "plan.server=1")).model, "some model");
}

TEST_F(LauncherTest, ProgressIsThatOfTheSlowestTrainer) {
  ASSERT_EQ(failure_of(scripts()).second, "");
  ASSERT_FALSE(progress_.empty());
  EXPECT_EQ(progress_.front().run, 0u);
  EXPECT_EQ(progress_.front().step, 0u);  // the other one has not begun
  EXPECT_EQ(progress_.back().run, 2u);
  EXPECT_EQ(progress_.back().step, 2u);
  EXPECT_EQ(progress_.back().of, 2u);
}

TEST_F(LauncherTest, NotesOfTheFirstTrainerArePassedOnOnce) {
  ASSERT_EQ(failure_of(scripts("case $line in start) echo \"note: $role\" >&2 ;; esac")).second, "");
  EXPECT_THAT(notes_, ElementsAre("trainer=0"));
}

TEST_F(LauncherTest, NoServersAreNeeded) {
  auto options = scripts();
  options.plan.servers = 0;
  ASSERT_EQ(failure_of(options).second, "");
  EXPECT_THAT(runs_[0].servers, IsEmpty());
}

// Others wait in the run until they are killed.
constexpr const char* kOneFails =
    "case $role:$line in trainer=1:*'\"do\":\"run\"'*) ACTION ;; trainer=0:*'\"do\":\"run\"'*) exec sleep "
    "1000 ;; "
    "esac";

std::string one_fails(const std::string& action) {
  std::string text = kOneFails;
  return text.replace(text.find("ACTION"), 6, action);
}

TEST_F(LauncherTest, AProcessThatFailsEndsAllWithItsLastWords) {
  EXPECT_EQ(failure_of(scripts(one_fails("echo first >&2; echo 'capstan: no luck' >&2; exit 1"))),
            (std::pair<int, std::string>{kFailed, "trainer 1: no luck"}));
}

TEST_F(LauncherTest, WrongInputThatAProcessFindsKeepsItsExitCode) {
  EXPECT_EQ(failure_of(scripts(one_fails("echo 'capstan: wrong shape' >&2; exit 2"))),
            (std::pair<int, std::string>{kWrongUsage, "trainer 1: wrong shape"}));
}

TEST_F(LauncherTest, AKilledProcessIsLost) {
  const auto [code, message] = failure_of(scripts(one_fails("echo 'last line' >&2; kill -9 $$")));
  EXPECT_EQ(code, kLost);
  EXPECT_THAT(message, HasSubstr("trainer 1: killed by signal 9"));
  EXPECT_THAT(message, HasSubstr("last line"));
}

TEST_F(LauncherTest, AServerIsNamedByItsRank) {
  EXPECT_EQ(
      failure_of(scripts("case $role:$line in server=1:*prepare*) echo 'capstan: port in use' >&2; exit 1 ;; "
                         "esac")),
      (std::pair<int, std::string>{kFailed, "server 3: port in use"}));
}

TEST_F(LauncherTest, AProcessThatLostAnotherIsNotTheCause) {
  // Trainer 0 is the first to end, because it has lost trainer 1.
  const auto action =
      "case $role:$line in trainer=0:*'\"do\":\"run\"'*) echo 'capstan: lost a peer' >&2; exit 3 ;; "
      "trainer=1:*'\"do\":\"run\"'*) tail -s 0.02 --pid=$(cat DIR/trainer=0.pid) -f /dev/null; echo "
      "'capstan: cause' "
      ">&2; "
      "exit 1 ;; esac";
  EXPECT_EQ(failure_of(scripts(action)), (std::pair<int, std::string>{kFailed, "trainer 1: cause"}));
}

TEST_F(LauncherTest, AProcessThatEndsWithoutAWordIsAFailure) {
  EXPECT_EQ(failure_of(scripts(one_fails("exit 0"))).second,
            "trainer 1: ended before its work was done (exit code 0)");
  EXPECT_EQ(failure_of(scripts(one_fails("exit 4"))).second,
            "trainer 1: ended before its work was done (exit code 4)");
}

// As a process whose memory takes long to be freed.
TEST_F(LauncherTest, AProcessThatEndsSlowlyIsReportedWithItsLastWords) {
  EXPECT_EQ(failure_of(scripts("case $role,$line in trainer=1,*run*) echo 'capstan: no memory' >&2; exec >&-; "
                               "sleep 3; exit 2 ;; esac")),
            std::pair(2, std::string("trainer 1: no memory")));
}

TEST_F(LauncherTest, AProcessThatClosesItsOutputIsAFailure) {
  EXPECT_EQ(failure_of(scripts(one_fails("exec >&-; exec sleep 1000"))).second,
            "trainer 1: closed its standard output");
}

TEST_F(LauncherTest, GarbageIsAFailure) {
  EXPECT_EQ(
      failure_of(scripts(one_fails("printf 'hello\\tworld\\n'"))),
      (std::pair<int, std::string>{kFailed, "trainer 1: not a line of the lab's protocol: hello world"}));
  EXPECT_THAT(failure_of(scripts(one_fails("echo '{\"ready\": true, \"address\": \"\"}'"))).second,
              HasSubstr("trainer 1: an answer that was not expected: "));
}

TEST_F(LauncherTest, AStoppedProcessIsKilled) {
  EXPECT_EQ(
      failure_of(scripts(one_fails("kill -STOP $$"))),
      (std::pair<int, std::string>{kLost, "trainer 1: was stopped (SIGSTOP) for 3 s, and has been killed"}));
}

TEST_F(LauncherTest, AFailureAtTheEndIsAFailure) {
  EXPECT_EQ(failure_of(
                scripts("case $role:$line in server=0:end) echo 'capstan: cannot save' >&2; exit 1 ;; esac")),
            (std::pair<int, std::string>{kFailed, "server 2: cannot save"}));
}

TEST_F(LauncherTest, AProgramThatCannotBeStartedIsAnError) {
  auto options = scripts();
  options.command = {"/no/such/program"};
  NoStop stop;
  EXPECT_ANY_THROW(launch(options, stop));
}

// Stops when all processes run: one of them hangs at its start.
TEST_F(LauncherTest, AStopRequestEndsProcessesThatHang) {
  struct StopWhenStarted final : job::StopToken {
    std::function<bool()> started;
    int requests() override { return started() ? 1 : 0; }
  } stop;
  stop.started = [this] { return pids().size() == 4; };
  const auto options = scripts("case $role:$line in trainer=1:start) exec sleep 1000 ;; esac");
  EXPECT_EQ(failure_of(options, stop), (std::pair<int, std::string>{kInterrupted, "interrupted"}));
}

}  // namespace
}  // namespace capstan::lab
