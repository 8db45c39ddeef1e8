// State dicts read by libtorch's unpickler.

#include <algorithm>
#include <cstring>
#include <map>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/unpickler.h>

#include "capstan/checkpoint/torch_file.h"
#include "checkpoint/odd_tensors.h"
#include "checkpoint/zip_reader.h"
#include "support/temporary_folder.h"

namespace capstan::checkpoint {
namespace {

c10::impl::GenericDict read(const std::filesystem::path& file) {
  const auto bytes = capstan::testing::contents(file);
  std::map<std::string, std::string> parts;
  for (const auto& entry : capstan::testing::zip_of(bytes).entries())
    parts[entry.name] = bytes.substr(entry.data_at, entry.bytes);

  // A state dict is an OrderedDict, which some versions of libtorch cannot read: the test replaces it by a
  // plain dict.
  auto pickle = parts.at("archive/data.pkl");
  const std::string ordered = "ccollections\nOrderedDict\n)R", header = "\x80\x02";
  EXPECT_EQ(pickle.find(ordered), header.size());
  pickle.replace(header.size(), ordered.size(), "}");

  std::size_t at = 0;
  const auto next = [&](char* out, std::size_t most) {
    const auto count = std::min(most, pickle.size() - at);
    std::memcpy(out, pickle.data() + at, count);
    at += count;
    return count;
  };
  const auto record = [&](const std::string& name) {
    const auto& values = parts.at("archive/data/" + name);
    auto data = c10::GetAllocator(at::kCPU)->allocate(values.size());
    if (!values.empty()) std::memcpy(data.get(), values.data(), values.size());
    return data;
  };
  return torch::jit::Unpickler(next, nullptr, nullptr, record, c10::nullopt).parse_ivalue().toGenericDict();
}

TEST(TorchFile, IsReadByLibtorch) {
  const capstan::testing::TemporaryFolder folder;
  capstan::testing::OddTensors odd;
  // libtorch reads numbers of more than four bytes only in its own encoding.
  ASSERT_EQ(odd.tensors[static_cast<std::size_t>(odd.kWide)].dims[1], 5'000'000'000);
  odd.tensors.erase(odd.tensors.begin() + odd.kWide);
  odd.names.erase(odd.names.begin() + odd.kWide);
  write_torch_file(folder / "x.pt", odd.tensors);
  const auto dict = read(folder / "x.pt");
  ASSERT_EQ(dict.size(), odd.tensors.size());
  for (std::size_t i = 0; i < odd.tensors.size(); ++i) {
    const auto& t = odd.tensors[i];
    SCOPED_TRACE(t.name);
    const auto found = dict.find(odd.names[i]);
    ASSERT_TRUE(found != dict.end());
    const auto tensor = found->value().toTensor();
    EXPECT_EQ(tensor.scalar_type(), t.as_int64 ? at::kLong : at::kFloat);
    EXPECT_EQ(tensor.sizes(), at::IntArrayRef(t.dims));
    const auto flat = tensor.to(at::kFloat).contiguous();
    const auto* values = flat.data_ptr<float>();
    EXPECT_EQ(std::vector<float>(values, values + flat.numel()),
              std::vector<float>(t.values.begin(), t.values.end()));
  }
}

TEST(TorchFile, WithoutTensorsIsAnEmptyDict) {
  const capstan::testing::TemporaryFolder folder;
  write_torch_file(folder / "x.pt", {});
  EXPECT_EQ(read(folder / "x.pt").size(), 0u);
}

}  // namespace
}  // namespace capstan::checkpoint
