#include "capstan/library/links.h"

#include <cstdlib>

#include <fmt/format.h>

#include "capstan/client/connector.h"
#include "capstan/cluster/token.h"
#include "capstan/user_error.h"

namespace capstan::library {
namespace {

cluster::Token token(const JoinOptions& options) {
  if (!options.token.empty()) return cluster::Token::parse(options.token, "JoinOptions::token");
  if (options.token_file.empty() && !std::getenv(cluster::kTokenVariable)) {
    throw UserError(fmt::format(
        "no job token: set JoinOptions::token or token_file, or {}, to the token of the job's servers",
        cluster::kTokenVariable));
  }
  return cluster::find_token(options.token_file);
}

client::TransportChoice choice(Transport transport) {
  switch (transport) {
    case Transport::kAuto:
      return client::TransportChoice::kAuto;
    case Transport::kLocal:
      return client::TransportChoice::kLocal;
    case Transport::kUcx:
      return client::TransportChoice::kUcx;
  }
  throw UserError(fmt::format("JoinOptions::transport is {}; it must be Transport::kAuto, kLocal or kUcx",
                              static_cast<int>(transport)));
}

}  // namespace

client::LinkOptions link_options(const JoinOptions& options) {
  if (options.servers.empty())
    throw UserError("JoinOptions::servers is empty; it needs the address of every server of the job");
  for (const auto& server : options.servers) (void)client::parse_address(server);
  client::LinkOptions link;
  link.servers = options.servers;
  link.token = token(options);
  link.connect_timeout = options.connect_timeout;
  link.silence = options.silence_timeout;
  return link;
}

client::Connector connector(const JoinOptions& options) {
  return client::make_connector(choice(options.transport), options.servers);
}

}  // namespace capstan::library
