#pragma once

#include <string>
#include <vector>

#include "capstan/models/layers.h"
#include "capstan/models/model.h"

namespace capstan::models {

// How a layer's weights are initialised.
struct Initializer {
  enum class Kind {
    kUniform,  // uniform in ±1/√fan_in: PyTorch's default
    kInputs,   // normal, variance 2 / fan_in
    kOutputs,  // normal, variance 2 / fan_out
    kNormal,   // normal, standard deviation `deviation`
  };
  Kind kind = Kind::kUniform;
  double deviation = 0;
  bool zero_bias = false;  // otherwise uniform, PyTorch's default
};

// A model of layers. Their tensors are added to parameters() and buffers() in the order of creation, with
// PyTorch's names and initial values from libtorch's global generator.
class Network : public Model {
 public:
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  const NamedTensors& parameters() const final { return parameters_; }
  const NamedTensors& buffers() const final { return buffers_; }
  void train(bool on) final { training_ = on; }

 protected:
  Network() = default;

  bool training() const { return training_; }

  Conv conv(const std::string& name, std::int64_t in, std::int64_t out, const Kernel& kernel,
            const Initializer& start);
  Conv conv_with_bias(const std::string& name, std::int64_t in, std::int64_t out, const Kernel& kernel,
                      const Initializer& start);
  BatchNorm norm(const std::string& name, std::int64_t channels, double eps = 1e-5);
  Linear linear(const std::string& name, std::int64_t in, std::int64_t out, const Initializer& start);
  Dropout dropout(double rate) const { return {rate, &training_}; }

 private:
  at::Tensor parameter(const std::string& name, at::Tensor values);
  at::Tensor buffer(const std::string& name, at::Tensor values);
  at::Tensor bias(const std::string& name, std::int64_t out, std::int64_t inputs, const Initializer& start);

  NamedTensors parameters_;
  NamedTensors buffers_;
  bool training_ = true;
};

}  // namespace capstan::models
