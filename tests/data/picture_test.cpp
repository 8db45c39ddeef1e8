// Decoding and scaling against PIL and torchvision: tests/reference/make_pictures.py wrote the files.

#include "capstan/data/picture.h"

#include <cmath>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "capstan/data/resample.h"
#include "capstan/user_error.h"

#include "support/temporary_folder.h"

namespace capstan::data {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const std::string kFolder = CAPSTAN_SOURCE_DIR "/tests/reference/pictures/";
constexpr Normalisation kLevels = {{1, 1, 1}, {0, 0, 0}};  // identity

std::vector<std::uint8_t> file_bytes(const std::string& name) {
  const auto text = capstan::testing::contents(kFolder + name);
  return {text.begin(), text.end()};
}

std::unique_ptr<Decoder> decoder_of(const std::string& name) {
  return name.ends_with(".png") ? make_png_decoder() : make_jpeg_decoder();
}

struct Difference {
  double mean = 0, most = 0;
};

Difference difference(const std::vector<float>& ours, const nlohmann::json& theirs) {
  Difference d;
  EXPECT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double off = std::abs(ours[i] - theirs[i].get<double>());
    d.mean += off / static_cast<double>(ours.size());
    d.most = std::max(d.most, off);
  }
  return d;
}

std::vector<float> shown(const std::string& name, const Rect& part, bool mirrored, std::int64_t side,
                         double reduction) {
  const auto file = file_bytes(name);
  const auto decoder = decoder_of(name);
  decoder->open(file);
  Picture picture;
  decoder->read(part, reduction, picture);
  Resampler resampler;
  std::vector<float> out(static_cast<std::size_t>(3 * side * side));
  resampler.run(picture,
                {static_cast<double>(part.x), static_cast<double>(part.y), static_cast<double>(part.width),
                 static_cast<double>(part.height), part, mirrored},
                side, kLevels, out.data());
  return out;
}

const nlohmann::json& reference() {
  static const auto json =
      nlohmann::json::parse(std::ifstream(CAPSTAN_SOURCE_DIR "/tests/reference/pictures.json"));
  return json;
}

TEST(Picture, PartsAreDecodedAndScaledAsPilDoes) {
  const auto side = reference().at("side").get<std::int64_t>();
  for (const auto& expected : reference().at("parts")) {
    const auto name = expected.at("file").get<std::string>();
    const auto p = expected.at("part").get<std::vector<std::int64_t>>();
    const Rect part{p[0], p[1], p[2], p[3]};
    const bool mirrored = expected.at("mirrored").get<bool>();
    // At full size the only difference is PIL's rounding to whole levels after each pass.
    const auto full = difference(shown(name, part, mirrored, side, 1), expected.at("pixels"));
    EXPECT_LT(full.mean, 0.5) << name << " " << expected.at("part");
    EXPECT_LT(full.most, 2) << name << " " << expected.at("part");
    // Scaled down while decoding, the filter differs.
    const double reduction =
        static_cast<double>(std::min(part.width, part.height)) / static_cast<double>(side);
    const auto reduced = difference(shown(name, part, mirrored, side, reduction), expected.at("pixels"));
    EXPECT_LT(reduced.mean, 2) << name << " " << expected.at("part");
  }
}

TEST(Picture, IsDecodedInNoMoreDetailThanNeeded) {
  const auto file = file_bytes("photo.jpg");  // 200x150
  const auto decoder = make_jpeg_decoder();
  for (const auto& [reduction, scale] :
       {std::pair{0.5, 1.0}, {1.9, 1.0}, {2.0, 0.5}, {3.9, 0.5}, {4.0, 0.25}, {100.0, 0.125}}) {
    decoder->open(file);
    Picture picture;
    decoder->read({0, 0, 200, 150}, reduction, picture);
    EXPECT_EQ(picture.scale, scale);
    EXPECT_EQ(picture.width, std::ceil(200 * scale));
    EXPECT_EQ(picture.height, std::ceil(150 * scale));
  }
  decoder->open(file);
  Picture picture;
  decoder->read({100, 70, 20, 10}, 1, picture);
  EXPECT_LE(picture.width, 64) << "a few blocks, not the whole width";
  EXPECT_LE(picture.height, 11);
}

