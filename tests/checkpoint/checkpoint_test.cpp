#include "capstan/checkpoint/checkpoint.h"

#include <cstring>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "capstan/checkpoint/model_file.h"
#include "capstan/checkpoint/safetensors.h"
#include "capstan/user_error.h"

#include "checkpoint/written_run.h"
#include "support/temporary_folder.h"

namespace capstan::checkpoint {
namespace {

using capstan::testing::buffers_values;
using capstan::testing::contents;
using capstan::testing::cuts;
using capstan::testing::flat_values;
using capstan::testing::many_shapes;
using capstan::testing::some_buffers;
using capstan::testing::TemporaryFolder;
using capstan::testing::value_of;
using capstan::testing::write_checkpoint;
using capstan::testing::write_file;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// All arrays of a range, as the server of that range loads them.
std::vector<std::vector<float>> loaded(const std::filesystem::path& folder, Range range) {
  const auto manifest = read_manifest(folder);
  std::vector<std::vector<float>> values(manifest.state.size() + 1, std::vector<float>(range.size(), -1));
  std::vector<NamedArray> arrays;
  for (std::size_t a = 0; a < values.size(); ++a)
    arrays.push_back({a == 0 ? "weights" : manifest.state[a - 1], values[a]});
  load(folder, manifest, range, arrays);
  return values;
}

TEST(Checkpoint, IsLoadedByAnyNumberOfServers) {
  const auto layout = many_shapes();
  for (const std::uint32_t writers : {1u, 2u, 3u, 7u}) {
    const TemporaryFolder folder;
    const auto written = write_checkpoint(folder.path(), writers);
    const auto manifest = read_manifest(folder.path());
    EXPECT_EQ(manifest, written);
    verify(folder.path(), manifest);
    EXPECT_EQ(folder.files(), 2 * writers + 1);
    for (const std::uint32_t readers : {1u, 2u, 3u, 5u, 7u}) {
      for (const auto& range : cuts(layout.size(), readers)) {
        const auto arrays = loaded(folder.path(), range);
        for (std::size_t a = 0; a < 3; ++a)
          EXPECT_EQ(arrays[a], flat_values(layout, a, range))
              << writers << " to " << readers << ", array " << a;
      }
    }
  }
}

TEST(Checkpoint, IsSplitAtAnyElement) {
  const auto layout = many_shapes();
  for (std::uint64_t cut = 0; cut <= layout.size(); cut += 7) {
    const TemporaryFolder folder;
    Manifest manifest;
    manifest.parameters = layout.tensors();
    for (std::uint32_t s = 0; s < 2; ++s) {
      const auto range = s == 0 ? Range{0, cut} : Range{cut, layout.size()};
      auto weights = flat_values(layout, 0, range);
      Shard shard{s, 2, range, {{"weights", weights}}, {}, {}};
      const auto pieces = write_shard(folder.path(), layout, shard);
      manifest.pieces.insert(manifest.pieces.end(), pieces.begin(), pieces.end());
    }
    verify(folder.path(), manifest);
    std::vector<float> whole(layout.size(), -1);
    const NamedArray array{"weights", whole};
    load(folder.path(), manifest, {0, layout.size()}, std::span(&array, 1));
    ASSERT_EQ(whole, flat_values(layout, 0, {0, layout.size()})) << cut;
  }
}

TEST(Checkpoint, OfOneServerHasWholeTensorsInRowMajorOrder) {
  const TemporaryFolder folder;
  write_checkpoint(folder.path(), 1, {"momentum_buffer"}, true);
  const auto file = read_safetensors(folder / "weights.safetensors");
  std::map<std::string, Tensor> tensors;
  for (const auto& t : file.tensors) tensors[t.name] = t;
  const auto layout = many_shapes();
  EXPECT_EQ(tensors.size(), layout.tensors().size() + 3);
  for (std::size_t t = 0; t < layout.tensors().size(); ++t) {
    const auto& shape = layout.tensors()[t];
    std::vector<float> expected;
    for (std::size_t i = 0; i < shape.elements(); ++i) expected.push_back(value_of(0, t, i));
    EXPECT_EQ(tensors[shape.name], (Tensor{shape.name, shape.dims, expected}));
  }
  EXPECT_EQ(file.metadata.at("format"), "pt");
  const auto state = read_safetensors(folder / "optimizer.safetensors");
  ASSERT_EQ(state.tensors.size(), layout.tensors().size());
  EXPECT_EQ(state.tensors[1].name, "momentum_buffer/conv.weight");
  EXPECT_EQ(state.tensors[1].values[1], value_of(1, 1, 1));
}

TEST(Checkpoint, WithoutOptimizerStateHasOnlyWeights) {
  const TemporaryFolder folder;
  const auto manifest = write_checkpoint(folder.path(), 2, {});
  verify(folder.path(), manifest);
  EXPECT_EQ(folder.files(), 3);
  EXPECT_EQ(loaded(folder.path(), {0, many_shapes().size()})[0],
            flat_values(many_shapes(), 0, {0, many_shapes().size()}));
}

TEST(Checkpoint, CountersAreIntegersAsInPyTorch) {
  const TemporaryFolder folder;
  const auto manifest = write_checkpoint(folder.path(), 3, {}, true);
  const auto bytes = contents(folder / "weights-1-of-3.safetensors");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  EXPECT_EQ(header["bn.num_batches_tracked"]["dtype"], "I64");
  EXPECT_EQ(header["bn.running_mean"]["dtype"], "F32");
  std::int64_t counter = 0;
  const auto offset = header["bn.num_batches_tracked"]["data_offsets"][0].get<std::size_t>();
  std::memcpy(&counter, bytes.data() + 8 + length + offset, 8);
  EXPECT_EQ(counter, 1234);
  EXPECT_EQ(load_buffers(folder.path(), manifest), buffers_values(some_buffers()));
}

// The mean over workers with different counts.
TEST(Checkpoint, CountersAreRounded) {
  const TemporaryFolder folder;
  const FlatLayout layout({{"w", {1}}}), buffers({{"num_batches_tracked", {}}, {"running_mean", {1}}});
  std::vector<float> weight(layout.size()), means(buffers.size());
  means[buffers.offset(0)] = 10.5f;
  means[buffers.offset(1)] = 10.5f;
  Shard shard{0, 1, {0, layout.size()}, {{"weights", weight}}, buffers, means};
  Manifest manifest;
  manifest.parameters = layout.tensors();
  manifest.buffers = buffers.tensors();
  manifest.pieces = write_shard(folder.path(), layout, shard);
  verify(folder.path(), manifest);
  const auto back = load_buffers(folder.path(), manifest);
  EXPECT_EQ(back[buffers.offset(0)], 11);
  EXPECT_EQ(back[buffers.offset(1)], 10.5f);

  const auto model = folder / "model.safetensors";
  write_model(model, layout, weight, buffers, means, {});
  std::map<std::string, std::vector<float>> values;
  for (const auto& tensor : read_safetensors(model).tensors) values[tensor.name] = tensor.values;
  EXPECT_EQ(values["num_batches_tracked"], std::vector{11.0f});
  EXPECT_EQ(values["running_mean"], std::vector{10.5f});
}

TEST(Checkpoint, WithoutBuffersHasNone) {
  const TemporaryFolder folder;
  EXPECT_TRUE(load_buffers(folder.path(), write_checkpoint(folder.path(), 1)).empty());
}

// ---- damage ----

void expect_refused(const std::filesystem::path& folder, const std::string& file, const std::string& fault) {
  const auto manifest = read_manifest(folder);
  const auto says = ThrowsMessage<UserError>(AllOf(HasSubstr((folder / file).string()), HasSubstr(fault)));
  EXPECT_THAT([&] { verify(folder, manifest); }, says);
  EXPECT_THAT([&] { loaded(folder, {0, many_shapes().size()}); }, says);
}

TEST(Damage, OfAnyByteOfATensorIsFoundAndNamed) {
  for (const std::string file : {"weights-2-of-2.safetensors", "optimizer-1-of-2.safetensors"}) {
    const TemporaryFolder folder;
    const auto manifest = write_checkpoint(folder.path(), 2);
    const auto good = contents(folder / file);
    std::uint64_t header = 0;
    std::memcpy(&header, good.data(), 8);
    for (auto at = 8 + header; at < good.size(); at += 61) {
      auto bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
      write_file(folder / file, bad);
      expect_refused(folder.path(), file, "is damaged: the checksum of tensor");
      if (::testing::Test::HasFailure()) return;
    }
  }
}

// Damage of a header is harmless if it changes no tensor of the manifest.
TEST(Damage, OfAnyByteOfAHeaderIsFoundOrHarmless) {
  const TemporaryFolder folder;
  const auto manifest = write_checkpoint(folder.path(), 1, {});
  const auto good = contents(folder / "weights.safetensors");
  std::uint64_t header = 0, refused = 0;
  std::memcpy(&header, good.data(), 8);
  const Range all{0, many_shapes().size()};
  for (std::uint64_t at = 0; at < 8 + header; ++at) {
    auto bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 7));
    write_file(folder / "weights.safetensors", bad);
    try {
      verify(folder.path(), manifest);
      ASSERT_EQ(loaded(folder.path(), all)[0], flat_values(many_shapes(), 0, all)) << at;
    } catch (const UserError& error) {
      ++refused;
      ASSERT_THAT(error.what(), HasSubstr("weights.safetensors"));
    }
  }
  EXPECT_GT(refused, header / 2);
}

