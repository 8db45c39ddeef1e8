#pragma once

#include <string>
#include <vector>

#include "capstan/layout.h"

namespace capstan::layouts {

// Names and shapes, in the order in which the network registers them.
struct NetworkTensors {
  std::vector<TensorShape> parameters;
  std::vector<TensorShape> buffers;
};

// Collects the tensors of a network, layer by layer.
class TensorTable {
 public:
  void conv(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t height,
            std::int64_t width) {
    tensors_.parameters.push_back({name + ".weight", {out, in, height, width}});
  }
  void conv_with_bias(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t size) {
    conv(name, in, out, size, size);
    tensors_.parameters.push_back({name + ".bias", {out}});
  }
  void norm(const std::string& name, std::int64_t channels) {
    tensors_.parameters.push_back({name + ".weight", {channels}});
    tensors_.parameters.push_back({name + ".bias", {channels}});
    tensors_.buffers.push_back({name + ".running_mean", {channels}});
    tensors_.buffers.push_back({name + ".running_var", {channels}});
    tensors_.buffers.push_back({name + ".num_batches_tracked", {}});
  }
  // A convolution without bias and the batch norm after it.
  void conv_norm(const std::string& conv_name, const std::string& norm_name, std::int64_t in,
                 std::int64_t out, std::int64_t size) {
    conv(conv_name, in, out, size, size);
    norm(norm_name, out);
  }
  // The same as one module with the children `conv` and `bn`.
  void unit(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t height,
            std::int64_t width) {
    conv(name + ".conv", in, out, height, width);
    norm(name + ".bn", out);
  }
  void unit(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t size) {
    unit(name, in, out, size, size);
  }
  void linear(const std::string& name, std::int64_t in, std::int64_t out) {
    tensors_.parameters.push_back({name + ".weight", {out, in}});
    tensors_.parameters.push_back({name + ".bias", {out}});
  }

  NetworkTensors take() { return std::move(tensors_); }

 private:
  NetworkTensors tensors_;
};

}  // namespace capstan::layouts
