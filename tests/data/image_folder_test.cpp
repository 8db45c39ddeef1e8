#include "capstan/data/image_folder.h"

#include <cmath>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "capstan/data/dataset.h"
#include "capstan/data/prefetcher.h"
#include "capstan/user_error.h"

#include "data/rendered.h"
#include "support/temporary_folder.h"

namespace capstan::data {
namespace {

namespace fs = std::filesystem;
using capstan::testing::contents;
using capstan::testing::rendered;
using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const fs::path kPictures = fs::path(CAPSTAN_SOURCE_DIR) / "tests/reference/pictures";

// train/ and val/ with the classes ant, bee and cat.
class ImageFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    put("train/bee/photo.JPG", "photo.jpg");
    put("train/bee/rgb.png", "rgb.png");
    put("train/ant/upright.jpeg", "upright.jpg");
    put("train/ant/deep/grey.PNG", "grey.png");
    put("train/ant/progressive.jpg", "progressive.jpg");
    put("train/cat/palette.png", "palette.png");
    put("val/ant/a.jpg", "photo.jpg");
    put("val/bee/b.jpg", "upright.jpg");
    put("val/cat/c.png", "grey16.png");
    write_file(folder_ / "train/bee/notes.txt", "no image");
    write_file(folder_ / "train/bee/._photo.jpg", "what a Mac leaves behind");
    write_file(folder_ / "train/README", "no class");
  }

  void put(const std::string& path, const std::string& picture) {
    fs::create_directories((folder_ / path).parent_path());
    fs::copy_file(kPictures / picture, folder_ / path, fs::copy_options::overwrite_existing);
  }
  void truncate(const std::string& path) {
    fs::resize_file(folder_ / path, fs::file_size(folder_ / path) / 2);
  }
  DatasetOptions options() const {
    DatasetOptions o{"imagefolder", folder_.path().string(), 3};
    o.image_size = 24;
    return o;
  }
  void expect_error(const std::string& path, const std::string& fault) const {
    EXPECT_THAT([&] { load(options()); },
                ThrowsMessage<UserError>(
                    AllOf(HasSubstr(path.empty() ? folder_.path().string() : (folder_ / path).string()),
                          HasSubstr(fault))));
  }

  TemporaryFolder folder_;
};

TEST_F(ImageFolder, ListsClassesAndFilesInOrder) {
  const auto listing = list_folder(folder_ / "train");
  EXPECT_THAT(listing.classes, ElementsAre("ant", "bee", "cat"));
  EXPECT_THAT(listing.files, ElementsAre("ant/deep/grey.PNG", "ant/progressive.jpg", "ant/upright.jpeg",
                                         "bee/photo.JPG", "bee/rgb.png", "cat/palette.png"));
  EXPECT_EQ(list_folder(folder_ / "train/").files, listing.files);
  const auto dataset = load(options());
  EXPECT_EQ(dataset.train->shape(), (SampleShape{{3, 24, 24}, 3}));
  EXPECT_EQ(dataset.train->count(), 6u);
  EXPECT_EQ(dataset.test->count(), 3u);
  std::vector<std::int64_t> labels;
  for (std::size_t i = 0; i < 6; ++i) labels.push_back(dataset.train->label(i));
  EXPECT_THAT(labels, ElementsAre(0, 0, 0, 1, 1, 2));
}

TEST_F(ImageFolder, RendersTestImagesAsTorchvisionDoes) {
  const auto reference =
      nlohmann::json::parse(std::ifstream(CAPSTAN_SOURCE_DIR "/tests/reference/pictures.json"));
  const double mean[] = {0.485, 0.456, 0.406}, deviation[] = {0.229, 0.224, 0.225};
  for (const auto& [name, pixels] : reference.at("middle").items()) {
    put("val/cat/c.png", name);  // the contents determine the format, not the file name
    const auto image = rendered(*load(options()).test, 2, 0);
    double off = 0;
    for (std::size_t i = 0; i < image.size(); ++i)
      off += std::abs((image[i] * deviation[i % 3] + mean[i % 3]) * 255 - pixels[i].get<double>());
    EXPECT_LT(off / static_cast<double>(image.size()), 1.5) << name;
  }
}

