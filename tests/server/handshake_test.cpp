// A peer that does not know the token is not trusted, on either side.

#include "capstan/cluster/handshake.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sodium.h>

namespace capstan::cluster {
namespace {

using ::testing::HasSubstr;

TEST(Handshake, TwoSidesWithOneTokenTrustEachOther) {
  const auto token = Token::generate();
  const ServerHandshake server(token);
  ClientHandshake client(token);
  const auto hello = client.answer(server.challenge());
  ASSERT_TRUE(hello);
  const auto trusted = server.answer(*hello);
  ASSERT_TRUE(trusted) << trusted.status().message();
  EXPECT_TRUE(client.check(*trusted));
}

// The proof as docs/wire_format.md describes it, made by hand.
TEST(Handshake, AProofIsTheDocumentedHash) {
  const auto token = Token::generate();
  const ServerHandshake server(token);
  ClientHandshake client(token);
  const auto hello = client.answer(server.challenge());
  ASSERT_TRUE(hello);
  std::string text("capstan client\0\0", 16);
  text.append(reinterpret_cast<const char*>(server.challenge().nonce.data()), 32);
  text.append(reinterpret_cast<const char*>(hello->nonce.data()), 32);
  unsigned char hash[crypto_auth_hmacsha512256_BYTES];
  crypto_auth_hmacsha512256(hash, reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                            reinterpret_cast<const unsigned char*>(token.bytes.data()));
  EXPECT_EQ(std::memcmp(hash, hello->proof.data(), sizeof hash), 0);
}

TEST(Handshake, AClientWithAnotherTokenIsRefused) {
  const ServerHandshake server(Token::generate());
  ClientHandshake client(Token::generate());
  const auto trusted = server.answer(*client.answer(server.challenge()));
  ASSERT_FALSE(trusted);
  EXPECT_EQ(trusted.status().code(), StatusCode::kRefused);
  EXPECT_THAT(trusted.status().message(), HasSubstr("wrong job token"));
}

TEST(Handshake, AServerWithAnotherTokenIsRefused) {
  const auto token = Token::generate();
  const ServerHandshake honest(token);
  ClientHandshake client(token);
  const auto hello = client.answer(honest.challenge());
  ASSERT_TRUE(hello);
  wire::Trusted forged;
  randombytes_buf(forged.proof.data(), forged.proof.size());
  EXPECT_EQ(client.check(forged).code(), StatusCode::kRefused);
  EXPECT_EQ(client.check(wire::Trusted{}).code(), StatusCode::kRefused);
}

TEST(Handshake, EverySingleBitOfAProofCounts) {
  const auto token = Token::generate();
  const ServerHandshake server(token);
  ClientHandshake client(token);
  const auto hello = *client.answer(server.challenge());
  for (std::size_t bit = 0; bit < 256; ++bit) {
    auto wrong = hello;
    wrong.proof[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    ASSERT_FALSE(server.answer(wrong)) << bit;
    wrong = hello;
    wrong.nonce[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    ASSERT_FALSE(server.answer(wrong)) << bit;
  }
}

TEST(Handshake, AnotherProtocolIsRefusedWithBothNumbers) {
  const auto token = Token::generate();
  const ServerHandshake server(token);
  ClientHandshake client(token);
  auto hello = *client.answer(server.challenge());
  hello.protocol = 77;
  const auto trusted = server.answer(hello);
  ASSERT_FALSE(trusted);
  EXPECT_EQ(trusted.status().code(), StatusCode::kRefused);
  EXPECT_THAT(trusted.status().message(), HasSubstr("protocol 9 here and 77 there"));
  auto challenge = server.challenge();
  challenge.protocol = 42;
  const auto refused = client.answer(challenge);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.status().message(), HasSubstr("protocol 9 here and 42 there"));
}

TEST(Handshake, AProofOfAnotherSessionIsWorthless) {
  const auto token = Token::generate();
  const ServerHandshake first(token), second(token);
  EXPECT_NE(first.challenge().nonce, second.challenge().nonce);
  ClientHandshake client(token);
  const auto overheard = *client.answer(first.challenge());
  ASSERT_TRUE(first.answer(overheard));
  EXPECT_FALSE(second.answer(overheard));

  ClientHandshake later(token);
  const auto trusted = *first.answer(overheard);
  ASSERT_TRUE(later.answer(first.challenge()));  // even with the very same challenge
  EXPECT_FALSE(later.check(trusted));
}

// A peer without the token might let an honest server make the proof for it.
TEST(Handshake, AServersProofIsNoClientsProof) {
  const auto token = Token::generate();
  const ServerHandshake server(token);
  ClientHandshake honest(token);
  auto hello = *honest.answer(server.challenge());
  hello.proof = server.answer(hello)->proof;
  EXPECT_FALSE(server.answer(hello));
}

TEST(Handshake, AClientsProofIsNoServersProof) {
  const auto token = Token::generate();
  const ServerHandshake server(token);
  ClientHandshake client(token);
  const auto hello = *client.answer(server.challenge());
  EXPECT_FALSE(client.check(wire::Trusted{hello.proof}));
}

}  // namespace
}  // namespace capstan::cluster
