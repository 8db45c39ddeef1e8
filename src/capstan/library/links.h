#pragma once

#include "capstan/client/links.h"
#include "capstan/join_options.h"

// The options of the library as those of the client.
namespace capstan::library {

// Both throw UserError if an option is wrong.
client::LinkOptions link_options(const JoinOptions& options);
client::Connector connector(const JoinOptions& options);

}  // namespace capstan::library