TEST_F(ImageFolder, TrainingImagesDependOnSeedEpochAndSampleOnly) {
  const auto dataset = load(options());
  const auto& train = *dataset.train;
  std::vector<std::vector<float>> expected;
  for (std::size_t sample = 0; sample < 6; ++sample) expected.push_back(rendered(train, sample, 7));
  EXPECT_NE(rendered(train, 3, 7), rendered(train, 3, 8));
  auto other = options();
  other.seed = 4;
  EXPECT_NE(rendered(*load(other).train, 3, 7), expected[3]);
  EXPECT_EQ(rendered(*dataset.test, 1, 7), rendered(*dataset.test, 1, 8));

  for (const unsigned threads : {1u, 2u, 5u}) {
    const auto again = load(options());
    const std::vector<std::uint32_t> order = {5, 3, 3, 0, 1, 4, 2, 5, 0, 1, 2, 3};
    Prefetcher prefetcher(*again.train, threads, [&, at = std::size_t{0}]() mutable {
      const auto size = std::min<std::size_t>(1 + threads, order.size() - at);
      const std::optional<BatchRequest> request =
          size == 0 ? std::nullopt : std::optional(BatchRequest{7, std::span(order).subspan(at, size)});
      at += size;
      return request;
    });
    std::size_t at = 0;
    while (const auto batch = prefetcher.next()) {
      for (std::size_t i = 0; i < batch->labels.size(); ++i, ++at) {
        const auto image = batch->inputs.subspan(i * 3 * 24 * 24, 3 * 24 * 24);
        ASSERT_TRUE(std::equal(image.begin(), image.end(), expected[order[at]].begin()));
      }
    }
    EXPECT_EQ(at, order.size());
  }
}

TEST_F(ImageFolder, WithoutAugmentationTrainingImagesAreRenderedAsTestImages) {
  put("train/cat/palette.png", "grey16.png");
  auto plain = options();
  plain.augment = Augment::kNone;
  const auto dataset = load(plain);
  EXPECT_EQ(rendered(*dataset.train, 5, 0), rendered(*dataset.test, 2, 0));
  EXPECT_EQ(rendered(*dataset.train, 5, 0), rendered(*dataset.train, 5, 1));
}

TEST_F(ImageFolder, ReplacesAnUnreadableImageByTheNextOfItsClass) {
  auto plain = options();
  plain.augment = Augment::kNone;  // without crops, so that most of the image is decoded and damage is found
  const auto whole = load(plain);
  const auto next = rendered(*whole.train, 4, 0), first = rendered(*whole.train, 0, 0);
  truncate("train/bee/photo.JPG");
  write_file(folder_ / "train/ant/progressive.jpg", "");
  write_file(folder_ / "train/ant/upright.jpeg", "GIF89a, says the file");
  const auto dataset = load(plain);
  EXPECT_EQ(rendered(*dataset.train, 3, 0), next);
  EXPECT_EQ(rendered(*dataset.train, 1, 0), first) << "the first of a class follows its last";
  EXPECT_EQ(dataset.train->label(3), 1);
  EXPECT_EQ(rendered(*dataset.train, 3, 0), next);
  const auto unreadable = dataset.train->unreadable();
  EXPECT_EQ(unreadable.images, 3u) << "each is counted once";
  EXPECT_THAT(unreadable.first, AllOf(HasSubstr("progressive.jpg"), HasSubstr("is empty")));
}

TEST_F(ImageFolder, IsStrictOnRequest) {
  truncate("train/bee/rgb.png");
  auto strict = options();
  strict.strict = true;
  const auto dataset = load(strict);
  EXPECT_THAT([&] { rendered(*dataset.train, 4, 0); },
              ThrowsMessage<UserError>(
                  AllOf(HasSubstr((folder_ / "train/bee/rgb.png").string()), HasSubstr("is damaged"))));
  EXPECT_NO_THROW(rendered(*dataset.train, 3, 0));
}

TEST_F(ImageFolder, AClassOfUnreadableImagesIsAnError) {
  truncate("train/cat/palette.png");
  const auto dataset = load(options());
  EXPECT_THAT([&] { rendered(*dataset.train, 5, 0); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("none of the 1 images of class cat"),
                                             HasSubstr("palette.png is damaged"))));
}

TEST_F(ImageFolder, RefusesAnEmptyClassByName) {
  fs::remove(folder_ / "val/bee/b.jpg");
  expect_error("val/bee", "contains no images");
}

TEST_F(ImageFolder, RefusesClassesThatDiffer) {
  fs::remove_all(folder_ / "val/bee");
  expect_error("val", "has no class bee, which");
  put("val/bee/b.jpg", "photo.jpg");
  put("val/dog/d.jpg", "photo.jpg");
  expect_error("train", "has no class dog, which");
}

TEST_F(ImageFolder, AcceptsTestForValAndRequiresOne) {
  fs::rename(folder_ / "val", folder_ / "test");
  EXPECT_EQ(load(options()).test->count(), 3u);
}