TEST(Damage, OfATruncatedFileIsFound) {
  const TemporaryFolder folder;
  write_checkpoint(folder.path(), 2);
  const auto good = contents(folder / "optimizer-2-of-2.safetensors");
  for (const std::size_t left : {std::size_t{0}, std::size_t{7}, good.size() / 2, good.size() - 1}) {
    write_file(folder / "optimizer-2-of-2.safetensors", good.substr(0, left));
    expect_refused(folder.path(), "optimizer-2-of-2.safetensors", "");
  }
}

TEST(Damage, AMissingFileIsNamed) {
  for (const std::string file : {"weights-1-of-3.safetensors", "optimizer-3-of-3.safetensors"}) {
    const TemporaryFolder folder;
    write_checkpoint(folder.path(), 3);
    std::filesystem::remove(folder / file);
    expect_refused(folder.path(), file, "No such file");
  }
}

TEST(Damage, AFileOfAnotherCheckpointIsFound) {
  const TemporaryFolder folder;
  const auto layout = many_shapes();
  write_checkpoint(folder.path(), 1);
  // The same tensors, one step later.
  auto later = flat_values(layout, 0, {0, layout.size()});
  for (auto& v : later) v += 0.5f;
  std::vector<float> a = later, b = later;
  Shard shard{0, 1, {0, layout.size()}, {{"weights", later}, {"exp_avg", a}, {"exp_avg_sq", b}}, {}, {}};
  const TemporaryFolder other;
  write_shard(other.path(), layout, shard);
  std::filesystem::copy_file(other / "weights.safetensors", folder / "weights.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  expect_refused(folder.path(), "weights.safetensors", "checksum");
  // Other tensors.
  const std::vector<float> one = {1};
  write_safetensors(folder / "weights.safetensors", std::vector<TensorView>{{"other", {1}, one}});
  expect_refused(folder.path(), "weights.safetensors", "does not contain tensor");
}

TEST(Damage, SwappedFilesAreFound) {
  const TemporaryFolder folder;
  write_checkpoint(folder.path(), 2);
  std::filesystem::rename(folder / "weights-1-of-2.safetensors", folder / "x");
  std::filesystem::rename(folder / "weights-2-of-2.safetensors", folder / "weights-1-of-2.safetensors");
  std::filesystem::rename(folder / "x", folder / "weights-2-of-2.safetensors");
  expect_refused(folder.path(), "weights-1-of-2.safetensors", "does not contain tensor");
}

TEST(Damage, MissingPiecesAreFound) {
  const TemporaryFolder folder;
  auto manifest = write_checkpoint(folder.path(), 2);
  std::erase_if(manifest.pieces, [](const Piece& p) { return p.array == "exp_avg" && p.tensor == "matrix"; });
  write_manifest(folder.path(), manifest);
  EXPECT_THAT(
      [&] { read_manifest(folder.path()); },
      ThrowsMessage<UserError>(AllOf(HasSubstr("manifest.json"), HasSubstr("exp_avg of tensor matrix"))));
}

TEST(Damage, AFolderWithoutManifestIsNotACheckpoint) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { read_manifest(folder.path()); },
              ThrowsMessage<UserError>(AllOf(HasSubstr(folder.path().string()), HasSubstr("manifest.json"))));
}

TEST(Damage, AFolderThatCannotBeWrittenIsNamed) {
  const TemporaryFolder folder;
  write_file(folder / "file", "");
  auto weights = flat_values(many_shapes(), 0, {0, many_shapes().size()});
  Shard shard{0, 1, {0, many_shapes().size()}, {{"weights", weights}}, {}, {}};
  EXPECT_THAT([&] { write_shard(folder / "file", many_shapes(), shard); },
              ThrowsMessage<UserError>(HasSubstr("weights.safetensors")));
}

}  // namespace
}  // namespace capstan::checkpoint
