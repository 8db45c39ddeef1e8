#include "capstan/transport/ucx/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace capstan::transport::ucx {
namespace {

TEST(Address, HostAndPortAreTakenApart) {
  const auto v4 = parse("127.0.0.1:4711");
  ASSERT_TRUE(v4.is_ok());
  EXPECT_EQ(v4->host, "127.0.0.1");
  EXPECT_EQ(v4->port, 4711);
  const auto v6 = parse("[::1]:80");
  ASSERT_TRUE(v6.is_ok());
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(to_string(*v6), "[::1]:80");
  EXPECT_TRUE(parse("node-7.cluster:0").is_ok());
}

TEST(Address, OtherShapesAreRefusedWithAnExample) {
  for (const char* text : {"", "host", ":80", "host:", "host:port", "host:70000", "host:-1", "host:1x",
                           "::1:80", "[::1:80", "[]:80"}) {
    const auto parsed = parse(text);
    ASSERT_FALSE(parsed.is_ok()) << text;
    EXPECT_THAT(parsed.status().message(), ::testing::HasSubstr("127.0.0.1:4711"));
  }
}

TEST(Address, NumbersResolveToThemselves) {
  for (const char* text : {"127.0.0.1:4711", "[::1]:4711", "0.0.0.0:1"}) {
    const auto where = parse(text);
    ASSERT_TRUE(where.is_ok());
    const auto address = resolve(*where);
    ASSERT_TRUE(address.is_ok()) << address.status().message();
    EXPECT_EQ(to_string(*address), text);
  }
}

TEST(Address, UnknownHostSaysWhich) {
  const auto address = resolve({"no-such-host.invalid", 1});
  ASSERT_FALSE(address.is_ok());
  EXPECT_THAT(address.status().message(), ::testing::HasSubstr("no-such-host.invalid"));
}

}  // namespace
}  // namespace capstan::transport::ucx
