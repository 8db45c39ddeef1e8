#pragma once

#include "capstan/cluster/token.h"
#include "capstan/status.h"
#include "capstan/wire/messages.h"

// Both sides prove that they know the job's token before anything else is read: each answers the peer's
// random nonce with a keyed hash of both nonces and of its own side ("client" or "server"). Values; not
// thread-safe.
namespace capstan::cluster {

class ServerHandshake {
 public:
  explicit ServerHandshake(const Token& token);
  const wire::Challenge& challenge() const { return challenge_; }
  Result<wire::Trusted> answer(const wire::Hello& hello) const;

 private:
  Token token_;
  wire::Challenge challenge_;
};

class ClientHandshake {
 public:
  explicit ClientHandshake(const Token& token) : token_(token) {}
  Result<wire::Hello> answer(const wire::Challenge& challenge);
  Status check(const wire::Trusted& trusted) const;

 private:
  Token token_;
  wire::Nonce server_nonce_{};
  wire::Nonce nonce_{};
};

}  // namespace capstan::cluster
