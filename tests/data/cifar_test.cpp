#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/data/dataset.h"
#include "capstan/data/readers.h"
#include "capstan/user_error.h"

#include "support/temporary_folder.h"

namespace capstan::data {
namespace {

using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Channel c of pixel p of an image: red counts up, green counts down, blue identifies the image.
char level(int image, int c, int p) {
  return static_cast<char>(c == 0 ? p : c == 1 ? -p : 10 * image);
}

// By the dataset's description: one or two labels, then 1,024 bytes each of red, green and blue.
std::string record(const std::string& labels, int image) {
  auto bytes = labels;
  for (int c = 0; c < 3; ++c)
    for (int p = 0; p < 1024; ++p) bytes.push_back(level(image, c, p));
  return bytes;
}

std::string label(int value) {
  return std::string(1, static_cast<char>(value));
}

void write_cifar10(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (int i = 1; i <= 5; ++i) {
    write_file(folder / ("data_batch_" + std::to_string(i) + ".bin"),
               record(label(i), 2 * i) + record(label(9 - i), 2 * i + 1));
  }
  write_file(folder / "test_batch.bin", record(label(0), 20) + record(label(9), 21) + record(label(3), 22));
}

TEST(Cifar, ReadsTheTenClassesInTheFilesOrder) {
  const TemporaryFolder folder;
  write_cifar10(folder.path());
  const auto [train, test] = load_cifar10(folder.path());
  EXPECT_EQ(train.shape, (SampleShape{{3, 32, 32}, 10}));
  EXPECT_EQ(train.labels, (std::vector<std::int64_t>{1, 8, 2, 7, 3, 6, 4, 5, 5, 4}));
  EXPECT_EQ(test.labels, (std::vector<std::int64_t>{0, 9, 3}));
  for (int i = 0; i < 10; ++i)
    for (int p = 0; p < 1024; ++p)
      for (int c = 0; c < 3; ++c)
        ASSERT_EQ(train.image(static_cast<std::size_t>(i))[static_cast<std::size_t>(3 * p + c)],
                  static_cast<std::uint8_t>(level(i + 2, c, p)));
}

TEST(Cifar, UsesTheFineLabel) {
  const TemporaryFolder folder;
  write_file(folder / "train.bin", record(label(19) + label(99), 1) + record(label(3) + label(42), 2));
  write_file(folder / "test.bin", record(label(0) + label(7), 3));
  const auto [train, test] = load_cifar100(folder.path());
  EXPECT_EQ(train.shape, (SampleShape{{3, 32, 32}, 100}));
  EXPECT_EQ(train.labels, (std::vector<std::int64_t>{99, 42}));
  EXPECT_EQ(test.labels, (std::vector<std::int64_t>{7}));
  EXPECT_EQ(test.image(0)[2], 30);
}

TEST(Cifar, IsFoundWhereItWasUnpackedAndNormalisedPerChannel) {
  const TemporaryFolder folder;
  write_cifar10(folder / "cifar10/cifar-10-batches-bin");
  for (const auto& data_dir : {folder.path(), folder / "cifar10", folder / "cifar10/cifar-10-batches-bin"}) {
    DatasetOptions options{"cifar10", data_dir.string(), 1};
    const auto dataset = load(options);
    EXPECT_EQ(dataset.train->count(), 10u);
    EXPECT_FALSE(dataset.train->is_immediate()) << "its training images are augmented";
    EXPECT_TRUE(dataset.test->is_immediate());
    std::vector<float> image(3072);
    dataset.test->render(1, 0, image.data());  // image 21, pixel 2: 2, 254, 210
    EXPECT_NEAR(image[6], (2 - 125.3) / 63.0, 1e-5);
    EXPECT_NEAR(image[7], (254 - 123.0) / 62.1, 1e-5);
    EXPECT_NEAR(image[8], (210 - 113.9) / 66.7, 1e-5);
    options.augment = Augment::kNone;
    EXPECT_TRUE(load(options).train->is_immediate());
  }
}

TEST(Cifar, RefusesBadFilesByName) {
  const TemporaryFolder folder;
  write_cifar10(folder.path());
  const auto expect_error = [&](const std::string& file, const std::string& fault) {
    EXPECT_THAT([&] { load_cifar10(folder.path()); },
                ThrowsMessage<UserError>(AllOf(HasSubstr((folder / file).string()), HasSubstr(fault))));
  };
  write_file(folder / "test_batch.bin", record(label(10), 0));
  expect_error("test_batch.bin", "label 10 of image 0 is not one of 0 to 9");
  write_file(folder / "test_batch.bin", record(label(1), 0) + "x");
  expect_error("test_batch.bin", "3074 bytes are not a whole number of images of 3073 bytes");
  write_file(folder / "test_batch.bin", "");
  expect_error("test_batch.bin", "0 bytes");
  std::filesystem::remove(folder / "data_batch_4.bin");
  expect_error("data_batch_4.bin", "cannot open");
}

TEST(Cifar, AMissingFolderIsAnErrorWithTheSearchedFoldersAndTheRemedy) {
  EXPECT_THAT(
      [] {
        load({"cifar100", "/no/such", 1});
      },
      ThrowsMessage<UserError>(AllOf(HasSubstr("test.bin"), HasSubstr("/no/such or /no/such/cifar100"),
                                     HasSubstr("capstan data get cifar100 fetches it"))));
}

}  // namespace
}  // namespace capstan::data
