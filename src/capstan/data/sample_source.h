#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "capstan/base/check.h"

namespace capstan::data {

// Shape of one sample's input and target.
struct SampleShape {
  std::vector<std::int64_t> input;        // three dimensions are an image: channels, height, width
  std::int64_t classes = 0;               // 0: the target is numbers
  std::vector<std::int64_t> target = {};  // dimensions of a target of numbers; {1} for a single number

  bool is_image() const { return input.size() == 3; }
  // Of an image.
  std::int64_t channels() const { return input.at(0); }
  std::int64_t height() const { return input.at(1); }
  std::int64_t width() const { return input.at(2); }

  bool has_classes() const { return classes > 0; }
  // Floats of one input, and of one target of numbers.
  std::size_t elements() const { return product(input); }
  std::size_t target_elements() const { return product(target); }

  friend bool operator==(const SampleShape&, const SampleShape&) = default;

 private:
  static std::size_t product(const std::vector<std::int64_t>& dims) {
    std::size_t elements = 1;
    for (const auto d : dims) elements *= static_cast<std::size_t>(d);
    return elements;
  }
};

// Images that could not be read so far and were replaced.
struct Unreadable {
  std::size_t images = 0;
  std::string first;  // file and error of the first one
};

// Samples of one shape, as a network sees them: an input, and either a class or numbers as target. All
// functions are thread-safe.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual const SampleShape& shape() const = 0;
  virtual std::size_t count() const = 0;
  // With classes: 0 … classes - 1.
  virtual std::int64_t label(std::size_t sample) const = 0;
  // With a target of numbers: writes shape().target_elements() floats.
  virtual void write_target(std::size_t sample, float* out) const;
  // Whether render() is so cheap that a loader thread does not pay off.
  virtual bool is_immediate() const = 0;

  // Writes shape().elements() normalised floats; of an image in the order height, width, channel, of others
  // in row-major order. Randomness depends on the source's seed, `epoch` and `sample` only, so that a sample
  // does not depend on the thread or worker that renders it. Throws UserError for an image that cannot be
  // read.
  virtual void render(std::size_t sample, std::uint64_t epoch, float* out) const = 0;
  virtual Unreadable unreadable() const { return {}; }
};

inline void SampleSource::write_target(std::size_t, float*) const {
  CAPSTAN_CHECK(false, "the targets of this source are numbers");
}

}  // namespace capstan::data
