// The same images in every form that a user may have them in: the floats are equal bit for bit.

#include <cstring>

#include <gtest/gtest.h>

#include "capstan/data/dataset.h"

#include "data/images_in_every_form.h"

namespace capstan::data {
namespace {

namespace fs = std::filesystem;
using namespace capstan::testing;

void expect_exact(const SampleSource& source, const std::vector<std::size_t>& images,
                  const std::string& name) {
  ASSERT_EQ(source.count(), images.size()) << name;
  std::vector<float> out(kChannels * kPlane);
  for (std::size_t s = 0; s < images.size(); ++s) {
    EXPECT_EQ(source.label(s), label(images[s])) << name;
    source.render(s, 3, out.data());
    for (std::size_t p = 0; p < kPlane; ++p) {
      for (std::size_t c = 0; c < kChannels; ++c) {
        const auto expected = static_cast<float>(level(images[s], c * kPlane + p) / 255.0);
        ASSERT_EQ(std::memcmp(&out[p * kChannels + c], &expected, sizeof expected), 0) << name;
      }
    }
  }
}

TEST(Exactness, TheFloatsOfAnImageDoNotDependOnItsFile) {
  const TemporaryFolder folder;
  write_image_folder(folder / "images");
  write_arrays_and_table(folder.path());
  for (const auto& [name, data_dir] :
       {std::pair<std::string, fs::path>{"arrays:levels.safetensors", folder.path()},
        {"arrays:floats.safetensors", folder.path()},
        {"csv:cells.csv:target=class:classes:shape=3x16x16", folder.path()},
        {"imagefolder", folder / "images"}}) {
    DatasetOptions options{name, data_dir.string(), 1};
    options.normalize = Normalize::kNone;
    options.augment = Augment::kNone;
    options.image_size = kSide;
    const auto dataset = load(options);
    EXPECT_EQ(dataset.train->shape(), (SampleShape{{3, 16, 16}, 2})) << name;
    expect_exact(*dataset.train, {0, 1, 2, 3, 5, 6, 7, 8, 10, 11}, name);
    expect_exact(*dataset.test, {4, 9}, name);
  }
}

}  // namespace
}  // namespace capstan::data
