#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "capstan/data/dataset.h"
#include "capstan/data/readers.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

using Bytes = std::string;

Bytes big_endian(std::uint32_t v) {
  return {static_cast<char>(v >> 24), static_cast<char>(v >> 16), static_cast<char>(v >> 8),
          static_cast<char>(v)};
}

Bytes images(int count, int first_pixel) {
  Bytes b = big_endian(0x803) + big_endian(count) + big_endian(28) + big_endian(28);
  for (int i = 0; i < count * 784; ++i) b.push_back(static_cast<char>(first_pixel + i));
  return b;
}

Bytes labels(const Bytes& values) {
  return big_endian(0x801) + big_endian(static_cast<std::uint32_t>(values.size())) + values;
}

Bytes gzipped(const Bytes& plain) {
  Bytes out(compressBound(plain.size()) + 64, '\0');
  z_stream z{};
  deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  z.avail_in = static_cast<uInt>(plain.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

// A folder with a small, valid MNIST: 3 training and 2 test images.
class Mnist : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "mnist_test_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
    write("train-images-idx3-ubyte", images(3, 0));
    write("train-labels-idx1-ubyte", labels({9, 0, 5}));
    write("t10k-images-idx3-ubyte", images(2, 7));
    write("t10k-labels-idx1-ubyte", labels({1, 2}));
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const Bytes& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  Splits load() const { return load_idx(folder_); }
  void expect_error(const std::string& file, const std::string& fault) const {
    EXPECT_THAT([&] { load(); },
                ThrowsMessage<UserError>(AllOf(HasSubstr((folder_ / file).string()), HasSubstr(fault))));
  }

  fs::path folder_;
};

TEST_F(Mnist, ReadsWhatIsWritten) {
  const auto mnist = load();
  EXPECT_EQ(mnist.train.shape, (SampleShape{{1, 28, 28}, 10}));
  EXPECT_EQ(mnist.train.labels, (std::vector<std::int64_t>{9, 0, 5}));
  EXPECT_EQ(mnist.test.labels, (std::vector<std::int64_t>{1, 2}));
  ASSERT_EQ(mnist.train.pixels.size(), 3u * 784);
  for (std::size_t i = 0; i < mnist.train.pixels.size(); ++i) ASSERT_EQ(mnist.train.pixels[i], i % 256);
  EXPECT_EQ(mnist.test.image(1)[3], (784 + 7 + 3) % 256);
}

TEST_F(Mnist, AndFashionMnistAreNormalisedByTheirOwnLevels) {
  const auto level_of = [&](const char* name, const fs::path& data_dir) {
    const auto dataset = data::load({name, data_dir.string(), 1});
    EXPECT_TRUE(dataset.train->is_immediate());
    std::vector<float> image(784);
    dataset.train->render(0, 0, image.data());
    return image[200];
  };
  EXPECT_NEAR(level_of("mnist", folder_), (200 / 255.0 - 0.1307) / 0.3081, 1e-6);
  EXPECT_NEAR(level_of("fashion-mnist", folder_), (200 / 255.0 - 0.2860) / 0.3530, 1e-6);
  fs::create_directory(folder_ / "fashion-mnist");
  for (const auto& entry : fs::directory_iterator(folder_))
    if (entry.is_regular_file())
      fs::rename(entry.path(), folder_ / "fashion-mnist" / entry.path().filename());
  EXPECT_NEAR(level_of("fashion-mnist", folder_), (200 / 255.0 - 0.2860) / 0.3530, 1e-6);
}

TEST_F(Mnist, ReadsGzip) {
  const auto plain = load();
  for (const auto& entry : {"train-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) fs::remove(folder_ / entry);
  write("train-images-idx3-ubyte.gz", gzipped(images(3, 0)));
  write("t10k-labels-idx1-ubyte.gz", gzipped(labels({1, 2})));
  const auto packed = load();
  EXPECT_EQ(packed.train.pixels, plain.train.pixels);
  EXPECT_EQ(packed.test.labels, plain.test.labels);
}

TEST_F(Mnist, AMissingFileIsNamedWithItsFolderAndTheFlag) {
  fs::remove(folder_ / "t10k-labels-idx1-ubyte");
  EXPECT_THAT([&] { load(); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("t10k-labels-idx1-ubyte"), HasSubstr(folder_.string()),
                                             HasSubstr("--data-dir"))));
  EXPECT_THAT(
      [] {
        data::load({"mnist", "", 1});
      },
      ThrowsMessage<UserError>(AllOf(HasSubstr("in data/mnist"), HasSubstr("--data-dir"),
                                     HasSubstr("capstan data get mnist fetches it"))));
  EXPECT_THAT(
      [] {
        data::load({"mnist", "/no/such/folder", 1});
      },
      ThrowsMessage<UserError>(HasSubstr("/no/such/folder or /no/such/folder/mnist")));
}

TEST_F(Mnist, RefusesAWrongMagic) {
  write("train-images-idx3-ubyte", labels({9, 0, 5}));
  expect_error("train-images-idx3-ubyte",
               "is not an IDX file of images (magic 0x00000801, expected 0x00000803)");
}

TEST_F(Mnist, RefusesOtherImageSizes) {
  write("t10k-images-idx3-ubyte", big_endian(0x803) + big_endian(2) + big_endian(32) + big_endian(28));
  expect_error("t10k-images-idx3-ubyte", "images are 32x28");
}

TEST_F(Mnist, RefusesCountsThatDiffer) {
  write("train-labels-idx1-ubyte", labels({9, 0, 5, 5}));
  expect_error("train-labels-idx1-ubyte", "4 labels for the 3 images");
}

TEST_F(Mnist, RejectsAHugeCountWithoutAllocating) {
  auto bytes = images(3, 0);
  bytes.replace(4, 4, big_endian(0xffffffff));
  write("train-images-idx3-ubyte", bytes);
  expect_error("train-images-idx3-ubyte", "claims 4294967295 images");
  bytes.replace(4, 4, big_endian(90'000'000));
  write("train-images-idx3-ubyte", bytes);
  write("train-labels-idx1-ubyte", big_endian(0x801) + big_endian(90'000'000) + Bytes(3, 1));
  expect_error("train-labels-idx1-ubyte", "is too short");
}

TEST_F(Mnist, RefusesALabelAboveNine) {
  write("train-labels-idx1-ubyte", labels({9, 10, 5}));
  expect_error("train-labels-idx1-ubyte", "label 10 of sample 1");
}

TEST_F(Mnist, RefusesEveryTruncationAndATail) {
  const auto good = images(1, 0);
  write("train-labels-idx1-ubyte", labels({9}));
  for (std::size_t cut = 0; cut < good.size(); cut += cut < 20 ? 1 : 97) {
    write("train-images-idx3-ubyte", good.substr(0, cut));
    expect_error("train-images-idx3-ubyte", cut < 16 ? "ends in the middle of its header" : "is too short");
  }
  write("train-images-idx3-ubyte", good + "x");
  expect_error("train-images-idx3-ubyte", "is too long");
}

TEST_F(Mnist, RefusesDamagedGzip) {
  fs::remove(folder_ / "train-images-idx3-ubyte");
  const auto good = gzipped(images(3, 0));
  for (const auto cut : {good.size() / 2, good.size() - 1}) {
    write("train-images-idx3-ubyte.gz", good.substr(0, cut));
    expect_error("train-images-idx3-ubyte.gz", "ends too early");
  }
  auto flipped = good;
  flipped[flipped.size() - 6] ^= 1;  // in the checksum
  write("train-images-idx3-ubyte.gz", flipped);
  expect_error("train-images-idx3-ubyte.gz", "bad gzip data");
}

// Written by tests/reference/make_idx.py, with Python's gzip.
TEST(IdxFiles, OfAnotherWriterAreReadCompletely) {
  const auto dataset = load_idx(fs::path(CAPSTAN_SOURCE_DIR) / "tests/reference/idx");
  const auto expect_split = [](const Split& split, std::size_t count, std::size_t first) {
    ASSERT_EQ(split.count(), count);
    ASSERT_EQ(split.pixels.size(), count * 784);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(split.labels[i], static_cast<std::int64_t>((first + i) * 3 % 10));
      for (std::size_t row = 0; row < 28; ++row)
        for (std::size_t column = 0; column < 28; ++column)
          ASSERT_EQ(split.pixels[i * 784 + row * 28 + column],
                    ((first + i) * 31 + row * 7 + column * column) % 256);
    }
  };
  expect_split(dataset.train, 12, 0);
  expect_split(dataset.test, 5, 12);
}

}  // namespace
}  // namespace capstan::data