TEST(Picture, OneTooLargeForItsOutputIsNotAliased) {
  // Stripes one pixel wide average to grey; a filter of fixed width would show some of them.
  Picture stripes;
  stripes.shape(101, 101);
  for (std::int64_t y = 0; y < 101; ++y)
    for (std::int64_t x = 0; x < 101; ++x)
      std::fill_n(stripes.row(y) + 4 * x, 4, static_cast<std::uint8_t>(x % 2 == 0 ? 200 : 100));
  Resampler resampler;
  std::vector<float> out(3 * 5 * 5);
  resampler.run(stripes, {0, 0, 101, 101, {0, 0, 101, 101}}, 5, kLevels, out.data());
  for (const auto v : out) EXPECT_NEAR(v, 150, 4);
}

TEST(Picture, ChannelsAreNormalisedEachByItsOwn) {
  Picture one;
  one.shape(1, 1);
  const std::uint8_t pixel[] = {10, 20, 30, 99};
  std::copy_n(pixel, 4, one.row(0));
  Resampler resampler;
  std::vector<float> out(3 * 2 * 2);
  resampler.run(one, {0, 0, 1, 1, {0, 0, 1, 1}}, 2, {{1, 2, 3}, {0.5, 0, -1}}, out.data());
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_FLOAT_EQ(out[3 * i], 10.5f);
    EXPECT_FLOAT_EQ(out[3 * i + 1], 40);
    EXPECT_FLOAT_EQ(out[3 * i + 2], 89);
  }
}

TEST(Picture, EveryTruncationIsDetectedAndTheDecoderStaysUsable) {
  for (const auto* name : {"photo.jpg", "progressive.jpg", "rgb.png", "palette.png"}) {
    const auto whole = file_bytes(name);
    const auto decoder = decoder_of(name);
    Picture picture;
    for (std::size_t size = 4; size < whole.size() - 64; size += 97) {
      const std::span<const std::uint8_t> cut(whole.data(), size);
      const auto read_all = [&] {
        const auto size_of = decoder->open(cut);
        decoder->read({0, 0, size_of.width, size_of.height}, 1, picture);
      };
      EXPECT_THROW(read_all(), UserError) << name << " cut to " << size;
    }
    const auto [width, height] = decoder->open(whole);
    decoder->read({0, 0, width, height}, 1, picture);
    EXPECT_EQ(picture.width, width);
    EXPECT_EQ(picture.height, height);
  }
}

TEST(Picture, DamageNeverCrashes) {
  for (const auto* name :
       {"photo.jpg", "progressive.jpg", "grey.jpg", "rgb.png", "palette.png", "grey16.png"}) {
    const auto whole = file_bytes(name);
    const auto decoder = decoder_of(name);
    Picture picture;
    std::size_t errors = 0, tries = 0;
    for (std::size_t at = 0; at < whole.size(); at += 3) {
      auto damaged = whole;
      damaged[at] ^= static_cast<std::uint8_t>(1 + at * 37 % 255);
      try {
        const auto [width, height] = decoder->open(damaged);
        if (width * height >= 1'000'000) continue;
        decoder->read({0, 0, width, height}, 1, picture);
        ASSERT_EQ(picture.width, width) << name << " with a damaged byte " << at;
        ASSERT_EQ(picture.height, height) << name << " with a damaged byte " << at;
      } catch (const UserError& error) {
        ++errors;
        ASSERT_NE(std::string(error.what()), "") << name << " with a damaged byte " << at;
      }
      ++tries;
    }
    // PNG has a checksum for every chunk; JPEG has none, but requires markers.
    if (std::string_view(name).ends_with(".png")) {
      EXPECT_GT(errors, tries * 9 / 10) << name;
    } else {
      EXPECT_GT(errors, 0u) << name;
    }
    // The decoder stays usable.
    const auto [width, height] = decoder->open(whole);
    decoder->read({0, 0, width, height}, 1, picture);
    EXPECT_EQ(picture.width, width);
  }
}

TEST(Picture, CmykIsRejectedWithTheReason) {
  const auto file = file_bytes("cmyk.jpg");
  EXPECT_THAT([&] { make_jpeg_decoder()->open(file); }, ThrowsMessage<UserError>(HasSubstr("CMYK")));
}

}  // namespace
}  // namespace capstan::data
