#include "capstan/data/image_folder.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "capstan/base/check.h"
#include "capstan/base/unique_fd.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

namespace fs = std::filesystem;

Normalisation normalisation_of(const Statistics& statistics) {
  Normalisation n;
  for (std::size_t c = 0; c < 3; ++c) {
    const double mean = statistics.empty() ? 0 : statistics.mean[c];
    const double deviation = statistics.empty() ? 1 : statistics.deviation[c];
    n.factor[c] = static_cast<float>(1 / (255 * deviation));
    n.offset[c] = static_cast<float>(-mean / deviation);
  }
  return n;
}

void read_file(const fs::path& path, std::vector<std::uint8_t>& bytes) {
  const auto fail = [] { throw UserError(fmt::format("cannot be read: {}", std::strerror(errno))); };
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) fail();
  bytes.resize(static_cast<std::size_t>(info.st_size));
  for (std::size_t done = 0; done < bytes.size();) {
    const auto got = ::read(fd.get(), bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail();
    if (got == 0) throw UserError("ends too early");
    done += static_cast<std::size_t>(got);
  }
}

// The centre of an image whose shorter side is scaled to `scaled` pixels.
View centre(const ImageSize& size, std::int64_t scaled, std::int64_t side) {
  const auto shorter = std::min(size.width, size.height);
  const auto scaled_width = size.width * scaled / shorter, scaled_height = size.height * scaled / shorter;
  const auto x = std::nearbyint(static_cast<double>(scaled_width - side) / 2);
  const auto y = std::nearbyint(static_cast<double>(scaled_height - side) / 2);
  const double across = static_cast<double>(size.width) / static_cast<double>(scaled_width);
  const double down = static_cast<double>(size.height) / static_cast<double>(scaled_height);
  return {x * across,
          y * down,
          static_cast<double>(side) * across,
          static_cast<double>(side) * down,
          {0, 0, size.width, size.height}};
}

// The side to which a test image's shorter side is scaled.
std::int64_t test_side(std::int64_t side) {
  return (side * 256 + 112) / 224;
}

bool is_scaled(const View& view, std::int64_t side) {
  const auto length = static_cast<double>(side);
  return view.width != length || view.height != length || view.x != std::floor(view.x) ||
         view.y != std::floor(view.y);
}

// Writes a view that is not scaled.
void copy(const Picture& picture, const View& view, std::int64_t side, std::span<const Levels> levels,
          float* out) {
  const auto left = static_cast<std::int64_t>(view.x) - picture.left;
  const auto top = static_cast<std::int64_t>(view.y) - picture.top;
  for (std::int64_t y = 0; y < side; ++y) {
    const auto* const row = picture.row(top + y) + 4 * left;
    for (std::int64_t i = 0; i < side; ++i) {
      const auto* const pixel = row + 4 * (view.mirrored ? side - 1 - i : i);
      for (std::size_t c = 0; c < 3; ++c) *out++ = levels[c][pixel[c]];
    }
  }
}

// The part to decode for a view: the filter extends one output pixel, or one input pixel, beyond it.
Rect needed(const View& view, std::int64_t side) {
  const auto axis = [&](double begin, double length, std::int64_t low, std::int64_t size) {
    const double reach = std::max(1.0, length / static_cast<double>(side)) + 1;
    const auto first = std::max(low, static_cast<std::int64_t>(std::floor(begin - reach)));
    const auto end = std::min(low + size, static_cast<std::int64_t>(std::ceil(begin + length + reach)));
    return std::pair(first, end - first);
  };
  const auto [x, width] = axis(view.x, view.width, view.seen.x, view.seen.width);
  const auto [y, height] = axis(view.y, view.height, view.seen.y, view.seen.height);
  return {x, y, width, height};
}

}  // namespace

struct FolderSource::Workspace {
  std::vector<std::uint8_t> file;
  std::unique_ptr<Decoder> jpeg = make_jpeg_decoder();
  std::unique_ptr<Decoder> png = make_png_decoder();
  Picture picture;
  Resampler resampler;

