#pragma once

#include <variant>

#include "capstan/wire/messages.h"

namespace capstan::server {

// What every server of a job does next; all servers execute orders in the leader's sequence.
using Order = std::variant<wire::ApplyOrder, wire::AccumulateOrder, wire::DropOrder, wire::DeliverOrder>;

}  // namespace capstan::server
