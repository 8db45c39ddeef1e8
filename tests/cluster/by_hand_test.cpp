// Servers and workers started one by one, on one host and between two network namespaces.

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "program.h"

namespace capstan::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A port that nothing listens on, below those that the kernel gives to outgoing connections.
std::string free_port() {
  for (int port = 10000 + ::getpid() % 20000;; ++port) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool is_free = ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    ::close(socket);
    if (is_free) return std::to_string(port);
  }
}

class ByHand : public ::testing::Test {
 protected:
  Program serve(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"serve", "--json", "--token-file=" + token_.string()};
    if (std::ranges::none_of(more, [](const auto& a) { return a.starts_with("--epochs"); }))
      arguments.push_back("--epochs=2");
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Program(folder_, arguments);
  }
  Program work(const std::string& address, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"work", "--json", "--server=" + address, "--threads=1"};
    if (std::ranges::none_of(more, [](const auto& a) { return a.starts_with("--token-file"); })) {
      arguments.push_back("--token-file=" + token_.string());
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Program(folder_, arguments);
  }

  const Folder folder_;
  const fs::path token_ = token_file(folder_);
};

TEST_F(ByHand, ServerAndWorkersConnectOverEveryTransport) {
  for (const std::string transport : {"auto", "local", "ucx"}) {
    auto server = serve({"--workers=2", "--transport=" + transport});
    const auto address = address_of(server);
    ASSERT_FALSE(address.empty()) << server.errors();
    const auto file = [&](const char* name) { return (folder_ / (transport + name)).string(); };
    auto a = work(address, {"--transport=" + transport, "--save=" + file("-a.safetensors")});
    auto b = work(address, {"--transport=" + transport, "--save=" + file("-b.safetensors")});
    EXPECT_EQ(a.exit_code(), 0) << a.errors();
    EXPECT_EQ(b.exit_code(), 0) << b.errors();
    EXPECT_EQ(server.exit_code(), 0) << server.errors();
    EXPECT_EQ(server.json()["steps"], 2 * 23);
    // Sync: both have the same last weights, over every transport.
    const auto weights = text_of(file("-a.safetensors"));
    EXPECT_GT(weights.size(), 431080u * 4);
    EXPECT_TRUE(weights == text_of(file("-b.safetensors"))) << transport;
    EXPECT_TRUE(weights == text_of(folder_ / "auto-a.safetensors")) << transport;
  }
}

// Two servers end with the weights of one.
TEST_F(ByHand, AFollowerTakesItsShare) {
  auto leader = serve({"--workers=1", "--servers=2"});
  const auto first = address_of(leader);
  auto follower = serve({"--leader=" + first});
  const auto second = address_of(follower);
  ASSERT_FALSE(second.empty()) << follower.errors();
  auto worker = work(first + "," + second, {"--save=" + (folder_ / "two.safetensors").string()});
  EXPECT_EQ(worker.exit_code(), 0) << worker.errors();
  EXPECT_EQ(leader.exit_code(), 0) << leader.errors();
  EXPECT_EQ(follower.exit_code(), 0) << follower.errors();
  auto single = serve({"--workers=1"});
  auto again = work(address_of(single), {"--save=" + (folder_ / "one.safetensors").string()});
  EXPECT_EQ(again.exit_code(), 0) << again.errors();
  const auto weights = text_of(folder_ / "two.safetensors");
  EXPECT_GT(weights.size(), 431080u * 4);
  EXPECT_TRUE(weights == text_of(folder_ / "one.safetensors"));
}

TEST_F(ByHand, AFollowerMayStartFirst) {
  const auto port = free_port();
  auto follower = serve({"--leader=127.0.0.1:" + port});
  const auto second = address_of(follower);
  auto leader = serve({"--workers=1", "--servers=2", "--listen=127.0.0.1:" + port});
  const auto first = address_of(leader);
  ASSERT_FALSE(first.empty()) << leader.errors();
  auto worker = work(first + "," + second);
  EXPECT_EQ(worker.exit_code(), 0) << worker.errors();
  EXPECT_EQ(leader.exit_code(), 0) << leader.errors();
  EXPECT_EQ(follower.exit_code(), 0) << follower.errors();
}

