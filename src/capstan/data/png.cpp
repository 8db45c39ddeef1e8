#include <cstring>

#include <fmt/format.h>
#include <png.h>

#include "capstan/base/check.h"
#include "capstan/data/picture.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

// libpng reports errors by longjmp, which must not skip destructors: functions under guarded() have plain
// values only.
class PngDecoder final : public Decoder {
 public:
  PngDecoder() = default;
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;
  ~PngDecoder() override { png_destroy_read_struct(&png_, &info_, nullptr); }

  ImageSize open(std::span<const std::uint8_t> file) override {
    png_destroy_read_struct(&png_, &info_, nullptr);
    left_ = file;
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    info_ = png_create_info_struct(png_);
    CAPSTAN_CHECK(png_ && info_, "libpng initializes");
    guarded([&] {
      png_set_read_fn(png_, this, on_read);
      png_read_info(png_, info_);
    });
    return {png_get_image_width(png_, info_), png_get_image_height(png_, info_)};
  }

  // A PNG can only be decoded completely and without scaling.
  void read(const Rect&, double, Picture& out) override {
    out.scale = 1;
    out.left = out.top = 0;
    guarded([&] {
      png_set_expand(png_);  // palettes, less than 8 bits, transparent colours
      png_set_strip_16(png_);
      png_set_gray_to_rgb(png_);
      png_set_filler(png_, 0xff, PNG_FILLER_AFTER);
      png_set_interlace_handling(png_);
      png_read_update_info(png_, info_);
    });
    CAPSTAN_CHECK(png_get_rowbytes(png_, info_) == 4 * std::size_t{png_get_image_width(png_, info_)},
                  "a pixel has four bytes");
    out.shape(png_get_image_width(png_, info_), png_get_image_height(png_, info_));
    rows_.clear();
    for (std::int64_t y = 0; y < out.height; ++y) rows_.push_back(out.row(y));
    guarded([&] { png_read_image(png_, rows_.data()); });
  }

 private:
  template <class Body>
  void guarded(Body body) {
    if (setjmp(png_jmpbuf(png_)) != 0) throw UserError(fmt::format("is damaged ({})", text_));
    body();
  }

  static void on_error(png_structp png, png_const_charp text) {
    auto* self = static_cast<PngDecoder*>(png_get_error_ptr(png));
    std::strncpy(self->text_, text, sizeof self->text_ - 1);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void on_read(png_structp png, png_bytep to, std::size_t bytes) {
    auto* self = static_cast<PngDecoder*>(png_get_io_ptr(png));
    if (bytes > self->left_.size()) png_error(png, "it ends too early");
    std::memcpy(to, self->left_.data(), bytes);
    self->left_ = self->left_.subspan(bytes);
  }

  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::span<const std::uint8_t> left_;
  std::vector<png_bytep> rows_;
  char text_[128] = {};
};

}  // namespace

std::unique_ptr<Decoder> make_png_decoder() {
  return std::make_unique<PngDecoder>();
}

}  // namespace capstan::data
