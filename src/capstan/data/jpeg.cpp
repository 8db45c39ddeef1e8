#include <algorithm>
#include <csetjmp>
#include <cstdio>

#include <fmt/format.h>
#include <jerror.h>
#include <jpeglib.h>

#include "capstan/data/picture.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

// libjpeg reports errors by longjmp, which must not skip destructors: functions under guarded() have plain
// values only.
struct Errors : jpeg_error_mgr {
  std::jmp_buf escape;
};

// By default libjpeg fills missing data with grey and only warns.
void on_message(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_JPEG_EOF:
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC:
      info->err->error_exit(info);
      break;
    default:  // harmless, and frequent in photos
      break;
  }
}

void on_error(j_common_ptr info) {
  std::longjmp(static_cast<Errors*>(info->err)->escape, 1);
}

class JpegDecoder final : public Decoder {
 public:
  JpegDecoder() {
    info_.err = jpeg_std_error(&errors_);
    errors_.emit_message = on_message;
    errors_.error_exit = on_error;
    guarded([&] { jpeg_create_decompress(&info_); });
  }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;
  ~JpegDecoder() override { jpeg_destroy_decompress(&info_); }

  ImageSize open(std::span<const std::uint8_t> file) override {
    jpeg_abort_decompress(&info_);
    guarded([&] {
      jpeg_mem_src(&info_, file.data(), file.size());
      jpeg_read_header(&info_, TRUE);
    });
    if (info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK)
      throw UserError("is a CMYK JPEG, which is not supported: convert it to RGB");
    return {info_.image_width, info_.image_height};
  }

  void read(const Rect& part, double reduction, Picture& out) override {
    info_.out_color_space = JCS_EXT_RGBX;
    // Only powers of two have a fast inverse transform.
    unsigned divisor = 1;
    while (divisor < 8 && 2 * divisor <= reduction) divisor *= 2;
    info_.scale_num = 1;
    info_.scale_denom = divisor;
    guarded([&] { jpeg_start_decompress(&info_); });

    // Chroma at the edge of a crop is extrapolated; a margin keeps it outside of the requested part.
    constexpr std::int64_t kMargin = 4;
    const auto first = std::max<std::int64_t>(0, part.x / divisor - kMargin);
    const auto last =
        std::min<std::int64_t>(info_.output_width, (part.x + part.width) / divisor + 1 + kMargin);
    const auto top = part.y / divisor;
    const auto bottom = std::min<std::int64_t>(info_.output_height, (part.y + part.height) / divisor + 1);
    JDIMENSION left = static_cast<JDIMENSION>(first), width = static_cast<JDIMENSION>(last - first);
    guarded([&] { jpeg_crop_scanline(&info_, &left, &width); });
    out.shape(width, bottom - top);
    out.scale = 1.0 / divisor;
    out.left = left;
    out.top = top;
    guarded([&] {
      if (top > 0) jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(top));
      for (std::int64_t y = 0; y < out.height;) {
        JSAMPROW row = out.row(y);
        y += jpeg_read_scanlines(&info_, &row, 1);
      }
      jpeg_abort_decompress(&info_);  // the rows below are not needed
    });
  }

 private:
  template <class Body>
  void guarded(Body body) {
    if (setjmp(errors_.escape) != 0) {
      char text[JMSG_LENGTH_MAX];
      errors_.format_message(reinterpret_cast<j_common_ptr>(&info_), text);
      throw UserError(fmt::format("is damaged ({})", text));
    }
    body();
  }

  Errors errors_{};
  jpeg_decompress_struct info_{};
};

}  // namespace

std::unique_ptr<Decoder> make_jpeg_decoder() {
  return std::make_unique<JpegDecoder>();
}

}  // namespace capstan::data
