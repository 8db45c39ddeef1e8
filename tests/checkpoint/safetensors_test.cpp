#include "capstan/checkpoint/safetensors.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "capstan/base/random.h"
#include "capstan/user_error.h"

#include "support/temporary_folder.h"

namespace capstan::checkpoint {
namespace {

using capstan::testing::contents;
using capstan::testing::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Safetensors parse(const std::string& bytes) {
  // A buffer of exactly this size, so that a sanitizer sees a read past its end.
  const std::vector<char> exact(bytes.begin(), bytes.end());
  return parse_safetensors(std::as_bytes(std::span(exact)), "test.safetensors");
}

std::string file_with(const std::string& header, const std::string& body) {
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  return length + header + body;
}

std::uint64_t elements(const std::vector<std::int64_t>& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::uint64_t{1},
                         [](auto a, auto d) { return a * static_cast<std::uint64_t>(d); });
}

// A valid file with two tensors.
std::string small_file() {
  return file_with(R"({"__metadata__":{"step":"3"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                   R"("b":{"dtype":"F32","shape":[],"data_offsets":[8,12]}})",
                   std::string("\0\0\x80?\0\0\0@\0\0@@", 12));
}

TEST(Safetensors, ReadsAFileMadeByAnotherWriter) {
  const auto golden = read_safetensors(CAPSTAN_SOURCE_DIR "/tests/reference/golden.safetensors");
  EXPECT_EQ(golden.metadata, (Metadata{{"format", "pt"}, {"step", "12"}}));
  ASSERT_EQ(golden.tensors.size(), 8u);
  const auto inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(golden.tensors[0], (Tensor{"count", {}, {12.0f}}));
  EXPECT_EQ(golden.tensors[1], (Tensor{"brain", {4}, {1.0f, -2.5f, 0x1p-126f, -inf}}));
  EXPECT_EQ(golden.tensors[2],
            (Tensor{"half", {7}, {1.0f, -2.5f, 65504.0f, 0x1p-24f, -0x1p-14f, inf, -0.0f}}));
  EXPECT_TRUE(std::signbit(golden.tensors[2].values[6]));
  EXPECT_EQ(golden.tensors[3], (Tensor{"double", {2}, {0.1f, -inf}}));
  EXPECT_EQ(golden.tensors[4], (Tensor{"ünïcode", {1}, {-0.0f}}));
  EXPECT_TRUE(std::signbit(golden.tensors[4].values[0]));
  EXPECT_EQ(golden.tensors[5], (Tensor{"scalar", {}, {7.0f}}));
  EXPECT_EQ(golden.tensors[6], (Tensor{"empty", {0, 4}, {}}));
  EXPECT_EQ(golden.tensors[7], (Tensor{"layer.weight", {2, 3}, {0.5f, -1.0f, 2.0f, 3.25f, -4.0f, 1e-3f}}));
}

