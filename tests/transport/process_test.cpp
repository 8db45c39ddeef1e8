#include <algorithm>
#include <csignal>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "fabric.h"

namespace capstan::transport::testing {
namespace {

// A client in a process of its own, started before this one has a loop or threads.
class Child {
 public:
  explicit Child(std::function<void(const std::string& address)> main) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(ends[1]);
      std::string address(100, '\0');
      const auto got = ::read(ends[0], address.data(), address.size());
      address.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
      if (!address.empty()) main(address);
      ::_exit(0);
    }
    ::close(ends[0]);
    start_ = UniqueFd(ends[1]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    kill();
    int status = 0;
    ::waitpid(pid_, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL) << status;
  }

  void start(const std::string& address) {
    EXPECT_EQ(::write(start_.get(), address.data(), address.size()), std::ssize(address));
  }
  void kill() { ::kill(pid_, SIGKILL); }
  // Kills it and waits until the kernel has closed its sockets.
  void end() {
    kill();
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  }
  void stop() { ::kill(pid_, SIGSTOP); }

 private:
  pid_t pid_ = -1;
  UniqueFd start_;
};

constexpr std::size_t kBulk = std::size_t{128} << 20;  // more than any socket buffers

void push_for_ever(const Kind& kind, const std::string& address) {
  EventLoop loop;
  auto fabric = kind.make();
  Recorder handler;
  auto connection = std::move(*fabric->connect(loop, address));
  connection->set_handler(&handler);
  const std::vector<std::byte> payload(kBulk);
  connection->send(bytes_of("bulk"), payload, [](Status) {});
  for (;;) loop.run_once(SteadyClock::now() + std::chrono::seconds(1));
}

// Asks for bulk, and takes it into memory that is not read.
void pull_for_ever(const Kind& kind, const std::string& address) {
  EventLoop loop;
  auto fabric = kind.make();
  Recorder handler;
  auto connection = std::move(*fabric->connect(loop, address));
  connection->set_handler(&handler);
  connection->send(bytes_of("ask"));
  for (;;) loop.run_once(SteadyClock::now() + std::chrono::seconds(1));
}

void ping(const Kind& kind, const std::string& address) {
  EventLoop loop;
  auto fabric = kind.make();
  Recorder handler;
  handler.on_message = [](Connection& connection, const Incoming& incoming) {
    connection.send(incoming.frame);
  };
  auto connection = std::move(*fabric->connect(loop, address));
  connection->set_handler(&handler);
  connection->send(bytes_of("ping"));
  while (handler.ends.empty()) loop.run_once(SteadyClock::now() + std::chrono::seconds(1));
}

class Processes : public ::testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Local, Processes, ::testing::Values(Kind{"local", make_local, true}));
INSTANTIATE_TEST_SUITE_P(Ucx, Processes, ::testing::Values(Kind{"ucx", make_ucx, false}));

struct Server {
  explicit Server(const Kind& kind) : fabric(kind.make()) {
    listener = fabric->listen(loop, [this](std::unique_ptr<Connection> connection) {
      connection->set_handler(&handler);
      connections.push_back(std::move(connection));
    });
  }
  EventLoop loop;
  std::unique_ptr<Fabric> fabric;
  Recorder handler;
  std::vector<std::unique_ptr<Connection>> connections;
  std::unique_ptr<Listener> listener;
};

TEST_P(Processes, ClientKilledInTheMiddleOfItsPayloadHarmsNoOther) {
  Child victim([](const std::string& address) { push_for_ever(GetParam(), address); });
  Child other([](const std::string& address) { ping(GetParam(), address); });
  Child late([](const std::string& address) { ping(GetParam(), address); });
  Server server(GetParam());
  int pings = 0;
  server.handler.on_place = [&](Connection&, Bytes, std::size_t bytes) {
    victim.kill();  // its payload began, and did not end: no buffer takes it whole
    return Placement::receive(server.handler.payloads.emplace_back(bytes));
  };
  server.handler.on_message = [&](Connection& connection, const Incoming& incoming) {
    if (text_of(incoming.frame) != "ping") return;
    ++pings;
    connection.send(bytes_of("ping"));
  };
  other.start(server.listener->address());
  ASSERT_TRUE(run_until(server.loop, [&] { return pings > 10; }));
  victim.start(server.listener->address());
  ASSERT_TRUE(run_until(server.loop, [&] { return server.handler.ends.size() == 1; }));
  EXPECT_EQ(server.handler.ends[0].code(), StatusCode::kClosed) << server.handler.ends[0].message();
  EXPECT_EQ(std::count(server.handler.frames.begin(), server.handler.frames.end(), "bulk"), 0);
  const int before = pings;
  ASSERT_TRUE(run_until(server.loop, [&] { return pings > before + 100; }));
  EXPECT_EQ(server.handler.ends.size(), 1U);

  late.start(server.listener->address());
  ASSERT_TRUE(run_until(server.loop, [&] { return server.connections.size() == 3; }))
      << "new clients still join";
}

TEST_P(Processes, ClientKilledWhileItIsSentAPayloadGivesTheMemoryBack) {
  Child victim([](const std::string& address) { pull_for_ever(GetParam(), address); });
  Server server(GetParam());
  std::vector<std::byte> payload(kBulk, std::byte{1});
  int sent = 0;
  int failed = 0;
  server.handler.on_message = [&](Connection& connection, const Incoming&) {
    for (int i = 0; i < 4; ++i) {
      connection.send(bytes_of("bulk"), payload, [&](Status status) {
        ++sent;
        failed += status ? 0 : 1;
      });
    }
    victim.kill();
  };
  victim.start(server.listener->address());
  ASSERT_TRUE(run_until(server.loop, [&] { return server.handler.ends.size() == 1; }));
  drain(server.loop);
  EXPECT_EQ(sent, 4);
  EXPECT_GE(failed, 3);
}

// No transport notices a stopped peer. But close() ends it, and all lent memory is back when it returns.
TEST_P(Processes, StoppedClientIsClosedWhileItSendsAndIsSentPayloads) {
  Child pushing([](const std::string& address) { push_for_ever(GetParam(), address); });
  Child pulling([](const std::string& address) { pull_for_ever(GetParam(), address); });
  Server server(GetParam());
  std::vector<std::byte> payload(kBulk, std::byte{1});
  std::vector<std::byte> destination(kBulk);
  int sent = 0;
  server.handler.on_place = [&](Connection&, Bytes, std::size_t) {
    pushing.stop();
    return Placement::receive(destination);
  };
  server.handler.on_message = [&](Connection& connection, const Incoming&) {
    connection.send(bytes_of("bulk"), payload, [&](Status status) { sent += status ? 100 : 1; });
    pulling.stop();
  };
  pushing.start(server.listener->address());
  ASSERT_TRUE(run_until(server.loop, [&] { return server.handler.places == 1; }));
  pulling.start(server.listener->address());
  ASSERT_TRUE(run_until(server.loop, [&] { return server.handler.frames.size() == 1; }));
  ASSERT_EQ(server.connections.size(), 2U);
  ASSERT_EQ(server.handler.frames[0], "ask") << "the pushed payload is not complete";
  drain(server.loop);
  for (auto& connection : server.connections) connection->close();
  EXPECT_EQ(sent, 1);
  std::fill(destination.begin(), destination.end(), std::byte{7});
  pushing.end();
  pulling.end();
  drain(server.loop);
  EXPECT_EQ(std::count(destination.begin(), destination.end(), std::byte{7}), std::ssize(destination));
  EXPECT_TRUE(server.handler.ends.empty());
}

}  // namespace
}  // namespace capstan::transport::testing
