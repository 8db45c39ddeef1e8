#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace capstan::data {

// By which statistics inputs are normalised.
enum class Normalize {
  kAuto,   // the dataset's constants; of the user's own arrays and tables those of the training part
  kNone,   // raw values; levels of images are divided by 255
  kTrain,  // those of the training part
};

// auto, none or train; throws UserError for anything else.
Normalize parse_normalize(std::string_view name);

// Mean and standard deviation of each channel of images, or of each element of other inputs. Levels of images
// count as level / 255. Empty: inputs are not normalised.
struct Statistics {
  std::vector<double> mean;
  std::vector<double> deviation;

  bool empty() const { return mean.empty(); }
  friend bool operator==(const Statistics&, const Statistics&) = default;
};

// The statistics of samples of `period` interleaved channels or elements: population standard deviation. A
// constant element is only centred: its deviation is 1.
Statistics measure(std::span<const std::uint8_t> levels, std::size_t period);
Statistics measure(std::span<const float> values, std::size_t period);
Statistics measure(std::span<const double> values, std::size_t period);

// (value - mean) / deviation for all values, computed in double precision and rounded once. Without
// statistics values are only rounded.
void normalise(const Statistics& statistics, std::span<float> values);
std::vector<float> normalised(const Statistics& statistics, std::span<const double> values);

}  // namespace capstan::data
