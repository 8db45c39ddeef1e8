#include "capstan/training/worker.h"

#include "capstan/data/partition.h"
#include "capstan/models/arena.h"
#include "capstan/models/buffers.h"
#include "capstan/models/gradient_arena.h"
#include "capstan/training/loader.h"
#include "capstan/training/step.h"

namespace capstan::training {
namespace {

// The step of its own sequence at which a worker that joins at this version goes on: 0 where the job begins.
std::uint64_t first_step(const client::WorkerClient& client, Version version) {
  const auto updates = version.value - client.start().value;
  return client.strategy().starts_with("async") ? updates / client.workers() : updates;
}

}  // namespace

Result<WorkerResult> run_worker(client::WorkerClient& client, models::Model& model, const FlatLayout& layout,
                                const data::ImageSource& train, const WorkerOptions& options) {
  auto update = client.pull();
  if (!update) return update.status();
  if (options.training) *options.training = true;
  models::bind_parameters(model, layout, client.weights().data());
  models::copy_buffers_in(model, client.initial_statistics());
  models::GradientArena arena(model, layout, client.gradients());
  data::Sampler sampler({train.count(), client.workers(), options.batch_size}, client.rank().value,
                        options.seed, client.legs());

  WorkerResult result;
  const auto total = sampler.total_steps(options.epochs);
  const auto first = first_step(client, update->version);
  client.skip_to({first});
  Loader loader(train, options.loader_threads, batches_of(sampler, first, total));
  for (auto step = first; step < total; ++step) {
    if (update->stop || (options.stop && options.stop->load(std::memory_order_relaxed))) break;
    seed_step(options.seed, client.rank(), update->version);
    const auto computed = compute_gradients(model, arena, loader.next());
    update = client.push_pull({static_cast<std::uint32_t>(computed.samples),
                               static_cast<float>(computed.loss), computed.seconds, loader.wait_seconds()});
    if (!update) return update.status();
    if (update->statistics) client.send_statistics(models::copy_buffers_out(model));
    ++result.steps;
    result.samples += computed.samples;
    result.loss = computed.loss;
    result.compute_seconds += computed.seconds;
    result.data_seconds += loader.wait_seconds();
  }
  result.communication_seconds = client.communication_seconds();
  models::unbind_parameters(model);  // others may go on, and change what was bound
  if (!model.buffers().empty()) client.send_statistics(models::copy_buffers_out(model));
  client.leave();
  return result;
}

}  // namespace capstan::training
