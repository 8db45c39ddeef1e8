#pragma once

#include "capstan/cxx20.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include "capstan/metric.h"
#include "capstan/samples.h"
#include "capstan/step_phase.h"
#include "capstan/torch/named_tensor.h"

namespace capstan {

// The data of one step. Which tensors it has is up to the task; most have an input and a target.
struct Batch {
  at::Tensor input, target;
  std::vector<at::Tensor> others = {};
  std::uint64_t samples = 0;  // the weight of its loss where batches differ in size
};

// Batches in sequence. Use from one thread.
class BatchStream {
 public:
  virtual ~BatchStream() = default;
  // The next batch of its sequence, which must have one. Its tensors may be views of memory that the next
  // call reuses.
  virtual Batch next() = 0;
};

// What is trained: parameters, data, loss and metrics. The worker's loop, training in one process, allreduce
// and the evaluator know nothing else of a model. Not thread-safe; different objects may be used on different
// threads.
class Task {
 public:
  virtual ~Task() = default;

  // 32-bit floats, in an order that is the same in every process. The handles are the model's own tensors,
  // not copies. During training their memory belongs to Capstan, and may be read-only (see
  // writes_parameters()).
  virtual const NamedTensors& parameters() const = 0;
  // State of the model that is not trained, such as running means. Every worker has its own; checkpoints and
  // results have the mean over the workers.
  virtual const NamedTensors& buffers() const = 0;
  // Training mode (as after construction) or evaluation mode.
  virtual void train(bool on) = 0;

  // The phases of a step in their order; empty for one phase of all parameters. Every parameter belongs to
  // one phase.
  virtual std::vector<StepPhase> phases() const { return {}; }

  virtual SplitInfo split(Split split) const = 0;
  // A batch depends on the request only, so that it is the same in every process, and after a resume.
  virtual Batch batch(Split split, const BatchRequest& request) = 0;
  // The batches of a sequence; `threads` may prepare them ahead. By default, batch() makes each when it is
  // needed.
  virtual std::unique_ptr<BatchStream> stream(Split split, BatchSequence sequence, unsigned threads);

  // The loss of a phase, a scalar. The loop calls backward() on it. Random numbers of libtorch's generator
  // are the same after a resume.
  virtual at::Tensor loss(std::size_t phase, const Batch& batch) = 0;

  // At least one; models are compared by the first.
  virtual std::vector<Metric> metrics() const = 0;
  // A test batch's contribution to each metric. Called in evaluation mode, without gradients.
  virtual std::vector<MetricSum> evaluate(const Batch& batch) = 0;
  // Samples per batch when evaluating.
  virtual std::uint64_t evaluation_batch() const { return 256; }

  // True if loss() or batch() writes to parameters, for example to clip them: the worker then computes on a
  // copy, and what is written is lost with the next pull.
  virtual bool writes_parameters() const { return false; }
  // Lines about problems with the data so far, for the user.
  virtual std::vector<std::string> warnings(Split) const { return {}; }
};

}  // namespace capstan