TEST_F(ByHand, TextOfAWorkerDoesNotControlATerminal) {
  auto server = serve({"--workers=1", "--epochs=1"});
  const auto address = address_of(server);
  auto refused = work(address, {"--dataset=csv:\x1b[2J\u202e.csv:target=y"});
  EXPECT_EQ(refused.exit_code(), 2);
  auto worker = work(address);
  EXPECT_EQ(worker.exit_code(), 0) << worker.errors();
  EXPECT_EQ(server.exit_code(), 0) << server.errors();
  for (const auto& text : {refused.errors(), server.errors()}) {
    EXPECT_THAT(text, HasSubstr("--dataset csv:?[2J?.csv:target=y: the job has digits"));
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    EXPECT_THAT(text, Not(HasSubstr("\u202e")));
  }
}

// True once the process handles the signal. Loading libtorch comes first, and may take long.
bool blocks_signal(pid_t pid, int signal) {
  const auto status = text_of("/proc/" + std::to_string(pid) + "/status");
  const auto at = status.find("SigBlk:");
  return at != std::string::npos &&
         (std::stoull(status.substr(at + 7), nullptr, 16) >> (signal - 1) & 1) == 1;
}

TEST_F(ByHand, AWorkerThatWaitsIsInterrupted) {
  auto unanswered = work("127.0.0.1:1");
  auto server = serve({"--workers=2", "--verbose"});
  auto joined = work(address_of(server));
  for (auto* worker : {&unanswered, &joined}) {
    ASSERT_TRUE(eventually([&] { return blocks_signal(worker->child().pid(), SIGTERM); }));
  }
  ASSERT_TRUE(server.said("worker 0 joined")) << server.errors();
  for (auto* worker : {&unanswered, &joined}) {
    worker->child().signal(SIGTERM);
    EXPECT_EQ(worker->exit_code(20), 130) << worker->errors();
    EXPECT_EQ(worker->json()["ok"], false);
  }
  server.child().signal(SIGINT);
  EXPECT_EQ(server.exit_code(20), 130) << server.errors();
}

TEST_F(ByHand, ALostServerEndsAllProcessesWithCode3OverEveryTransport) {
  for (const std::string transport : {"local", "ucx"}) {
    for (const bool leader_dies : {true, false}) {
      const auto over = "--transport=" + transport;
      auto leader = serve({"--workers=1", "--servers=2", "--epochs=10000", over});
      const auto first = address_of(leader);
      auto follower = serve({"--leader=" + first, over, "--verbose"});
      const auto second = address_of(follower);
      auto worker = work(first + "," + second, {over});
      ASSERT_TRUE(follower.said("worker 0 joined")) << follower.errors();
      (leader_dies ? leader : follower).child().signal(SIGKILL);
      EXPECT_EQ((leader_dies ? follower : leader).exit_code(), 3) << transport;
      EXPECT_EQ(worker.exit_code(), 3) << worker.errors();
    }
  }
}

// Everything that workers must have in common comes from the server: a worker is given an address, a token
// and what is its own.
TEST_F(ByHand, WorkersLearnTheJobFromTheServer) {
  auto server = serve({"--workers=2", "--network=mlp", "--seed=9", "--batch-size=50", "--epochs=3"});
  const auto address = address_of(server);
  auto a = work(address, {"--save=" + (folder_ / "a.safetensors").string()});
  auto b = work(address, {"--seed=9", "--batch-size=50"});  // what agrees may be repeated
  ASSERT_EQ(a.exit_code(), 0) << a.errors();
  ASSERT_EQ(b.exit_code(), 0) << b.errors();
  ASSERT_EQ(server.exit_code(), 0) << server.errors();
  EXPECT_EQ(server.json()["steps"], 3 * 15) << "1,438 samples in steps of 100";
  Program whole(folder_, {"train", "--network=mlp", "--seed=9", "--batch-size=50", "--epochs=3",
                          "--train-dir=" + (folder_ / "run").string()});
  ASSERT_EQ(whole.exit_code(), 0) << whole.errors();
  EXPECT_EQ(text_of(folder_ / "a.safetensors"), text_of(folder_ / "run" / "weights.safetensors"));
}

