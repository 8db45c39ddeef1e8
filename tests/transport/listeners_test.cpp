#include "capstan/transport/listeners.h"

#include <gtest/gtest.h>

#include "capstan/transport/event_loop.h"
#include "capstan/transport/local/local.h"
#include "capstan/user_error.h"

namespace capstan::transport {
namespace {

std::uint16_t port_of(const std::string& address) {
  return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

class ListenersTest : public ::testing::Test {
 protected:
  Accept accept() {
    return [this](std::unique_ptr<Connection> connection) { accepted_.push_back(std::move(connection)); };
  }
  // Until the other end has come.
  bool await_connection() {
    for (const auto until = SteadyClock::now() + std::chrono::seconds(30);
         accepted_.empty() && SteadyClock::now() < until;)
      loop_.run_once(until);
    return !accepted_.empty();
  }

  EventLoop loop_;
  std::vector<std::unique_ptr<Connection>> accepted_;
};

TEST_F(ListenersTest, SharedMemoryAloneTellsTheHostThatWasGiven) {
  const Listeners listeners(loop_, {"127.0.0.1:0", true, false}, accept());
  EXPECT_TRUE(listeners.address().starts_with("127.0.0.1:"));
  ASSERT_NE(port_of(listeners.address()), 0);
  const auto client = local::connect(loop_, port_of(listeners.address()));
  ASSERT_TRUE(client) << client.status().message();
  EXPECT_TRUE(await_connection());
}

TEST_F(ListenersTest, BothAreUnderOnePort) {
  const Listeners listeners(loop_, {"127.0.0.1:0"}, accept());
  const auto client = local::connect(loop_, port_of(listeners.address()));
  ASSERT_TRUE(client) << client.status().message();
  EXPECT_TRUE(await_connection());
  accepted_.clear();
}

TEST_F(ListenersTest, WithoutSharedMemoryNothingListensThere) {
  const Listeners listeners(loop_, {"127.0.0.1:0", false, true}, accept());
  EXPECT_FALSE(local::connect(loop_, port_of(listeners.address())));
}

TEST_F(ListenersTest, APortInUseIsAUsersError) {
  const Listeners first(loop_, {"127.0.0.1:0", true, false}, accept());
  EXPECT_THROW(Listeners(loop_, {first.address(), true, false}, accept()), UserError);
}

}  // namespace
}  // namespace capstan::transport
