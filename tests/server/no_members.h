#pragma once

#include "capstan/server/member_table.h"

namespace capstan::server {

// For parts of a server whose test connects no peer.
class NoMembers final : public MemberTable::Events {
  void on_join(Peer&, const wire::Join&) override {}
  transport::Placement on_payload(Peer&, const wire::Message&, std::size_t) override { return {}; }
  void on_message(Peer&, cluster::Arrival) override {}
  void on_lost(const wire::Member&, Incarnation, const Status&) override {}
};

}  // namespace capstan::server