TEST_F(ByHand, WrongTokensAndContradictionsAreRefusedAndTheJobContinues) {
  auto server = serve({"--workers=2", "--verbose"});
  const auto address = address_of(server);
  auto good = work(address);
  auto unauthenticated = work(address, {"--token-file=" + token_file(folder_, kOtherToken).string()});
  EXPECT_EQ(unauthenticated.exit_code(), 2);
  EXPECT_THAT(unauthenticated.errors(), HasSubstr("wrong job token"));
  auto different = work(address, {"--network=mlp", "--seed=7", "--batch-size=32"});
  EXPECT_EQ(different.exit_code(), 2);
  for (const auto* name : {"--network mlp", "--seed 7"}) {
    EXPECT_THAT(different.errors(), HasSubstr(name));
    EXPECT_TRUE(server.said(name)) << server.errors();
  }
  EXPECT_THAT(different.errors(), Not(HasSubstr("--batch-size"))) << "this one agrees";
  auto other = work(address);
  EXPECT_EQ(good.exit_code(), 0) << good.errors();
  EXPECT_EQ(other.exit_code(), 0) << other.errors();
  EXPECT_EQ(server.exit_code(), 0) << server.errors();
}

TEST_F(ByHand, ATokenFileThatOthersCanReadIsRefused) {
  const auto loose = folder_ / "loose";
  std::ofstream(loose) << kToken;
  fs::permissions(loose, fs::perms::owner_read | fs::perms::others_read);
  Program server(folder_, {"serve", "--token-file=" + loose.string()});
  EXPECT_EQ(server.exit_code(), 2);
  EXPECT_THAT(server.errors(), HasSubstr("chmod 600"));
  Program none(folder_, {"serve"});
  EXPECT_EQ(none.exit_code(), 2);
  EXPECT_THAT(none.errors(), HasSubstr("CAPSTAN_TOKEN"));
}

TEST_F(ByHand, APortInUseIsReported) {
  auto server = serve({"--workers=1"});
  const auto address = address_of(server);
  auto second = serve({"--workers=1", "--listen=" + address});
  EXPECT_EQ(second.exit_code(), 2);
  EXPECT_THAT(second.errors(), HasSubstr("in use"));
  server.child().signal(SIGINT);
  EXPECT_EQ(server.exit_code(), 130);
}

TEST_F(ByHand, AnAddressWithoutAServerIsReported) {
  auto worker = work("127.0.0.1:1", {"--connect-timeout=1"});
  EXPECT_EQ(worker.exit_code(), 3);
  EXPECT_THAT(worker.errors(), HasSubstr("127.0.0.1:1"));
}

TEST_F(ByHand, AWorkerSavesItsFinalWeights) {
  auto server = serve({"--workers=2"});
  const auto address = address_of(server);
  auto a = work(address, {"--save=" + (folder_ / "a.safetensors").string()});
  auto b = work(address, {"--save=" + (folder_ / "b.safetensors").string()});
  ASSERT_EQ(a.exit_code(), 0) << a.errors();
  ASSERT_EQ(b.exit_code(), 0) << b.errors();
  Program whole(folder_, {"train", "--epochs=2", "--train-dir=" + (folder_ / "run").string()});
  ASSERT_EQ(whole.exit_code(), 0) << whole.errors();
  const auto expected = text_of(folder_ / "run" / "weights.safetensors");
  EXPECT_GT(expected.size(), 431080u * 4);
  EXPECT_EQ(text_of(folder_ / "a.safetensors"), expected);
  EXPECT_EQ(text_of(folder_ / "b.safetensors"), expected);
  auto nowhere = work(address, {"--save=" + (folder_ / "none" / "c.safetensors").string()});
  EXPECT_EQ(nowhere.exit_code(), 2);
  EXPECT_THAT(nowhere.errors(), HasSubstr("no such folder"));
}

// One place of a job of `train --rank`.
class Ranks : public ByHand {
 protected:
  Program rank(int rank, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"train",
                                          "--rank=" + std::to_string(rank),
                                          "--world_size=3",
                                          "--master_addr=127.0.0.1",
                                          "--master_port=" + port_,
                                          "--json",
                                          "--train-dir=" + (folder_ / "run").string(),
                                          "--token-file=" + token_.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Program(folder_, arguments);
  }

  const std::string port_ = free_port();
};

