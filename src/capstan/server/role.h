#pragma once

#include <memory>

#include "capstan/server/member_table.h"
#include "capstan/server/part_writer.h"
#include "capstan/server/phase.h"
#include "capstan/server/shard_server.h"
#include "capstan/status.h"
#include "capstan/wire/messages.h"

namespace spdlog {
class logger;
}

namespace capstan::server {

// The parts of the server that a role uses; all outlive the role.
struct RoleContext {
  transport::EventLoop& loop;
  MemberTable& members;
  ShardServer& shard;
  PartWriter& writer;
  Lifecycle& lifecycle;
  std::shared_ptr<spdlog::logger> log;
};

// The behaviour in which leader and followers differ. Owned by the server's loop; not thread-safe.
class Role {
 public:
  virtual ~Role() = default;

  // A client asks to join; returns the member that it becomes. kUnavailable: the client retries later.
  virtual Result<wire::Member> admit(const wire::Join& join) = 0;
  // The client was admitted; `is_new` is false after a reconnect.
  virtual void joined(const wire::Member& member, bool is_new) = 0;
  // The job may get its initial weights from this worker.
  virtual bool expects_initial(WorkerId worker) const = 0;
  // This server has its initial weights.
  virtual void initialized() = 0;
  // A push is staged here.
  virtual void pushed(const wire::Push& push) = 0;
  // Payloads and messages that depend on the role.
  virtual transport::Placement place(const wire::Member& member, const wire::Message& message,
                                     std::size_t bytes) = 0;
  virtual Status take(const wire::Member& member, const wire::Message& message) = 0;
  // A worker has left, or a member is lost.
  virtual void left(std::uint32_t rank, Incarnation incarnation, const wire::Leave& leave) = 0;
  virtual void lost(const wire::Member& member, Incarnation incarnation, const Status& why) = 0;

  virtual void tick() = 0;
  virtual void stop() = 0;  // ends the job at the next step
  // Ends the job with the current version: active workers count as having left.
  virtual void dismiss_workers() = 0;
  virtual void ended(Outcome outcome) = 0;
  // The fields that this role knows.
  virtual wire::StatusReport status() const = 0;
};

}  // namespace capstan::server
