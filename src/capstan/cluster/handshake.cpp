#include "capstan/cluster/handshake.h"

#include <cstring>
#include <string_view>

#include <fmt/format.h>
#include <sodium.h>

#include "capstan/base/check.h"

namespace capstan::cluster {
namespace {

static_assert(sizeof(wire::Proof) == crypto_auth_BYTES);
static_assert(sizeof(Token::bytes) == crypto_auth_KEYBYTES);

wire::Nonce fresh_nonce() {
  CAPSTAN_CHECK(sodium_init() >= 0, "libsodium initializes");
  wire::Nonce nonce;
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

wire::Proof prove(const Token& token, std::string_view side, const wire::Nonce& server,
                  const wire::Nonce& client) {
  unsigned char text[16 + sizeof(wire::Nonce) * 2] = {};
  std::memcpy(text, side.data(), side.size());
  std::memcpy(text + 16, server.data(), server.size());
  std::memcpy(text + 16 + server.size(), client.data(), client.size());
  wire::Proof proof;
  crypto_auth(reinterpret_cast<unsigned char*>(proof.data()), text, sizeof text,
              reinterpret_cast<const unsigned char*>(token.bytes.data()));
  return proof;
}

bool same(const wire::Proof& a, const wire::Proof& b) {
  return sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string other_protocol(std::uint16_t theirs) {
  return fmt::format("protocol {} here and {} there: use the same version of Capstan on both sides",
                     wire::kProtocol, theirs);
}

constexpr std::string_view kClient = "capstan client";
constexpr std::string_view kServer = "capstan server";

}  // namespace

ServerHandshake::ServerHandshake(const Token& token) : token_(token) {
  challenge_.nonce = fresh_nonce();
}

Result<wire::Trusted> ServerHandshake::answer(const wire::Hello& hello) const {
  if (hello.protocol != wire::kProtocol) return Status::refused(other_protocol(hello.protocol));
  if (!same(hello.proof, prove(token_, kClient, challenge_.nonce, hello.nonce))) {
    return Status::refused("wrong job token");
  }
  return wire::Trusted{prove(token_, kServer, challenge_.nonce, hello.nonce)};
}

Result<wire::Hello> ClientHandshake::answer(const wire::Challenge& challenge) {
  if (challenge.protocol != wire::kProtocol) return Status::refused(other_protocol(challenge.protocol));
  server_nonce_ = challenge.nonce;
  nonce_ = fresh_nonce();
  return wire::Hello{wire::kProtocol, nonce_, prove(token_, kClient, server_nonce_, nonce_)};
}

Status ClientHandshake::check(const wire::Trusted& trusted) const {
  if (same(trusted.proof, prove(token_, kServer, server_nonce_, nonce_))) return Status::ok();
  return Status::refused("the server does not know the job token");
}

}  // namespace capstan::cluster