TEST_F(Ranks, TrainTheSameWeightsAsOneCommand) {
  auto master = rank(0, {"--epochs=2"}), a = rank(1, {"--epochs=2"}), b = rank(2);
  ASSERT_EQ(master.exit_code(), 0) << master.errors();
  EXPECT_EQ(a.exit_code(), 0) << a.errors();
  EXPECT_EQ(b.exit_code(), 0) << b.errors();
  EXPECT_THAT(master.errors(), HasSubstr("worker 1 joined"));
  EXPECT_THAT(master.errors(), HasSubstr("epoch 1 "));
  EXPECT_EQ(master.json()["steps"], 2 * 23);
  Program whole(folder_, {"train", "--epochs=2", "--train-dir=" + (folder_ / "whole").string()});
  ASSERT_EQ(whole.exit_code(), 0) << whole.errors();
  EXPECT_EQ(text_of(folder_ / "run" / "weights.safetensors"),
            text_of(folder_ / "whole" / "weights.safetensors"));
}

TEST_F(Ranks, ARankThatContradictsTheJobIsRefusedByName) {
  auto master = rank(0, {"--epochs=2", "--seed=3"}), a = rank(1, {"--epochs=3"});
  EXPECT_EQ(a.exit_code(), 2);
  EXPECT_THAT(a.errors(), HasSubstr("--epochs 3"));
  auto again = rank(1), b = rank(2, {"--seed=3"});
  EXPECT_EQ(again.exit_code(), 0) << again.errors();
  EXPECT_EQ(b.exit_code(), 0) << b.errors();
  EXPECT_EQ(master.exit_code(), 0) << master.errors();
  EXPECT_EQ(master.json()["steps"], 2 * 23);
}

TEST_F(Ranks, TheJobStartsWithoutAWorkerThatDoesNotJoin) {
  auto master = rank(0, {"--epochs=1", "--join-timeout=8"}), a = rank(1, {"--epochs=1"});
  EXPECT_EQ(master.exit_code(), 0) << master.errors();
  EXPECT_EQ(a.exit_code(), 0) << a.errors();
  EXPECT_THAT(master.errors(), HasSubstr("worker 1 is lost (did not join in time)"));
  EXPECT_EQ(master.json()["lost_workers"], 1);
}

TEST_F(Ranks, WithoutAnyWorkerTheJobEndsWithCode3) {
  auto master = rank(0, {"--join-timeout=1"});
  EXPECT_EQ(master.exit_code(), 3) << master.errors();
}

TEST_F(Ranks, CanBeInterruptedWhileTheyWait) {
  auto master = rank(0);
  ASSERT_TRUE(master.said("waiting for")) << master.errors();
  const auto servers = master.children(" serve ");
  ASSERT_EQ(servers.size(), 1u);
  master.child().signal(SIGINT);
  EXPECT_EQ(master.exit_code(), 130) << master.errors();
  EXPECT_TRUE(all_ended(servers));
}

TEST_F(Ranks, EndWithRankZero) {
  auto master = rank(0, {"--epochs=400"}), a = rank(1, {"--epochs=400"}), b = rank(2, {"--epochs=400"});
  ASSERT_TRUE(master.said("epoch 1 ")) << master.errors();
  const auto servers = master.children(" serve ");
  master.child().signal(SIGKILL);
  EXPECT_EQ(a.exit_code(), 3) << a.errors();
  EXPECT_EQ(b.exit_code(), 3) << b.errors();
  EXPECT_TRUE(all_ended(servers));
}

// ---- two hosts ----

int shell(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str());
}

