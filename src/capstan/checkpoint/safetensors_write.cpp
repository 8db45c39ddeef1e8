#include <algorithm>
#include <array>
#include <cmath>

#include "capstan/base/check.h"
#include "capstan/base/json.h"
#include "capstan/checkpoint/atomic_file.h"
#include "capstan/checkpoint/safetensors.h"

namespace capstan::checkpoint {
namespace {

std::string header_text(std::span<const TensorView> tensors, const Metadata& metadata) {
  auto header = Json::object();
  for (const auto& [key, value] : metadata) header["__metadata__"][key] = value;
  std::uint64_t at = 0;
  for (const auto& t : tensors) {
    check(t);
    CAPSTAN_CHECK(t.name != "__metadata__" && !header.contains(t.name), "tensor names are unique");
    const auto end = at + t.values.size() * (t.as_int64 ? sizeof(std::int64_t) : sizeof(float));
    header[t.name] = {{"dtype", t.as_int64 ? "I64" : "F32"}, {"shape", t.dims}, {"data_offsets", {at, end}}};
    at = end;
  }
  // Names may come from a file: bytes that are not UTF-8 are replaced instead of throwing.
  auto text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // the tensors begin on an 8-byte boundary
  return text;
}

}  // namespace

void check(const TensorView& view) {
  std::uint64_t elements = 1;
  for (const auto d : view.dims) elements *= static_cast<std::uint64_t>(d);
  CAPSTAN_CHECK(elements == view.values.size(), "there are as many values as the shape has");
}

std::vector<std::int64_t> int64_values(const TensorView& view) {
  std::vector<std::int64_t> out;
  for (const float v : view.values) {
    CAPSTAN_CHECK(std::abs(v) < 0x1p63f, "the value fits a 64-bit integer");
    out.push_back(std::llround(v));  // the mean over workers with different numbers of steps is not whole
  }
  return out;
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> given,
                       const Metadata& metadata) {
  std::vector<TensorView> tensors(given.begin(), given.end());
  std::ranges::stable_partition(tensors, &TensorView::as_int64);
  const auto header = header_text(tensors, metadata);
  std::array<std::byte, 8> length;
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<std::byte>(header.size() >> (8 * i));
  AtomicFile file(path);
  file.write(length);
  file.write(std::as_bytes(std::span(header)));
  for (const auto& t : tensors) {
    if (t.as_int64) {
      file.write(std::as_bytes(std::span<const std::int64_t>(int64_values(t))));
    } else {
      file.write(std::as_bytes(t.values));
    }
  }
  file.commit();
}

}  // namespace capstan::checkpoint
