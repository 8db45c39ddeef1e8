#pragma once

#include "capstan/join_options.h"

#include "cluster/program.h"

namespace capstan::testing {

// A server of the built program, for workers and observers of the library. With one weight, a push g and
// the learning rate 0.5, an update is w -= 0.5·g.
class Serving {
 public:
  explicit Serving(Flags more = {})
      : server_(folder_, flags(std::move(more)), {std::string("CAPSTAN_TOKEN=") + kToken}),
        address_(address_of(server_)) {}

  JoinOptions options() const {
    // For servers that are starved for a while.
    return {.servers = {address_}, .token = kToken, .silence_timeout = kTestTimeout};
  }
  const std::string& address() const { return address_; }
  Program& program() { return server_; }

 private:
  static Flags flags(Flags more) {
    Flags all = {"serve", "--json", "--lr=0.5", "--momentum=0"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  const Folder folder_;
  Program server_;
  const std::string address_;
};

}  // namespace capstan::testing
