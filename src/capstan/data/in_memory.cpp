#include "capstan/data/in_memory.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "capstan/base/text.h"
#include "capstan/data/memory_source.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

bool is_measured(const DatasetOptions& options, const Statistics& constants) {
  return options.normalize == Normalize::kTrain ||
         (options.normalize == Normalize::kAuto && constants.empty());
}

// The statistics that the options give without the training part; empty if there are none.
Statistics known_statistics(const DatasetOptions& options, const Statistics& constants) {
  if (!is_measured(options, constants)) return constants;
  return options.encoding ? options.encoding->statistics : Statistics();
}

std::size_t period_of(const SampleShape& shape) {
  return shape.is_image() ? static_cast<std::size_t>(shape.channels()) : shape.elements();
}

// Inputs of 0 or 1 stay as they are.
void except_categories(const std::vector<InputColumn>& columns, Statistics& statistics) {
  std::size_t at = 0;
  for (const auto& column : columns) {
    if (column.categories.empty()) ++at;
    for (std::size_t i = 0; i < column.categories.size(); ++i, ++at) {
      statistics.mean[at] = 0;
      statistics.deviation[at] = 1;
    }
  }
}

Statistics statistics_of(const DatasetOptions& options, const Statistics& constants, const Splits& splits,
                         const std::vector<InputColumn>& columns) {
  if (options.normalize == Normalize::kNone) return {};
  const auto& shape = splits.test.shape;
  const auto period = period_of(shape);
  if (auto known = known_statistics(options, constants); !known.empty()) {
    if (known.mean.size() == period) return known;
    throw UserError(fmt::format(
        "{} has {} per sample, but the run that describes it was trained with {}: give the "
        "same --dataset, or --normalize none",
        options.name, counted(period, shape.is_image() ? "channel" : "number"), known.mean.size()));
  }
  const auto& train = splits.train;
  auto out = !train.pixels.empty()    ? measure(train.pixels, period)
             : !train.doubles.empty() ? measure(train.doubles, period)
                                      : measure(train.values, period);
  if (!shape.is_image()) except_categories(columns, out);
  return out;
}

void normalise(Split& split, const Statistics& statistics) {
  const auto period = period_of(split.shape);
  if (!split.pixels.empty()) {
    split.levels = levels_of(statistics, period);
    return;
  }
  split.black.assign(split.shape.is_image() ? period : 0, 0);
  normalise(statistics, split.black);
  if (split.doubles.empty()) {
    normalise(statistics, split.values);
  } else {
    split.values = normalised(statistics, split.doubles);
    split.doubles = std::vector<double>();  // frees the memory
  }
}

// A value far outside of the range of the training part may have become infinite.
void check_finite(const DatasetOptions& options, const Split& split, const char* part,
                  const Statistics& statistics) {
  const auto bad = std::ranges::find_if_not(split.values, [](float v) { return std::isfinite(v); });
  if (bad == split.values.end()) return;
  const auto at = static_cast<std::size_t>(bad - split.values.begin());
  throw UserError(fmt::format(
      "{}: number {} of sample {} of the {} part is too large to be normalised (the standard deviation is "
      "{:.3g}): correct it, or give --normalize none",
      options.name, at % split.shape.elements(), at / split.shape.elements(), part,
      statistics.deviation[at % statistics.deviation.size()]));
}

void check_image_size(const DatasetOptions& options, const SampleShape& shape) {
  if (options.image_size == 0) return;
  if (shape.is_image() && options.image_size == shape.width() && options.image_size == shape.height()) return;
  throw UserError(fmt::format(
      "--image-size {}: only images of folders are scaled; those of {} are {}", options.image_size,
      options.name, shape.is_image() ? fmt::format("{}x{}", shape.height(), shape.width()) : "not images"));
}

Augment augment_of(const DatasetOptions& options, const SampleShape& shape, Augment usual) {
  const auto augment = options.augment == Augment::kAuto ? usual : options.augment;
  if (augment == Augment::kResizedCrop) {
    throw UserError(fmt::format(
        "--augment resized-crop is for image folders; {} takes auto, none or crop-flip", options.name));
  }
  if (augment == Augment::kCropFlip && !shape.is_image()) {
    throw UserError(fmt::format("--augment crop-flip is for images; {} has {} per sample", options.name,
                                counted(shape.elements(), "number")));
  }
  return augment;
}

}  // namespace

bool needs_train(const DatasetOptions& options, const Statistics& constants) {
  if (!options.test_only) return true;
  return is_measured(options, constants) && known_statistics(options, constants).empty();
}

Dataset in_memory(const DatasetOptions& options, Splits splits, const InMemory& kind, Encoding encoding) {
  const auto& shape = splits.test.shape;
  check_image_size(options, shape);
  const auto augment = augment_of(options, shape, kind.augment);
  encoding.classes = shape.classes;
  encoding.statistics = statistics_of(options, kind.constants, splits, encoding.columns);
  normalise(splits.test, encoding.statistics);
  check_finite(options, splits.test, "test", encoding.statistics);
  Dataset out;
  out.test = std::make_unique<MemorySource>(std::move(splits.test));
  out.encoding = std::move(encoding);
  if (options.test_only) return out;
  normalise(splits.train, out.encoding.statistics);
  check_finite(options, splits.train, "training", out.encoding.statistics);
  if (augment == Augment::kNone)
    out.train = std::make_unique<MemorySource>(std::move(splits.train));
  else
    out.train = MemorySource::crop_flip(std::move(splits.train), options.seed);
  return out;
}

}  // namespace capstan::data
