#pragma once

#include <memory>

#include "capstan/base/status.h"
#include "capstan/server/member_table.h"
#include "capstan/server/part_writer.h"
#include "capstan/server/phase.h"
#include "capstan/server/shard_server.h"
#include "capstan/wire/messages.h"

namespace spdlog {
class logger;
}

namespace capstan::server {

// What a role works with; all of it outlives the role.
struct RoleContext {
  transport::EventLoop& loop;
  MemberTable& members;
  ShardServer& shard;
  PartWriter& writer;
  Lifecycle& lifecycle;
  std::shared_ptr<spdlog::logger> log;
};

// What differs between the server that leads and those that follow. Owned by the server's loop; not
// thread-safe.
class Role {
 public:
  virtual ~Role() = default;

  // A client wants to join: which member it is. Unavailable means not yet: it is to try again.
  virtual Result<wire::Member> admit(const wire::Join& join) = 0;
  // It was taken in; `is_new` is false for a connection that came back.
  virtual void joined(const wire::Member& member, bool is_new) = 0;
  // Initial weights have arrived here.
  virtual void initialized() = 0;
  // A push is staged here.
  virtual void pushed(const wire::Push& push) = 0;
  // Payloads and messages that not every server takes.
  virtual transport::Placement place(const wire::Member& member, const wire::Message& message,
                                     std::size_t bytes) = 0;
  virtual Status take(const wire::Member& member, const wire::Message& message) = 0;
  // A worker has left, or a member is lost.
  virtual void left(std::uint32_t rank, Incarnation incarnation) = 0;
  virtual void lost(const wire::Member& member, Incarnation incarnation, const Status& why) = 0;

  virtual void tick() = 0;
  virtual void stop() = 0;  // end the job at the next step
  // End the job with the version that is there: workers that still take part are taken to have left.
  virtual void dismiss_workers() = 0;
  virtual void ended(Outcome outcome) = 0;
  // What this role knows of the job.
  virtual wire::StatusReport status() const = 0;
};

}  // namespace capstan::server
