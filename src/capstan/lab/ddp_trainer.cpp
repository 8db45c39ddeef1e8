#include "capstan/lab/ddp_trainer.h"

#include <stdexcept>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/format.h>

#include "capstan/averaging/client.h"
#include "capstan/base/failure.h"
#include "capstan/client/connector.h"
#include "capstan/kernels/steps.h"
#include "capstan/lab/bucket_gradients.h"
#include "capstan/lab/flights.h"
#include "capstan/training/allreduce.h"
#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

constexpr auto kHookMetric = "hook_future_metric";

[[noreturn]] void lost(const Status& why) {
  throw Failure(kLost, why.message());
}

at::Tensor as_tensor(std::span<const float> values) {
  return at::from_blob(const_cast<float*>(values.data()), {static_cast<std::int64_t>(values.size())},
                       at::kFloat);
}

// A copy: the sum over all trainers may have more rows.
at::Tensor as_sparse_tensor(const Bucket& bucket, std::int64_t rows) {
  const auto count = static_cast<std::int64_t>(bucket.rows.size());
  const auto columns = static_cast<std::int64_t>(bucket.columns);
  auto indices = at::empty({1, count}, at::kLong);
  std::copy(bucket.rows.begin(), bucket.rows.end(), indices.data_ptr<std::int64_t>());
  auto tensor = at::_sparse_coo_tensor_unsafe(
      indices, as_tensor(bucket.values).view({count, columns}).clone(), {rows, columns}, at::kFloat);
  tensor._coalesced_(true);
  return tensor;
}

}  // namespace

// The buckets of one run, and their averages.
class DdpTrainerBase::Exchange {
 public:
  Exchange(DdpTrainerBase& trainer, Task& task)
      : trainer_(trainer),
        context_(trainer.context()),
        parameters_(task.parameters()),
        buckets_(assign_buckets(parameters_, trainer.sizes_)),
        states_(buckets_.size()),
        flights_(buckets_.size()) {
    join();
    std::vector<BucketGradients::Memory> memory;
    for (std::size_t b = 0; b < buckets_.size(); ++b) memory.push_back(memory_of(b));
    gradients_.emplace(parameters_, buckets_, std::move(memory),
                       [this](std::size_t bucket, std::size_t rows) { ready(bucket, rows); });
  }

  void begin() {
    batch_ = client_ ? client_->next_batch() : batch_ + 1;
    for (auto& state : states_) state.way = Way::kNone;
    pushed_ = pulled_ = 0;
    gradients_->begin();
  }

  // Ends the backward pass and waits for all averages.
  void finish() {
    gradients_->finish();
    const auto computed = SteadyClock::now();
    for (std::size_t b = 0; b < buckets_.size(); ++b) wait(b);
    if (context_.metrics->enabled()) flights_.end_step(computed);
    context_.metrics->record_value("bytes_metric", "pushed", "bytes", static_cast<double>(pushed_));
    context_.metrics->record_value("bytes_metric", "pulled", "bytes", static_cast<double>(pulled_));
    auto& result = trainer_.mutable_result();
    result.bytes_pushed += pushed_;
    result.bytes_pulled += pulled_;
    result.hidden = flights_.hidden();
  }

