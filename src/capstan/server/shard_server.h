#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "capstan/checkpoint/checkpointer.h"
#include "capstan/layout.h"
#include "capstan/optimizer/spec.h"
#include "capstan/server/job_terms.h"
#include "capstan/server/model.h"
#include "capstan/server/orders.h"
#include "capstan/server/push_staging.h"
#include "capstan/server/row_store.h"
#include "capstan/server/shard_executor.h"
#include "capstan/server/update_recorder.h"
#include "capstan/server/weight_delivery.h"
#include "capstan/strategy/strategy_spec.h"

namespace capstan::server {

// One server's range of the weights with its optimizer state: takes pushes, and executes orders strictly in
// sequence. Leader and followers use it alike. An invalid order returns a Status and changes nothing. Owned
// by the server's loop; not thread-safe.
class ShardServer {
 public:
  struct Options {
    optimizer::Spec optimizer;
    optimizer::Schedule schedule;
    unsigned threads = 1;
    std::size_t inline_elements = ShardExecutor::kInlineElements;  // shard_executor.h
    UpdateObserver* observer = nullptr;                            // null: nothing is measured
  };

  // `on_idle` runs after an update or an accumulation that leaves the queue of orders empty.
  ShardServer(transport::EventLoop& loop, Options options, MemberTable& members,
              std::function<void()> on_idle);

  // Sets the job's terms; call before set_model(). Throws UserError for an unknown strategy.
  void set_terms(JobTerms terms);
  const JobTerms& terms() const { return terms_; }
  const strategy::StrategySpec& spec() const { return spec_; }
  const ParameterGroups& groups() const { return placed_.groups; }  // one before there is a model
  const optimizer::OptimizerSet& optimizers() const { return *optimizers_; }
  // Of the arrays beside the weights.
  std::vector<std::string> state_names() const;

  // The parameter groups of a model in this job. Throws UserError for a model that the job cannot train.
  ParameterGroups make_groups(const Model& model) const;
  // Refuses a model that this job cannot train.
  Status check_model(const Model& model) const;
  // Creates the shard, once. `marks` come from a checkpoint. Fails if memory is insufficient.
  Status set_model(const Model& model, std::vector<checkpoint::HighWaterMark> marks = {});
  bool has_model() const { return executor_ != nullptr; }
  const Model& model() const { return placed_.model; }
  const FlatLayout& layout() const { return placed_.model.layout; }
  Range range() const { return placed_.range; }
  const transport::Segment& segment() const { return weights_; }

  // The initial weights come from a worker or from a checkpoint. A worker's arrive in memory of their own
  // (place_initial); take_initial() uses the first that are complete, and returns false for others. Those of
  // a checkpoint are written to arrays(); then set_initialized().
  transport::Placement place_initial(WorkerId worker, std::size_t bytes);
  bool take_initial(WorkerId worker);
  std::vector<checkpoint::NamedArray> arrays();
  void set_initialized();
  bool is_initialized() const { return staging_ && staging_->is_open(); }
  std::span<const float> weights() const;  // empty before that

  PushStaging& staging() { return *staging_; }  // only with a model
  // Checks and stages a push: PushStaging::stage().
  Result<bool> stage(WorkerId from, const wire::Push& push, std::size_t payload_bytes);
  // Forgets a worker that has left or is lost.
  void forget(WorkerId worker, Incarnation incarnation);
  Status execute(const Order& order);
  // An answer to this observer has been ordered and is not sent yet.
  bool is_answering(const wire::Member& observer) const {
    return delivery_ && delivery_->is_answering(observer);
  }
  // Copies weights and state at this place in the queue of orders.
  void copy_to(const std::shared_ptr<checkpoint::Snapshot>& snapshot, ShardExecutor::Done done);

  // Drops queued orders: the server ends.
  void abandon();
  bool is_idle() const { return !executor_ || executor_->is_idle(); }
  TimePoint last_update_at() const { return last_update_at_; }

 private:
  // The job's model, and this server's part of it.
  struct PlacedModel {
    Model model;
    ParameterGroups groups;
    Range range;
    ShardRows rows;
  };

  Status execute_one(const wire::ApplyOrder& order);
  Status execute_rows(const wire::ApplyOrder& order);
  Status execute_one(const wire::AccumulateOrder& order);
  Status execute_one(const wire::DropOrder& order);
  Status execute_one(const wire::DeliverOrder& order);
  Status check_rule(const wire::ApplyOrder& order) const;
  // An update of this group is done.
  void settle(const std::vector<wire::Contribution>& used, std::uint32_t group, std::uint64_t number);
  // For the recorder, if there is one: an update of these bytes; 0 otherwise.
  std::uint64_t record(const wire::ApplyOrder& order, std::uint64_t bytes);
  std::uint64_t row_bytes(std::uint32_t group, const std::vector<RowStore::Push>& pushes) const;
  void report_idle();

  transport::EventLoop& loop_;
  const Options options_;
  MemberTable& members_;
  const std::function<void()> on_idle_;
  JobTerms terms_;
  strategy::StrategySpec spec_;
  std::unique_ptr<const optimizer::OptimizerSet> optimizers_;
  PlacedModel placed_;
  transport::Segment weights_;
  std::optional<PushStaging> staging_;
  bool has_accumulated_ = false;  // a sum for the next update exists
  TimePoint last_update_at_;
  std::unique_ptr<ShardExecutor> executor_;
  std::optional<RowStore> rows_;  // of a shard with row tensors
  std::optional<WeightDelivery> delivery_;
  std::optional<UpdateRecorder> recorder_;
};

}  // namespace capstan::server