// The order of the listing: three ants, two bees, a cat; the fifth is the second bee.
TEST_F(ImageFolder, WithoutATestPartEveryFifthImageIsHeldOut) {
  const auto check = [&] {
    const auto dataset = load(options());
    EXPECT_EQ(dataset.train->count(), 5u);
    EXPECT_EQ(dataset.test->count(), 1u);
    EXPECT_EQ(dataset.test->label(0), 1);
    EXPECT_EQ(dataset.train->label(3), 1);
    EXPECT_EQ(dataset.train->label(4), 2);
    EXPECT_EQ(dataset.test->shape().classes, 3);
    auto test_only = options();
    test_only.test_only = true;
    EXPECT_EQ(rendered(*load(test_only).test, 0, 0), rendered(*dataset.test, 0, 0));
  };
  auto test_image = options();
  put("val/bee/b.jpg", "rgb.png");
  const auto expected = rendered(*load(test_image).test, 1, 0);
  fs::remove_all(folder_ / "val");
  check();
  EXPECT_EQ(rendered(*load(options()).test, 0, 0), expected);
  for (const auto* name : {"ant", "bee", "cat"}) fs::rename(folder_ / "train" / name, folder_ / name);
  fs::remove_all(folder_ / "train");
  check();
  for (const auto* name : {"ant", "cat"}) fs::remove_all(folder_ / name);
  expect_error("", "has 2 samples; every fifth is for testing, so it needs at least 5");
}

TEST_F(ImageFolder, IsNormalisedByImageNetsStatisticsOrNot) {
  auto raw = options();
  raw.augment = Augment::kNone;
  const auto normalised = rendered(*load(raw).test, 0, 0);
  raw.normalize = Normalize::kNone;
  const auto levels = rendered(*load(raw).test, 0, 0);
  for (std::size_t i = 0; i < levels.size(); i += 3)
    ASSERT_NEAR(normalised[i], (static_cast<double>(levels[i]) - 0.485) / 0.229, 1e-5);
  raw.normalize = Normalize::kTrain;
  EXPECT_THAT(
      [&] { load(raw); },
      ThrowsMessage<UserError>("--normalize train would decode every image of imagefolder before training; "
                               "it takes auto (ImageNet's mean and deviation) or none"));
}

// rgb.png is 48 pixels wide and 36 high: its centre square, then unscaled.
TEST_F(ImageFolder, WithoutAugmentationTheShorterSideIsScaledToTheImageSize) {
  put("train/cat/palette.png", "grey.png");
  auto plain = options();
  plain.augment = Augment::kNone;
  plain.normalize = Normalize::kNone;
  const auto decoder = make_png_decoder();
  const auto file = contents(kPictures / "rgb.png");
  const auto size = decoder->open({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()});
  Picture picture;
  decoder->read({0, 0, size.width, size.height}, 1, picture);
  const auto side = std::min(size.width, size.height);
  plain.image_size = side;
  const auto image = rendered(*load(plain).train, 4, 0);
  const auto x0 = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(size.width - side) / 2));
  const auto y0 = static_cast<std::int64_t>(std::nearbyint(static_cast<double>(size.height - side) / 2));
  for (std::int64_t y = 0; y < side; ++y)
    for (std::int64_t x = 0; x < side; ++x)
      for (std::int64_t c = 0; c < 3; ++c)
        ASSERT_EQ(image[static_cast<std::size_t>((y * side + x) * 3 + c)],
                  static_cast<float>(picture.row(y + y0)[4 * (x + x0) + c] / 255.0));
}

TEST_F(ImageFolder, RejectsAFolderWithoutClasses) {
  fs::remove_all(folder_ / "train");
  expect_error("", "there is no train");
  fs::create_directories(folder_ / "train");
  expect_error("train", "contains no folders");
}

TEST_F(ImageFolder, AnAugmentationForOtherImagesIsRefused) {
  auto wrong = options();
  wrong.augment = Augment::kCropFlip;
  EXPECT_THAT([&] { load(wrong); }, ThrowsMessage<UserError>(HasSubstr("auto, none or resized-crop")));
  DatasetOptions digits;
  digits.augment = Augment::kResizedCrop;
  EXPECT_THAT([&] { load(digits); }, ThrowsMessage<UserError>(HasSubstr("auto, none or crop-flip")));
  digits.augment = Augment::kAuto;
  digits.image_size = 32;
  EXPECT_THAT([&] { load(digits); }, ThrowsMessage<UserError>(HasSubstr("those of digits are 28x28")));
}

TEST_F(ImageFolder, ImagenetteIsFoundInItsFolder) {
  fs::create_directories(folder_ / "imagenette/imagenette2-160");
  fs::rename(folder_ / "train", folder_ / "imagenette/imagenette2-160/train");
  fs::rename(folder_ / "val", folder_ / "imagenette/imagenette2-160/val");
  auto o = options();
  o.name = "imagenette";
  EXPECT_EQ(load(o).train->count(), 6u);
  o.data_dir = (folder_ / "nowhere").string();
  EXPECT_THAT([&] { load(o); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("nowhere/imagenette"),
                                             HasSubstr("capstan data get imagenette fetches it"))));
}

}  // namespace
}  // namespace capstan::data
