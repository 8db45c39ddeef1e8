#pragma once

#include <cmath>

#include "capstan/base/arena_order.h"
#include "capstan/checkpoint/checkpoint.h"
#include "capstan/checkpoint/run_checkpoints.h"

// Checkpoints whose values are given by a formula.
namespace capstan::testing {

// Tensors of 0 to 4 dimensions whose boundaries differ from those of the ranges below.
inline FlatLayout many_shapes() {
  return FlatLayout({{"scalar", {}},
                     {"conv.weight", {6, 5, 3, 2}},
                     {"none", {0, 4}},
                     {"bias", {37}},
                     {"matrix", {11, 13}},
                     {"cube", {3, 4, 5}},
                     {"point.weight", {9, 7, 1, 1}},
                     {"last", {1}}});
}

inline FlatLayout some_buffers() {
  return FlatLayout({{"bn.running_mean", {5}}, {"bn.num_batches_tracked", {}}, {"bn.running_var", {5}}});
}

// Element `i`, in row-major order, of tensor `tensor` in array `array`. All values differ.
inline float value_of(std::size_t array, std::size_t tensor, std::size_t i) {
  return static_cast<float>(array) * 65536 + static_cast<float>(tensor) * 1024 + static_cast<float>(i) +
         0.25f;
}

// A tensor of the flat array, in row-major order, by index arithmetic.
inline std::size_t c_place(const TensorShape& tensor, std::size_t in_arena) {
  if (tensor.dims.size() != 4) return in_arena;
  const auto channels = static_cast<std::size_t>(tensor.dims[1]);
  const auto pixels = static_cast<std::size_t>(tensor.dims[2] * tensor.dims[3]);
  const auto c = in_arena % channels, p = in_arena / channels % pixels, o = in_arena / channels / pixels;
  return (o * channels + c) * pixels + p;
}

// The elements `range` of a flat array by that formula; zeros between tensors.
inline std::vector<float> flat_values(const FlatLayout& layout, std::size_t array, Range range) {
  std::vector<float> flat(layout.size());
  for (std::size_t t = 0; t < layout.tensors().size(); ++t) {
    for (std::size_t i = 0; i < layout.range(t).size(); ++i)
      flat[layout.offset(t) + i] = value_of(array, t, c_place(layout.tensors()[t], i));
  }
  return {flat.begin() + static_cast<std::ptrdiff_t>(range.begin),
          flat.begin() + static_cast<std::ptrdiff_t>(range.end)};
}

// Ranges with arbitrary boundaries; the last ones may be empty.
inline std::vector<Range> cuts(std::uint64_t size, std::uint32_t servers) {
  std::vector<Range> ranges;
  std::uint64_t begin = 0;
  for (std::uint32_t s = 0; s < servers; ++s) {
    const auto end = s + 1 == servers ? size : std::min(size, begin + size / servers + 7 * s % 5);
    ranges.push_back({begin, end});
    begin = end;
  }
  return ranges;
}

inline std::vector<float> buffers_values(const FlatLayout& layout) {
  std::vector<float> flat(layout.size());
  for (std::size_t t = 0; t < layout.tensors().size(); ++t) {
    for (std::size_t i = 0; i < layout.range(t).size(); ++i)
      flat[layout.offset(t) + i] =
          checkpoint::is_counter(layout.tensors()[t].name) ? 1234 : value_of(9, t, i) / 3;
  }
  return flat;
}

// Writes a checkpoint server by server and returns its manifest.
inline checkpoint::Manifest write_checkpoint(const std::filesystem::path& folder, std::uint32_t servers,
                                             std::vector<std::string> state = {"exp_avg", "exp_avg_sq"},
                                             bool with_buffers = false, Version version = {7}) {
  const auto layout = many_shapes();
  std::filesystem::create_directories(folder);
  checkpoint::Manifest manifest;
  manifest.version = version;
  manifest.parameters = layout.tensors();
  manifest.state = state;
  const auto buffers = buffers_values(some_buffers());
  const auto ranges = cuts(layout.size(), servers);
  for (std::uint32_t s = 0; s < servers; ++s) {
    std::vector<std::vector<float>> arrays;
    for (std::size_t a = 0; a <= state.size(); ++a) arrays.push_back(flat_values(layout, a, ranges[s]));
    checkpoint::Shard shard{s, servers, ranges[s], {}, {}, {}};
    for (std::size_t a = 0; a <= state.size(); ++a)
      shard.arrays.push_back({a == 0 ? "weights" : state[a - 1], arrays[a]});
    if (s == 0 && with_buffers) {
      shard.buffers_layout = some_buffers();
      shard.buffers = buffers;
      manifest.buffers = some_buffers().tensors();
    }
    const auto pieces = checkpoint::write_shard(folder, layout, shard);
    manifest.pieces.insert(manifest.pieces.end(), pieces.begin(), pieces.end());
  }
  checkpoint::write_manifest(folder, manifest);
  return manifest;
}

}  // namespace capstan::testing
