#include "capstan/fetch/catalogue.h"

#include <algorithm>

#include <fmt/format.h>

#include "capstan/base/spelling.h"
#include "capstan/user_error.h"

namespace capstan::fetch {
namespace {

// Sizes and SHA-256 are those that tensorflow/datasets publishes. The MD5s that torchvision and the pages of
// CIFAR and Fashion-MNIST publish are of the same files. The MD5s of the unpacked files of MNIST and
// Fashion-MNIST are found in many programs that read them.
std::vector<Entry> make_catalogue() {
  return {
      {.name = "digits", .kind = Kind::kBuiltIn, .classes = 10, .images = 1'797},
      {.name = "synthetic", .kind = Kind::kBuiltIn},
      {.name = "mnist",
       .kind = Kind::kFiles,
       .classes = 10,
       .images = 70'000,
       .mirrors = {"https://ossci-datasets.s3.amazonaws.com/mnist",
                   "https://storage.googleapis.com/cvdf-datasets/mnist", "http://yann.lecun.com/exdb/mnist"},
       .files = {{"train-images-idx3-ubyte.gz", 9'912'422,
                  "sha256:440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                  "md5:6bbc9ace898e44ae57da46a324031adb"},
                 {"train-labels-idx1-ubyte.gz", 28'881,
                  "sha256:3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                  "md5:a25bea736e30d166cdddb491f175f624"},
                 {"t10k-images-idx3-ubyte.gz", 1'648'877,
                  "sha256:8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                  "md5:2646ac647ad5339dbf082846283269ea"},
                 {"t10k-labels-idx1-ubyte.gz", 4'542,
                  "sha256:f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                  "md5:27ae3e4e09519cfbb04c329615203637"}}},
      {.name = "fashion-mnist",
       .kind = Kind::kFiles,
       .classes = 10,
       .images = 70'000,
       .mirrors = {"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
                   "https://storage.googleapis.com/tensorflow/tf-keras-datasets"},
       .files = {{"train-images-idx3-ubyte.gz", 26'421'880,
                  "sha256:3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                  "md5:f4a8712d7a061bf5bd6d2ca38dc4d50a"},
                 {"train-labels-idx1-ubyte.gz", 29'515,
                  "sha256:a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                  "md5:9018921c3c673c538a1fc5bad174d6f9"},
                 {"t10k-images-idx3-ubyte.gz", 4'422'102,
                  "sha256:346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                  "md5:8181f5470baa50b63fa0f6fddb340f0a"},
                 {"t10k-labels-idx1-ubyte.gz", 5'148,
                  "sha256:67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
                  "md5:15d484375f8d13e6eb1aabb0c3f46965"}}},
      {.name = "cifar10",
       .kind = Kind::kArchive,
       .classes = 10,
       .images = 60'000,
       .mirrors = {"https://www.cs.toronto.edu/~kriz"},
       .files = {{"cifar-10-binary.tar.gz", 170'052'171,
                  "sha256:c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd", ""}},
       .archive_folder = "cifar-10-batches-bin",
       .unpacked_bytes = 184'400'000},
      {.name = "cifar100",
       .kind = Kind::kArchive,
       .classes = 100,
       .images = 60'000,
       .mirrors = {"https://www.cs.toronto.edu/~kriz"},
       .files = {{"cifar-100-binary.tar.gz", 168'513'733,
                  "sha256:58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec", ""}},
       .archive_folder = "cifar-100-binary",
       .unpacked_bytes = 184'500'000},
      {.name = "imagenette",
       .kind = Kind::kArchive,
       .classes = 10,
       .images = 13'394,
       .mirrors = {"https://s3.amazonaws.com/fast-ai-imageclas"},
       .files = {{"imagenette2-320.tgz", 341'663'724,
                  "sha256:569b4497c98db6dd29f335d1f109cf315fe127053cedf69010d047f0188e158c", ""}},
       .archive_folder = "imagenette2-320"},
      {.name = "imagefolder", .kind = Kind::kOwn},
  };
}

}  // namespace

std::uint64_t Entry::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& file : files) {
    if (file.bytes == 0) return 0;
    sum += file.bytes;
  }
  return sum;
}

std::span<const Entry> catalogue() {
  static const auto kCatalogue = make_catalogue();
  return kCatalogue;
}

const Entry& find_entry(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& entry : catalogue()) {
    if (entry.name == name) return entry;
    names.emplace_back(entry.name);
  }
  const auto near = nearest(name, names);
  throw UserError(fmt::format("unknown dataset \"{}\"{}; known are {}", name,
                              near.empty() ? "" : fmt::format(" (did you mean {}?)", near),
                              fmt::join(names, ", ")));
}

}  // namespace capstan::fetch