// Two network namespaces joined by a virtual cable; removed with the object.
class TwoHosts {
 public:
  TwoHosts() : a_("capstan-a-" + std::to_string(::getpid())), b_("capstan-b-" + std::to_string(::getpid())) {
    const auto& cable = cable_;
    made_ = shell("ip netns add " + a_) == 0 && shell("ip netns add " + b_) == 0 &&
            shell("ip link add ca" + cable + " netns " + a_ + " type veth peer name cb" + cable + " netns " +
                  b_) == 0 &&
            shell("ip -n " + a_ + " addr add 10.77.0.1/24 dev ca" + cable) == 0 &&
            shell("ip -n " + b_ + " addr add 10.77.0.2/24 dev cb" + cable) == 0 &&
            shell("ip -n " + a_ + " link set ca" + cable + " up") == 0 &&
            shell("ip -n " + b_ + " link set cb" + cable + " up") == 0 &&
            shell("ip -n " + a_ + " link set lo up") == 0 && shell("ip -n " + b_ + " link set lo up") == 0;
    // The carrier comes a moment later.
    const auto has_carrier = [&] {
      return shell("ip -n " + a_ + " link show ca" + cable + " | grep -q LOWER_UP") == 0 &&
             shell("ip -n " + b_ + " link show cb" + cable + " | grep -q LOWER_UP") == 0;
    };
    made_ = made_ && eventually(has_carrier);
  }
  ~TwoHosts() {
    shell("ip netns del " + a_);
    shell("ip netns del " + b_);
  }
  bool made() const { return made_; }
  // Limits the bandwidth in both directions.
  bool limit(const std::string& rate) const {
    const auto rule = " root tbf rate " + rate + " burst 32kb latency 400ms";
    return shell("tc -n " + a_ + " qdisc add dev ca" + cable_ + rule) == 0 &&
           shell("tc -n " + b_ + " qdisc add dev cb" + cable_ + rule) == 0;
  }
  std::vector<std::string> on_a() const { return {"/usr/sbin/ip", "netns", "exec", a_}; }
  std::vector<std::string> on_b() const { return {"/usr/sbin/ip", "netns", "exec", b_}; }

 private:
  const std::string a_, b_, cable_ = std::to_string(::getpid() % 100000);
  bool made_ = false;
};

TEST_F(ByHand, ServerAndWorkersOnTwoHosts) {
  const TwoHosts hosts;
  if (!hosts.made()) GTEST_SKIP() << "network namespaces cannot be made here (they need root and iproute2)";
  for (const std::string listen : {"10.77.0.1:7000", "0.0.0.0:7001"}) {
    const auto port = listen.substr(listen.find(':'));
    const std::vector<std::string> environment = {std::string("CAPSTAN_TOKEN=") + kToken};
    Program server(folder_, {"serve", "--json", "--workers=2", "--epochs=2", "--listen=" + listen},
                   environment, hosts.on_a());
    ASSERT_FALSE(address_of(server).empty()) << server.errors();
    const auto worker = [&](const char* name) {
      return Flags{"work", "--json", "--threads=1", "--server=10.77.0.1" + port,
                   "--save=" + (folder_ / name).string()};
    };
    Program far(folder_, worker("far.safetensors"), environment, hosts.on_b());    // over the cable
    Program near(folder_, worker("near.safetensors"), environment, hosts.on_a());  // the server's own host
    EXPECT_EQ(far.exit_code(), 0) << far.errors();
    EXPECT_EQ(near.exit_code(), 0) << near.errors();
    EXPECT_EQ(server.exit_code(), 0) << server.errors();
    EXPECT_GT(text_of(folder_ / "far.safetensors").size(), 431080u * 4);
    EXPECT_TRUE(text_of(folder_ / "far.safetensors") == text_of(folder_ / "near.safetensors"));
  }
}

// A payload takes four seconds here, longer than the silence limit of a member.
TEST_F(ByHand, ASlowNetworkLosesNoWorker) {
  const TwoHosts hosts;
  if (!hosts.made() || !hosts.limit("3500kbit"))
    GTEST_SKIP() << "slow network namespaces cannot be made here (they need root, iproute2 and tbf)";
  const std::vector<std::string> environment = {std::string("CAPSTAN_TOKEN=") + kToken};
  Program server(folder_, {"serve", "--json", "--workers=1", "--max-steps=1", "--listen=10.77.0.1:7000"},
                 environment, hosts.on_a());
  ASSERT_FALSE(address_of(server).empty()) << server.errors();
  Program worker(folder_, {"work", "--json", "--threads=1", "--server=10.77.0.1:7000"}, environment,
                 hosts.on_b());
  EXPECT_EQ(worker.exit_code(), 0) << worker.errors();
  EXPECT_EQ(server.exit_code(), 0) << server.errors();
  EXPECT_EQ(server.json()["steps"], 1);
}

}  // namespace
}  // namespace capstan::testing
