#include "capstan/lab/dataset_data.h"

#include <algorithm>

#include <fmt/format.h>

#include "capstan/layout.h"
#include "capstan/training/batch.h"
#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

class DatasetData final : public Data {
 public:
  explicit DatasetData(data::Dataset dataset) : dataset_(std::move(dataset)) {}

  std::int64_t size() const override { return static_cast<std::int64_t>(dataset_.train->count()); }
  Sample item(std::int64_t index) override {
    const std::uint32_t one[] = {static_cast<std::uint32_t>(index)};
    const auto [input, target] = batch(one);
    return {input[0], target[0]};
  }
  Sample batch(std::span<const std::uint32_t> indices) override {
    auto batch = training::gather(*dataset_.train, indices);
    return {batch.input.contiguous(), batch.target.clone()};
  }

 private:
  const data::Dataset dataset_;
};

// All samples, rendered once.
class PluginSource final : public data::SampleSource {
 public:
  explicit PluginSource(Data& data) {
    for (std::int64_t i = 0; i < data.size(); ++i) add(data.item(i));
    if (samples_.empty()) throw UserError("the data has no samples");
    shape_.input = samples_[0].input.sizes().vec();
    if (samples_[0].target.is_floating_point()) {
      shape_.target = samples_[0].target.sizes().vec();
    } else {
      shape_.classes = 1 + *std::ranges::max_element(labels_);
    }
  }

  const data::SampleShape& shape() const override { return shape_; }
  std::size_t count() const override { return samples_.size(); }
  std::int64_t label(std::size_t sample) const override { return labels_.at(sample); }
  bool is_immediate() const override { return true; }
  void write_target(std::size_t sample, float* out) const override {
    const auto& target = samples_[sample].target;
    std::copy_n(target.data_ptr<float>(), target.numel(), out);
  }
  void render(std::size_t sample, std::uint64_t, float* out) const override {
    const auto& input = samples_[sample].input;
    const auto ordered = input.dim() == 3 ? input.permute({1, 2, 0}).contiguous() : input;
    std::copy_n(ordered.data_ptr<float>(), ordered.numel(), out);
  }

 private:
  void add(const Sample& sample) {
    if (!sample.input.is_floating_point())
      throw UserError(
          fmt::format("the network takes images of 32-bit floats, but an input of the data is {} {}",
                      shape_text(sample.input.sizes().vec()), c10::toString(sample.input.scalar_type())));
    samples_.push_back({sample.input.to(at::kFloat).contiguous(), sample.target});
    if (sample.target.is_floating_point()) {
      samples_.back().target = sample.target.to(at::kFloat).contiguous();
    } else {
      labels_.push_back(sample.target.item<std::int64_t>());
    }
  }

  std::vector<Sample> samples_;
  std::vector<std::int64_t> labels_;
  data::SampleShape shape_;
};

}  // namespace

std::unique_ptr<Data> make_dataset_data(data::Dataset dataset) {
  return std::make_unique<DatasetData>(std::move(dataset));
}

data::Dataset make_plugin_dataset(std::unique_ptr<Data> data) {
  return {std::make_unique<PluginSource>(*data), std::make_unique<PluginSource>(*data)};
}

}  // namespace capstan::lab