  Decoder& decoder() const {
    constexpr std::uint8_t kJpeg[] = {0xff, 0xd8, 0xff}, kPng[] = {0x89, 'P', 'N', 'G'};
    const auto starts_with = [&](std::span<const std::uint8_t> sign) {
      return file.size() > sign.size() && std::equal(sign.begin(), sign.end(), file.begin());
    };
    if (starts_with(kJpeg)) return *jpeg;
    if (starts_with(kPng)) return *png;
    throw UserError(file.empty() ? "is empty" : "is neither JPEG nor PNG");
  }
};

FolderSource::FolderSource(FolderListing listing, const Options& options)
    : listing_(std::move(listing)),
      options_(options),
      shape_{{3, options.side, options.side}, static_cast<std::int64_t>(listing_.classes.size())},
      normalisation_(normalisation_of(options.statistics)),
      levels_(levels_of(options.statistics, 3)) {}

FolderSource::~FolderSource() = default;

std::int64_t FolderSource::label(std::size_t sample) const {
  return static_cast<std::int64_t>(listing_.class_of(sample));
}

void FolderSource::render(std::size_t sample, std::uint64_t epoch, float* out) const {
  CAPSTAN_CHECK(sample < count(), "the source has this sample");
  auto workspace = take_workspace();
  const auto kind = listing_.class_of(sample);
  const auto begin = listing_.class_begin[kind], size = listing_.class_begin[kind + 1] - begin;
  bool done = false;
  for (std::size_t i = 0; i < size && !done; ++i) {
    const auto file = begin + (sample - begin + i) % size;
    try {
      render_file(file, random_for(options_.seed, epoch, sample), *workspace, out);
      done = true;
    } catch (const UserError& error) {
      const auto what = fmt::format("{} {}", (listing_.folder / listing_.files[file]).string(), error.what());
      if (options_.strict) throw UserError(what);
      const std::scoped_lock lock(mutex_);
      unreadable_.try_emplace(file, what);
    }
  }
  const std::scoped_lock lock(mutex_);
  idle_.push_back(std::move(workspace));
  if (!done) {
    throw UserError(fmt::format("none of the {} images of class {} can be read: {}", size,
                                listing_.classes[kind], unreadable_.at(sample)));
  }
}

Unreadable FolderSource::unreadable() const {
  const std::scoped_lock lock(mutex_);
  return unreadable_.empty() ? Unreadable{} : Unreadable{unreadable_.size(), unreadable_.begin()->second};
}

void FolderSource::render_file(std::size_t file, Random random, Workspace& workspace, float* out) const {
  read_file(listing_.folder / listing_.files[file], workspace.file);
  auto& decoder = workspace.decoder();
  const auto size = decoder.open(workspace.file);
  if (size.width < 1 || size.height < 1 || size.width > kMostImagePixels / size.height)
    throw UserError(fmt::format("claims {}x{} pixels", size.width, size.height));
  const auto view = view_of(size, random);
  decoder.read(needed(view, options_.side),
               std::min(view.width, view.height) / static_cast<double>(options_.side), workspace.picture);
  if (is_scaled(view, options_.side) || workspace.picture.scale != 1)
    workspace.resampler.run(workspace.picture, view, options_.side, normalisation_, out);
  else
    copy(workspace.picture, view, options_.side, levels_, out);
}

View FolderSource::view_of(const ImageSize& size, Random& random) const {
  const auto side = options_.side;
  if (options_.crop == Crop::kTest) return centre(size, test_side(side), side);
  if (options_.crop == Crop::kCentre) return centre(size, side, side);
  const auto [part, mirrored] = draw_resized_crop(random, size.width, size.height);
  return {static_cast<double>(part.x),
          static_cast<double>(part.y),
          static_cast<double>(part.width),
          static_cast<double>(part.height),
          part,
          mirrored};
}

std::unique_ptr<FolderSource::Workspace> FolderSource::take_workspace() const {
  const std::scoped_lock lock(mutex_);
  if (idle_.empty()) return std::make_unique<Workspace>();
  auto workspace = std::move(idle_.back());
  idle_.pop_back();
  return workspace;
}

}  // namespace capstan::data