TEST(Safetensors, ReturnsTheStoredBytesAndTheirType) {
  const auto file = file_with(R"({"i":{"dtype":"I16","shape":[2],"data_offsets":[0,4]},)"
                              R"("u":{"dtype":"U8","shape":[1,2],"data_offsets":[4,6]}})",
                              std::string("\xfe\xff\x05\0\xff\x07", 6));
  const SafetensorsReader reader(std::as_bytes(std::span(file)), "test");
  EXPECT_EQ(reader.info(1).name, "u");
  EXPECT_EQ(reader.info(1).type, DType::kU8);
  EXPECT_EQ(reader.info(1).dims, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(reader.read_bytes(1), (std::vector{std::byte{0xff}, std::byte{7}}));
  EXPECT_EQ(reader.read("i")->values, (std::vector<float>{-2, 5}));
}

TEST(Safetensors, WritesWhatAnotherReaderReads) {
  const TemporaryFolder folder;
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {-1};
  write_safetensors(folder / "x", std::vector<TensorView>{{"a", {3, 2}, a}, {"b \"q\"", {1}, b}},
                    {{"k", "v"}});

  const auto bytes = contents(folder / "x");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  EXPECT_EQ(header.size(), 3u);
  EXPECT_EQ(header["__metadata__"], (nlohmann::json{{"k", "v"}}));
  EXPECT_EQ(header["a"], (nlohmann::json{{"dtype", "F32"}, {"shape", {3, 2}}, {"data_offsets", {0, 24}}}));
  EXPECT_EQ(header["b \"q\""]["data_offsets"], (nlohmann::json{24, 28}));
  ASSERT_EQ(bytes.size(), 8 + length + 28);
  std::vector<float> values(7);
  std::memcpy(values.data(), bytes.data() + 8 + length, 28);
  EXPECT_THAT(values, ::testing::ElementsAre(1, 2, 3, 4, 5, 6, -1));
}

TEST(Safetensors, WritesIntegersFirstAndAligned) {
  const TemporaryFolder folder;
  const std::vector<float> a = {1.5f}, n = {7}, m = {-1, 16777216};
  write_safetensors(folder / "x",
                    std::vector<TensorView>{{"a", {1}, a}, {"n", {}, n, true}, {"m", {2}, m, true}});
  const auto bytes = contents(folder / "x");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  EXPECT_EQ(header["n"],
            (nlohmann::json{{"dtype", "I64"}, {"shape", nlohmann::json::array()}, {"data_offsets", {0, 8}}}));
  EXPECT_EQ(header["m"], (nlohmann::json{{"dtype", "I64"}, {"shape", {2}}, {"data_offsets", {8, 24}}}));
  EXPECT_EQ(header["a"], (nlohmann::json{{"dtype", "F32"}, {"shape", {1}}, {"data_offsets", {24, 28}}}));
  std::int64_t integers[3];
  std::memcpy(integers, bytes.data() + 8 + length, 24);
  EXPECT_THAT(integers, ::testing::ElementsAre(7, -1, 16777216));
  float value = 0;
  std::memcpy(&value, bytes.data() + 8 + length + 24, 4);
  EXPECT_EQ(value, 1.5f);
}

TEST(Safetensors, RoundTrip) {
  const TemporaryFolder folder;
  Safetensors file{{{"one", {2, 2}, {1, 2, 3, 4}}, {"none", {0}, {}}, {"two", {}, {5}}}, {{"seed", "1"}}};
  std::vector<TensorView> views;
  for (const auto& t : file.tensors) views.push_back({t.name, t.dims, t.values});
  write_safetensors(folder / "x", views, file.metadata);
  EXPECT_EQ(read_safetensors(folder / "x"), file);
  write_safetensors(folder / "x", {});
  EXPECT_EQ(read_safetensors(folder / "x"), Safetensors{});
}

TEST(Safetensors, AFileOfTorchSaveIsNamedWithTheConversion) {
  const std::string zip("PK\3\4\0\0\0\0\0\0", 10);
  EXPECT_THAT(
      [&] { parse_safetensors(std::as_bytes(std::span(zip)), "sd.pt"); },
      ThrowsMessage<UserError>("sd.pt is not a valid safetensors file: it is a zip archive, as torch.save() "
                               "writes; convert it in Python: "
                               "safetensors.torch.save_file(torch.load(FILE), NEW_FILE)"));
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const auto good = small_file();
  ASSERT_EQ(parse(good).tensors.size(), 2u);
  for (std::size_t cut = 0; cut < good.size(); ++cut)
    EXPECT_THROW(parse(good.substr(0, cut)), UserError) << cut;
  EXPECT_THROW(parse(good + "x"), UserError);
}

// A damaged file may be accepted, but its tensors never exceed the file.
TEST(Safetensors, EveryDamageIsRejectedOrInBounds) {
  const auto good = small_file();
  Random random(1);
  int refused = 0, taken = 0;
  for (std::size_t round = 0; round < 20'000; ++round) {
    auto bytes = good;
    if (round < 256 * 8) {
      bytes[round / 256] = static_cast<char>(round % 256);  // every value of every byte of the length
    } else {
      for (auto flips = 1 + random.below(3); flips-- > 0;) {
        bytes[random.below(bytes.size())] =
            static_cast<char>(random.below(2) ? random.below(256) : 32 + random.below(96));
      }
    }
    try {
      const auto file = parse(bytes);
      ++taken;
      std::size_t total = 0;
      for (const auto& t : file.tensors) {
        ASSERT_EQ(elements(t.dims), t.values.size());
        total += t.values.size();
      }
      ASSERT_LE(total * 2, bytes.size());  // the smallest elements that are read
    } catch (const UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(taken, 100);
}

TEST(Safetensors, NamesTheFileAndTheFault) {
  const auto tensor = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"w":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  const std::pair<std::string, std::string> faults[] = {
      {"[]", "not a JSON object"},
      {"{\"a\":", "not a JSON object"},
      {std::string(100'000, '['), "not a JSON object"},
      {R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       "each name once"},
      {R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":)" + std::string(50, '[') +
           std::string(50, ']') + "}}",
       "not a JSON object"},
      {R"({"__metadata__":3})", "__metadata__"},
      {R"({"__metadata__":{"a":3}})", "'a' is not a string"},
      {R"({"w":3})", "tensor 'w': dtype, shape and data_offsets"},
      {tensor("F8_E4M3", "[4]", "[0,4]"),
       "tensor 'w': its dtype \"F8_E4M3\" is not supported; supported are F32, F64, F16, BF16, I8, U8, I16, "
       "U16, "
       "I32, U32, I64, U64, BOOL"},
      {tensor("F64", "[1]", "[0,4]"), "differ in size"},
      {tensor("F16", "[1]", "[0,4]"), "differ in size"},
      {tensor("F32", "1", "[0,4]"), "its shape is not an array"},
      {tensor("F32", "[-1]", "[0,4]"), "an invalid size"},
      {tensor("F32", "[1.5]", "[0,4]"), "an invalid size"},
      {tensor("F32", "[4294967296,4294967296]", "[0,4]"), "is too large"},
      {tensor("F32", "[9223372036854775807]", "[0,4]"), "is too large"},
      {tensor("F32", "[1]", "[0]"), "not two numbers"},
      {tensor("F32", "[1]", "[4,0]"), "outside of the file"},
      {tensor("F32", "[2]", "[0,8]"), "outside of the file"},
      {tensor("F32", "[1]", "[0,18446744073709551615]"), "outside of the file"},
      {tensor("F32", "[2]", "[0,4]"), "differ in size"},
      {tensor("F32", "[0]", "[4,4]"), "gap or overlaps"},
      {R"({})", "4 bytes follow the last tensor"},
      {R"({"v":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       "gap or overlaps"},
  };
  for (const auto& [header, fault] : faults) {
    const auto bytes = file_with(header, "1234");
    EXPECT_THAT([&] { parse(bytes); },
                ThrowsMessage<UserError>(AllOf(HasSubstr("test.safetensors"), HasSubstr(fault))))
        << header.substr(0, 200);
  }
}

TEST(Safetensors, AMissingOrIrregularFileIsNamed) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { read_safetensors(folder / "none"); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("none"), HasSubstr("No such file"))));
  EXPECT_THAT([&] { read_safetensors(folder / "."); },
              ThrowsMessage<UserError>(HasSubstr("not a regular file")));
  std::ofstream(folder / "empty");
  EXPECT_THAT([&] { read_safetensors(folder / "empty"); },
              ThrowsMessage<UserError>(HasSubstr("shorter than 8 bytes")));
}

TEST(Safetensors, APipeIsRefusedWithoutWaitingForAWriter) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT([&] { (void)read_safetensors(folder / "pipe"); },
              ::testing::ThrowsMessage<UserError>(::testing::HasSubstr("not a regular file")));
}

}  // namespace
}  // namespace capstan::checkpoint
