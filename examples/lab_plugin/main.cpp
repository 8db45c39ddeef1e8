// Capstan's strategy lab with one plug-in of each kind: data, a model, a trainer and a server.

#include <algorithm>

#include <capstan/lab/ddp_trainer.h>
#include <capstan/lab/run.h>
#include <capstan/user_error.h>
#include <torch/torch.h>

namespace {

namespace lab = capstan::lab;

// Points on two rings around the origin; the class of a point is its ring.
class Rings : public lab::Data {
 public:
  Rings(std::int64_t points, std::uint64_t seed) {
    auto generator = at::detail::createCPUGenerator(seed);
    const auto angle = 2 * M_PI * torch::rand({points}, generator);
    classes_ = torch::randint(0, 2, {points}, generator, torch::kLong);
    const auto radius = classes_ + 1 + 0.1 * torch::randn({points}, generator);
    points_ = torch::stack({radius * torch::cos(angle), radius * torch::sin(angle)}, 1);
  }
  std::int64_t size() const override { return points_.size(0); }
  lab::Sample item(std::int64_t index) override { return {points_[index], classes_[index]}; }

 private:
  torch::Tensor points_, classes_;
};

class Perceptron : public lab::Model {
 public:
  explicit Perceptron(std::int64_t hidden) : first_(2, hidden), last_(hidden, 2) {
    register_module("first", first_);
    register_module("last", last_);
  }
  torch::Tensor forward(const torch::Tensor& points) override { return last_(torch::tanh(first_(points))); }

 private:
  torch::nn::Linear first_, last_;
};

// Scales a bucket down if its norm is too large, then sends it to the servers.
class ClippingTrainer : public lab::DdpTrainerBase {
 public:
  ClippingTrainer(const lab::TrainerContext& context, double most) : DdpTrainerBase(context), most_(most) {}

 private:
  bool uses_servers(bool /*is_sparse*/) const override { return true; }
  void on_bucket(lab::Bucket& bucket) override {
    record_start("clip_metric", {bucket.batch, bucket.index}, "clip");
    double squares = 0;
    for (const auto value : bucket.values) squares += value * value;
    const auto norm = std::sqrt(squares);
    if (norm > most_)
      for (auto& value : bucket.values) value *= static_cast<float>(most_ / norm);
    record_end("clip_metric", {bucket.batch, bucket.index});
    average_by_servers(bucket);
  }

  const double most_;
};

// The median of all trainers' gradients, element by element: one trainer with wrong gradients cannot move it
// far.
class MedianServer : public lab::Server {
 public:
  void process_gradient(lab::Slot& slot, std::uint32_t trainer, const lab::Gradient& gradient) override {
    if (slot.is_sparse())
      throw capstan::UserError("MedianServer takes dense gradients: use a model without sparse ones");
    auto& kept = gradients_[slot.bucket()];
    kept.resize(slot.trainers());
    kept[trainer] = gradient.values;
  }
  void average(lab::Slot& slot) override {
    const auto& kept = gradients_[slot.bucket()];
    std::vector<float> values(kept.size());
    for (std::size_t i = 0; i < slot.values().size(); ++i) {
      for (std::size_t t = 0; t < kept.size(); ++t) values[t] = kept[t][i];
      std::ranges::sort(values);
      const auto middle = values.size() / 2;
      slot.values()[i] = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
    }
  }
  void reset_state() override { gradients_.clear(); }

 private:
  std::map<std::uint32_t, std::vector<std::span<const float>>> gradients_;  // by bucket and trainer
};

}  // namespace

int main(int argc, char** argv) {
  lab::Registry registry;
  registry.data["Rings"] = [](const auto& values, auto seed) {
    return std::make_unique<Rings>(values.integer("points", 1, 1 << 20), seed);
  };
  registry.models["Perceptron"] = [](const auto& values) {
    return std::make_shared<Perceptron>(values.integer("hidden", 1, 1 << 16));
  };
  registry.trainers["ClippingTrainer"] = [](const auto& values, const auto& context) {
    return std::make_unique<ClippingTrainer>(context, values.number("most"));
  };
  registry.servers["MedianServer"] = [](const auto&) { return std::make_unique<MedianServer>(); };
  return lab::run(argc, argv, registry);
}