  // w -= learning rate · average
  void apply() {
    const at::NoGradGuard no_grad;
    const kernels::SgdStep step{static_cast<float>(context_.learning_rate), 0};
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      const auto average = states_[b].average;
      for (const auto& part : buckets_[b].parts) {
        const auto& weights = parameters_[part.parameter].tensor;
        if (buckets_[b].is_sparse())
          apply_rows(step, average, buckets_[b].columns, weights);
        else
          apply_dense(step, average.values.subspan(part.offset, part.elements), weights);
      }
    }
  }

  void leave() {
    if (client_) client_->leave();
  }

  void by_servers(const Bucket& bucket) {
    auto& state = begin_flight(bucket, Way::kServers);
    if (!state.slot)
      throw std::logic_error(fmt::format("bucket {} is not one for servers: uses_servers()", bucket.index));
    context_.metrics->record_start(kHookMetric, {bucket.batch, bucket.index},
                                   bucket.is_sparse() ? "rpc_sparse" : "rpc_dense");
    client_->send(*state.slot, bucket.rows.size());
  }

  void by_allreduce(const Bucket& bucket) {
    auto& state = begin_flight(bucket, Way::kAllreduce);
    const MetricKey key{bucket.batch, bucket.index};
    context_.metrics->record_start(kHookMetric, key, name_of(bucket));
    begin_sum(state, bucket, [this, key, index = bucket.index] {
      context_.metrics->record_end(kHookMetric, key);
      flights_.arrived(index, SteadyClock::now());
    });
  }

  void by_allreduce_now(const Bucket& bucket) {
    auto& state = begin_flight(bucket, Way::kAllreduce);
    const MetricKey key{bucket.batch, bucket.index};
    const auto begin = SteadyClock::now();
    context_.metrics->record_start("hook_c10d_metric", key, name_of(bucket));
    begin_sum(state, bucket, {});
    state.sum->wait();
    context_.metrics->record_end("hook_c10d_metric", key);
    const auto end = SteadyClock::now();
    flights_.blocked(begin, end);
    flights_.arrived(bucket.index, end);
  }

 private:
  enum class Way { kNone, kServers, kAllreduce };
  // One bucket in the current step.
  struct State {
    std::optional<std::size_t> slot;  // its number at the servers, if it goes there
    at::Tensor memory, rows;          // if it does not
    Way way = Way::kNone;
    at::Tensor tensor;  // that is summed
    std::unique_ptr<training::AllreduceGroup::Sum> sum;
    std::vector<std::uint32_t> sum_rows;
    Gradient average;
  };

  void join() {
    averaging::ClientOptions options;
    std::vector<std::size_t> by_slot;
    for (std::size_t b = 0; b < buckets_.size(); ++b) {
      if (!trainer_.uses_servers(buckets_[b].is_sparse())) continue;
      states_[b].slot = by_slot.size();
      by_slot.push_back(b);
      options.buckets.push_back({buckets_[b].elements, buckets_[b].columns});
    }
    if (by_slot.empty()) return;
    options.links.servers = context_.servers;
    options.links.token = cluster::Token::parse(context_.token, "the lab's token");
    options.links.index = context_.rank;
    options.links.connect_timeout = from_seconds(context_.connect_timeout);
    options.on_average = [this, by_slot](std::uint64_t batch, std::uint32_t slot, TimePoint at) {
      context_.metrics->record_end(kHookMetric, {batch, by_slot[slot]});
      flights_.arrived(by_slot[slot], at);
    };
    auto client = averaging::AveragingClient::join(
        options, client::make_connector(client::TransportChoice::kAuto, context_.servers));
    if (!client) lost(client.status());
    client_ = std::move(*client);
  }

  BucketGradients::Memory memory_of(std::size_t b) {
    auto& state = states_[b];
    if (state.slot) return {client_->rows(*state.slot), client_->bucket(*state.slot)};
    const auto& bucket = buckets_[b];
    state.memory = at::empty({static_cast<std::int64_t>(bucket.elements)}, at::kFloat);
    const auto rows = bucket.is_sparse() ? bucket.elements / bucket.columns : 0;
    state.rows = at::empty({static_cast<std::int64_t>(rows)}, at::kInt);
    return {{reinterpret_cast<std::uint32_t*>(state.rows.data_ptr<std::int32_t>()), rows},
            {state.memory.data_ptr<float>(), bucket.elements}};
  }

  void ready(std::size_t b, std::size_t rows) {
    const auto memory = gradients_->memory(b);
    Bucket bucket{static_cast<std::uint32_t>(b), batch_, buckets_[b].columns, memory.rows.first(rows),
                  memory.values};
    if (bucket.is_sparse()) bucket.values = memory.values.first(rows * bucket.columns);
    trainer_.on_bucket(bucket);
    if (states_[b].way == Way::kNone)
      throw std::logic_error(fmt::format("on_bucket() has not averaged bucket {}", b));
  }

  State& begin_flight(const Bucket& bucket, Way way) {
    auto& state = states_[bucket.index];
    if (state.way != Way::kNone)
      throw std::logic_error(fmt::format("bucket {} is averaged twice", bucket.index));
    state.way = way;
    pushed_ += bucket.rows.size_bytes() + bucket.values.size_bytes();
    flights_.sent(bucket.index, SteadyClock::now());
    return state;
  }

  static const char* name_of(const Bucket& bucket) {
    return bucket.is_sparse() ? "gloo_sparse_allreduce" : "gloo_dense_allreduce";
  }

  // Divides first, as PyTorch's hooks do.
  void begin_sum(State& state, const Bucket& bucket, std::function<void()> on_done) {
    const at::NoGradGuard no_grad;
    if (!context_.group) throw std::logic_error("the configuration has no group of trainers");
    as_tensor(bucket.values).div_(static_cast<double>(context_.trainers));
    state.tensor = bucket.is_sparse()
                       ? as_sparse_tensor(bucket, static_cast<std::int64_t>(buckets_[bucket.index].elements /
                                                                            bucket.columns))
                       : as_tensor(bucket.values);
    state.sum = context_.group->begin_sum(state.tensor, std::move(on_done));
  }

  void wait(std::size_t b) {
    auto& state = states_[b];
    if (state.way == Way::kServers) {
      const auto average = client_->wait(*state.slot);
      if (!average) lost(average.status());
      state.average = *average;
    } else {
      state.sum->wait();
      state.sum.reset();
      take_sum(b);
    }
    pulled_ += state.average.bytes();
  }

  void take_sum(std::size_t b) {
    auto& state = states_[b];
    if (!buckets_[b].is_sparse()) {
      state.average = {{}, {state.tensor.data_ptr<float>(), buckets_[b].elements}};
      return;
    }
    state.tensor = state.tensor.coalesce();
    const auto indices = state.tensor.indices();
    const auto* const rows = indices.data_ptr<std::int64_t>();
    state.sum_rows.assign(rows, rows + indices.numel());
    const auto values = state.tensor.values();
    state.average = {state.sum_rows, {values.data_ptr<float>(), static_cast<std::size_t>(values.numel())}};
  }

  static void apply_dense(const kernels::SgdStep& step, std::span<const float> average,
                          const at::Tensor& weights) {
    if (!weights.is_contiguous()) {
      weights.add_(as_tensor(average).view(weights.sizes()), -step.lr);
      return;
    }
    kernels::sgd_step(step, average, {weights.data_ptr<float>(), average.size()});
  }

  static void apply_rows(const kernels::SgdStep& step, const Gradient& average, std::uint64_t columns,
                         const at::Tensor& weights) {
    for (std::size_t i = 0; i < average.rows.size(); ++i)
      kernels::sgd_step(step, average.values.subspan(i * columns, columns),
                        {weights.data_ptr<float>() + average.rows[i] * columns, columns});
  }

  DdpTrainerBase& trainer_;
  const TrainerContext& context_;
  const NamedTensors parameters_;
  const std::vector<AssignedBucket> buckets_;
  std::vector<State> states_;  // by bucket
  Flights flights_;
  std::unique_ptr<averaging::AveragingClient> client_;
  std::optional<BucketGradients> gradients_;
  std::uint64_t batch_ = static_cast<std::uint64_t>(-1);
  std::uint64_t pushed_ = 0, pulled_ = 0;  // bytes of this step
};

DdpTrainerBase::DdpTrainerBase(TrainerContext context, BucketSizes sizes)
    : Trainer(std::move(context)), sizes_(sizes) {}

DdpTrainerBase::~DdpTrainerBase() = default;

void DdpTrainerBase::prepare(Task& task) {
  if (task.phases().size() > 1)
    throw UserError("DdpTrainer trains tasks whose steps have one phase: use a strategy as the trainer");
  exchange_ = std::make_unique<Exchange>(*this, task);
}

void DdpTrainerBase::train(Task& task) {
  run_steps(task, [&](const Step& step, const Batch& batch) {
    exchange_->begin();
    const auto loss = forward(task, step, batch);
    backward(step, loss, [&] { exchange_->finish(); });
    update(step, [&] { exchange_->apply(); });
    return loss.item<double>();
  });
  exchange_->leave();
}

void DdpTrainerBase::average_by_servers(const Bucket& bucket) {
  exchange_->by_servers(bucket);
}

void DdpTrainerBase::average_by_allreduce(const Bucket& bucket) {
  exchange_->by_allreduce(bucket);
}

void DdpTrainerBase::average_by_allreduce_now(const Bucket& bucket) {
  exchange_->by_allreduce_now(bucket);
}

}  // namespace capstan::lab
