#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "capstan/data/gzip.h"
#include "capstan/data/readers.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

constexpr std::uint32_t kImagesMagic = 0x00000803;  // unsigned bytes, 3 dimensions
constexpr std::uint32_t kLabelsMagic = 0x00000801;  // unsigned bytes, 1 dimension
constexpr std::uint64_t kMostSamples = 100'000'000;
constexpr int kSide = 28;
constexpr int kClasses = 10;

[[noreturn]] void fail(const GzipFile& file, const std::string& what) {
  throw UserError(fmt::format("{}: {}", file.path(), what));
}

std::string find(const std::filesystem::path& folder, const std::string& name) {
  for (const auto* suffix : {"", ".gz"}) {
    const auto path = folder / (name + suffix);
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored)) return path.string();
  }
  throw UserError(
      fmt::format("{0} contains neither {1} nor {1}.gz; an IDX dataset has four such files, and "
                  "--data-dir gives their folder",
                  folder.string(), name));
}

std::uint32_t read_big_endian(GzipFile& file) {
  const auto b = file.read(4);
  if (b.size() < 4) fail(file, "ends in the middle of its header");
  return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
}

std::uint64_t read_header(GzipFile& file, std::uint32_t magic, const char* kind) {
  const auto found = read_big_endian(file);
  if (found != magic) {
    fail(file,
         fmt::format("is not an IDX file of {} (magic {:#010x}, expected {:#010x})", kind, found, magic));
  }
  const std::uint64_t count = read_big_endian(file);
  if (count == 0 || count > kMostSamples) {
    fail(file, fmt::format("claims {} {}; must be 1 to {}", count, kind, kMostSamples));
  }
  return count;
}

std::vector<std::uint8_t> read_body(GzipFile& file, std::uint64_t bytes) {
  auto body = file.read(bytes);
  if (body.size() < bytes) {
    fail(file, fmt::format("is too short: its header announces {} bytes, it has {}", bytes, body.size()));
  }
  if (!file.read(1).empty())
    fail(file, fmt::format("is too long: its header announces {} bytes, it has more", bytes));
  return body;
}

Split load_split(const std::filesystem::path& folder, const std::string& prefix) {
  GzipFile images(find(folder, prefix + "-images-idx3-ubyte"));
  GzipFile labels(find(folder, prefix + "-labels-idx1-ubyte"));
  const auto count = read_header(images, kImagesMagic, "images");
  const auto height = read_big_endian(images);
  const auto width = read_big_endian(images);
  if (height != kSide || width != kSide) {
    fail(images, fmt::format("images are {}x{}, and must be {}x{}", height, width, kSide, kSide));
  }
  const auto label_count = read_header(labels, kLabelsMagic, "labels");
  if (label_count != count) {
    fail(labels, fmt::format("{} labels for the {} images of {}", label_count, count, images.path()));
  }

  Split split;
  split.shape = {{1, kSide, kSide}, kClasses};
  const auto classes = read_body(labels, count);
  const auto bad = std::find_if(classes.begin(), classes.end(), [](auto c) { return c >= kClasses; });
  if (bad != classes.end()) {
    fail(labels, fmt::format("label {} of sample {} is not one of 0 to 9", *bad, bad - classes.begin()));
  }
  split.labels.assign(classes.begin(), classes.end());
  split.pixels = read_body(images, count * split.shape.elements());
  return split;
}

}  // namespace

Splits load_idx(const std::filesystem::path& folder, bool test_only) {
  return {test_only ? Split() : load_split(folder, "train"), load_split(folder, "t10k")};
}

}  // namespace capstan::data
