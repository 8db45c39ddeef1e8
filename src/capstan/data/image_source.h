#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace capstan::data {

// Shape of one image and number of classes.
struct ImageShape {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t classes = 0;

  std::size_t pixels() const { return static_cast<std::size_t>(channels * height * width); }
  friend bool operator==(const ImageShape&, const ImageShape&) = default;
};

// Images that could not be read so far and were replaced.
struct Unreadable {
  std::size_t images = 0;
  std::string first;  // file and error of the first one
};

// Labelled images of one shape, as a network sees them. All functions are thread-safe.
class ImageSource {
 public:
  virtual ~ImageSource() = default;

  virtual const ImageShape& shape() const = 0;
  virtual std::size_t count() const = 0;
  virtual std::int64_t label(std::size_t sample) const = 0;  // 0 … classes - 1
  // Whether render() is so cheap that a loader thread does not pay off.
  virtual bool is_immediate() const = 0;

  // Writes shape().pixels() normalised floats in the order height, width, channel. Randomness depends on the
  // source's seed, `epoch` and `sample` only, so that an image does not depend on the thread or worker that
  // renders it. Throws UserError for an image that cannot be read.
  virtual void render(std::size_t sample, std::uint64_t epoch, float* out) const = 0;
  virtual Unreadable unreadable() const { return {}; }
};

}  // namespace capstan::data
