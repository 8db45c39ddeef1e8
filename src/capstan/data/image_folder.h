#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capstan/data/augment.h"
#include "capstan/data/folder_listing.h"
#include "capstan/data/resample.h"
#include "capstan/data/sample_source.h"
#include "capstan/data/split.h"
#include "capstan/data/statistics.h"

namespace capstan::data {

// Images of a folder, decoded on demand. An image that needs no scaling has exactly the floats of the same
// image in memory. An unreadable image is replaced by the next readable one of its class; with `strict` it is
// an error. Thread-safe.
class FolderSource final : public SampleSource {
 public:
  // The part of an image that is rendered.
  enum class Crop {
    kRandomResized,  // a random part
    kTest,           // the centre, after scaling the shorter side to 256 pixels for a side of 224
    kCentre,         // the centre, after scaling the shorter side to `side`
  };
  struct Options {
    std::int64_t side = 224;  // of the rendered squares
    Crop crop = Crop::kRandomResized;
    Statistics statistics = {};  // empty: level / 255
    std::uint64_t seed = 1;
    bool strict = false;
  };
  FolderSource(FolderListing listing, const Options& options);
  ~FolderSource() override;

  const SampleShape& shape() const override { return shape_; }
  std::size_t count() const override { return listing_.files.size(); }
  std::int64_t label(std::size_t sample) const override;
  bool is_immediate() const override { return false; }
  void render(std::size_t sample, std::uint64_t epoch, float* out) const override;
  Unreadable unreadable() const override;

 private:
  struct Workspace;  // memory and decoders of one rendering thread

  void render_file(std::size_t file, Random random, Workspace& workspace, float* out) const;
  View view_of(const ImageSize& size, Random& random) const;
  std::unique_ptr<Workspace> take_workspace() const;

  const FolderListing listing_;
  const Options options_;
  const SampleShape shape_;
  const Normalisation normalisation_;
  const std::vector<Levels> levels_;  // of images that are not scaled

  mutable std::mutex mutex_;  // guards both below
  mutable std::vector<std::unique_ptr<Workspace>> idle_;
  mutable std::map<std::size_t, std::string> unreadable_;  // reason by file
};

}  // namespace capstan::data
