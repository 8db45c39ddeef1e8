#include <fstream>

#include <fmt/format.h>

#include "capstan/data/readers.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

constexpr std::size_t kSide = 32;
constexpr std::size_t kPlane = kSide * kSide;
constexpr std::size_t kChannels = 3;

// The record of an image: one or two labels, of which the last is used, then one plane per channel.
struct Form {
  std::size_t labels;
  int classes;
  std::size_t record() const { return labels + kChannels * kPlane; }
};

void append(const std::filesystem::path& path, const Form& form, Split& split) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError(fmt::format("cannot open {}, which a CIFAR dataset needs", path.string()));
  const auto size = std::filesystem::file_size(path);
  if (size == 0 || size % form.record() != 0) {
    throw UserError(
        fmt::format("{}: {} bytes are not a whole number of images of {} bytes: truncated, or not the "
                    "binary version of CIFAR",
                    path.string(), size, form.record()));
  }
  std::vector<std::uint8_t> record(form.record());
  const auto begin = split.count(), count = static_cast<std::size_t>(size / form.record());
  split.pixels.resize((begin + count) * kChannels * kPlane);
  auto* out = split.pixels.data() + begin * kChannels * kPlane;
  for (std::size_t i = 0; i < count; ++i) {
    if (!file.read(reinterpret_cast<char*>(record.data()), static_cast<std::streamsize>(record.size())))
      throw UserError(fmt::format("{}: image {} cannot be read", path.string(), i));
    const auto label = record[form.labels - 1];
    if (label >= form.classes) {
      throw UserError(fmt::format("{}: label {} of image {} is not one of 0 to {}", path.string(), label, i,
                                  form.classes - 1));
    }
    split.labels.push_back(label);
    const auto* const planes = record.data() + form.labels;
    for (std::size_t p = 0; p < kPlane; ++p)
      for (std::size_t c = 0; c < kChannels; ++c) *out++ = planes[c * kPlane + p];
  }
}

Split load_split(const std::filesystem::path& folder, std::initializer_list<const char*> files,
                 const Form& form) {
  Split split;
  split.shape = {{kChannels, kSide, kSide}, form.classes};
  for (const auto* file : files) append(folder / file, form, split);
  return split;
}

}  // namespace

Splits load_cifar10(const std::filesystem::path& folder, bool test_only) {
  constexpr Form kForm = {1, 10};
  return {test_only ? Split()
                    : load_split(folder,
                                 {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                  "data_batch_4.bin", "data_batch_5.bin"},
                                 kForm),
          load_split(folder, {"test_batch.bin"}, kForm)};
}

Splits load_cifar100(const std::filesystem::path& folder, bool test_only) {
  constexpr Form kForm = {2, 100};
  return {test_only ? Split() : load_split(folder, {"train.bin"}, kForm),
          load_split(folder, {"test.bin"}, kForm)};
}

}  // namespace capstan::data
