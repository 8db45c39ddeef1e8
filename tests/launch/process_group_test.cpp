#include "capstan/launch/process_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "support/processes.h"
#include "support/temporary_folder.h"

namespace capstan::launch {
namespace {

using testing::all_ended;
using testing::contents;
using testing::eventually;
using testing::kTestTimeout;
using testing::TemporaryFolder;

TimePoint soon() {
  return SteadyClock::now() + kTestTimeout;
}

class Group : public ::testing::Test {
 protected:
  // A member that runs this script; it writes its number to a file first.
  ProcessGroup::Member member(const std::string& name, const std::string& script) const {
    const auto pid = (folder_ / (name + ".pid")).string();
    return {{"/bin/sh", "-c", "echo $$ > " + pid + ".tmp; mv " + pid + ".tmp " + pid + "; " + script},
            folder_ / (name + ".log")};
  }
  pid_t pid_of(const std::string& name) const {
    const auto file = folder_ / (name + ".pid");
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(file); })) << name;
    return std::stoi("0" + contents(file));
  }

  const TemporaryFolder folder_;
};

TEST_F(Group, TellsWhichMemberFailedAndItsLastLine) {
  ProcessGroup group;
  const auto when_released = "while [ ! -e " + (folder_ / "go").string() + " ]; do sleep 0.01; done; ";
  group.start({member("ends", "exit 0"), member("runs", "exec sleep 1000"),
               member("fails", when_released + "echo first >&2; echo no more memory >&2; exit 1")});
  EXPECT_TRUE(all_ended({pid_of("ends")}));
  EXPECT_FALSE(group.find_lost());
  testing::write_file(folder_ / "go", "");
  const auto lost = group.await_lost(soon());
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->index, 2u) << "a member that ends with code 0 is not lost";
  EXPECT_EQ(lost->exit.code, 1);
  EXPECT_FALSE(lost->was_stopped);
  EXPECT_EQ(lost->last_log_line, "no more memory");
}

TEST_F(Group, AMemberKilledByASignalIsLost) {
  ProcessGroup group;
  group.start({member("runs", "exec sleep 1000")});
  ::kill(pid_of("runs"), SIGKILL);
  const auto lost = group.await_lost(soon());
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->exit.signal, SIGKILL);
  EXPECT_FALSE(lost->was_stopped) << "it was not the group that killed it";
}

// The others end, too, and may be seen to end first.
TEST_F(Group, TheMemberThatTheOthersLostIsNamed) {
  ProcessGroup group;
  group.start({member("loses", "exit 3"), member("runs", "exec sleep 1000")});
  ASSERT_TRUE(eventually([&] { return group.find_lost().has_value(); }));
  EXPECT_EQ(group.await_lost(SteadyClock::now())->index, 0u) << "the only one so far";
  ::kill(pid_of("runs"), SIGKILL);
  const auto lost = group.await_lost(soon());
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->index, 1u);
  EXPECT_EQ(lost->exit.signal, SIGKILL);
  EXPECT_EQ(group.find_lost()->index, 1u);
}

// Its peers would wait for it forever.
TEST_F(Group, AStoppedMemberIsKilledAfterAWhile) {
  ProcessGroup group;
  group.start({member("runs", "exec sleep 1000"), member("stops", "exec sleep 1000")});
  const auto stopped = pid_of("stops");
  ::kill(stopped, SIGSTOP);
  const auto lost = group.await_lost(soon());
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->index, 1u);
  EXPECT_TRUE(lost->was_stopped);
  EXPECT_EQ(lost->exit.signal, SIGKILL);
}

TEST_F(Group, WaitsForMembersThatEndByThemselvesAndKillsTheOthers) {
  pid_t ends = 0, stays = 0;
  {
    ProcessGroup group;
    group.start({member("ends", "while [ ! -e " + (folder_ / "go").string() + " ]; do sleep 0.01; done"),
                 member("stays", "exec sleep 1000")});
    ends = pid_of("ends");
    stays = pid_of("stays");
    testing::write_file(folder_ / "go", "");
    group.wait(SteadyClock::now() + std::chrono::milliseconds(300));
    EXPECT_EQ(::kill(stays, 0), 0) << "until the group ends";
  }
  EXPECT_TRUE(all_ended({ends, stays}));
}

}  // namespace
}  // namespace capstan::launch
