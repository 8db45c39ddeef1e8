#pragma once

#include "capstan/cluster/link.h"
#include "capstan/cluster/pause_detector.h"
#include "capstan/server/role.h"

namespace capstan::server {

struct FollowerOptions {
  cluster::Link::Options link;
  cluster::Link::Connect connect;  // to the leader, which may still be starting
  Duration join_timeout = std::chrono::seconds(120);
};

// A server that takes the job's terms and its orders from the leader, and reports to the leader which pushes
// it holds. An order that cannot be executed ends the link and this server. Owned by the server's loop; not
// thread-safe.
class Follower final : public Role, private cluster::Link::Events {
 public:
  Follower(const RoleContext& context, const FollowerOptions& options);

  Result<wire::Member> admit(const wire::Join& join) override;
  void joined(const wire::Member&, bool) override {}
  // The leader chooses it; followers do not know which one it is.
  bool expects_initial(WorkerId) const override { return true; }
  void initialized() override;
  void pushed(const wire::Push& push) override;
  transport::Placement place(const wire::Member&, const wire::Message&, std::size_t) override;
  Status take(const wire::Member& member, const wire::Message& message) override;
  // A worker sends Leave to every server; a follower acts on the leader's Gone.
  void left(std::uint32_t, Incarnation, const wire::Leave&) override {}
  void lost(const wire::Member& member, Incarnation incarnation, const Status& why) override;
  void tick() override;
  void stop() override;
  void dismiss_workers() override;
  void ended(Outcome) override {}
  wire::StatusReport status() const override;

 private:
  wire::Join make_join() override;
  transport::Placement on_payload(cluster::Link&, const wire::Message&, std::size_t) override;
  void on_message(cluster::Link& link, const wire::Message& message) override;
  void on_joined(cluster::Link& link, std::optional<transport::Segment>, bool again) override;
  void on_lost(cluster::Link& link, Status why) override;

  Status execute(const wire::Message& message);
  // The leader's first Joined. Fails for a place or for terms that do not exist.
  Status take_terms(const wire::Joined& joined);
  // The leader's Joined, which it repeats when it knows the job's model.
  Status announce(const wire::Joined& joined);
  Status check_model(const Model& model) const;
  void load_checkpoint();

  const RoleContext context_;
  std::optional<Model> model_;  // the job's
  cluster::PauseDetector pauses_;
  cluster::Link leader_;  // last: open() calls back
};

}  // namespace capstan::server
