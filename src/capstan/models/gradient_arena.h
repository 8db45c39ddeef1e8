#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "capstan/base/row_tensors.h"
#include "capstan/layout.h"
#include "capstan/torch/named_tensor.h"

namespace capstan::models {

// Copies each gradient to its offset in one flat array (arena.h) while the backward pass still runs. From
// construction to destruction the parameters' gradients belong to the arena: nothing accumulates. The array
// must outlive the arena. Not thread-safe; on_ready is called by the thread that runs the backward pass, and
// must not throw.
class GradientArena {
 public:
  // `gradients` has layout.size() elements; its gaps are set to zero once and never written again. Row
  // tensors must be zero in it.
  GradientArena(NamedTensors parameters, const FlatLayout& layout, std::span<float> gradients);
  GradientArena(const GradientArena&) = delete;
  GradientArena& operator=(const GradientArena&) = delete;
  ~GradientArena();

  const FlatLayout& layout() const { return layout_; }
  // The rows of each row tensor that have a gradient, after finish(). begin() sets them to zero again.
  const RowLists& rows() const { return rows_; }
  // The caller has written gradients to these rows, too.
  void set_rows(std::size_t tensor, std::vector<std::uint32_t> rows) { rows_[tensor] = std::move(rows); }
  std::span<float> gradients() const { return gradients_; }

  // Called with a tensor's index as soon as its gradient is in place; may be empty.
  void on_ready(std::function<void(std::size_t tensor)> callback) { ready_ = std::move(callback); }

  // From now on gradients are written to another array of the same size. Not between begin() and finish().
  void redirect(std::span<float> gradients);

  // Called before and after each backward pass. finish() sets every tensor without a gradient to zero and
  // reports it to on_ready, so that the array is exactly the gradient of this pass. The pass throws UserError
  // for a sparse gradient of a tensor that is no row tensor.
  void begin();
  void finish();

 private:
  at::Tensor take(std::size_t tensor, const at::Tensor& gradient);
  void take_rows(std::size_t tensor, const at::Tensor& gradient);

  const NamedTensors parameters_;  // handles
  const FlatLayout layout_;
  std::span<float> gradients_;
  std::function<void(std::size_t)> ready_;
  std::vector<unsigned> hooks_;
  std::vector<bool> in_place_;
  RowLists rows_;
};

}  // namespace capstan::models
