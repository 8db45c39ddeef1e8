#include "capstan/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <xxhash.h>

#include "capstan/base/random.h"
#include "capstan/user_error.h"

namespace capstan::checkpoint {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Json = nlohmann::ordered_json;

Manifest example() {
  Manifest m;
  m.version = {500};
  m.parameters = {{"conv.weight", {4, 3, 2, 2}}, {"scale", {}}};
  m.buffers = {{"bn.running_mean", {4}}};
  m.strategy = "batch:2";
  m.optimizer = "sgd";
  m.state = {"momentum_buffer"};
  m.schedule = "cosine";
  m.learning_rate = 0.1;
  m.samples = 1438;
  m.seed = 0xffff'ffff'ffff'fff1;
  m.trained_samples = 32'000;
  m.segments = {{32, {10, 9}}, {16, {7}}};
  m.marks = {{{1}, {0x0123'4567'89ab'cdef}, {77}}};
  m.pieces = {{"weights.safetensors", "conv.weight[0:40]", "weights", "conv.weight", {0, 40}, 0xff},
              {"weights.safetensors", "conv.weight[40:48]", "weights", "conv.weight", {40, 48}, 3},
              {"weights.safetensors", "scale", "weights", "scale", {0, 1}, 1},
              {"weights.safetensors", "bn.running_mean", "statistics", "bn.running_mean", {0, 4}, 2},
              {"o.safetensors", "b/conv.weight", "momentum_buffer", "conv.weight", {0, 48}, 4},
              {"o.safetensors", "b/scale", "momentum_buffer", "scale", {0, 1}, 5}};
  return m;
}

// The same, written by hand.
Json example_json() {
  return Json::parse(R"({
    "format": "capstan-checkpoint-1", "version": 500, "strategy": "batch:2", "optimizer": "sgd",
    "optimizer_state": ["momentum_buffer"], "schedule": "cosine", "learning_rate": 0.1,
    "data": {"samples": 1438, "seed": 18446744073709551601, "trained_samples": 32000,
             "legs": [{"batch": 32, "steps": [10, 9]}, {"batch": 16, "steps": [7]}]},
    "marks": [{"worker": 1, "incarnation": "0123456789abcdef", "sequence": 77}],
    "parameters": [{"name": "conv.weight", "shape": [4, 3, 2, 2]}, {"name": "scale", "shape": []}],
    "statistics": [{"name": "bn.running_mean", "shape": [4]}],
    "tensors": [
      {"file": "weights.safetensors", "key": "conv.weight[0:40]", "array": "weights",
       "tensor": "conv.weight", "elements": [0, 40], "xxh3": "00000000000000ff"},
      {"file": "weights.safetensors", "key": "conv.weight[40:48]", "array": "weights",
       "tensor": "conv.weight", "elements": [40, 48], "xxh3": "0000000000000003"},
      {"file": "weights.safetensors", "key": "scale", "array": "weights",
       "tensor": "scale", "elements": [0, 1], "xxh3": "0000000000000001"},
      {"file": "weights.safetensors", "key": "bn.running_mean", "array": "statistics",
       "tensor": "bn.running_mean", "elements": [0, 4], "xxh3": "0000000000000002"},
      {"file": "o.safetensors", "key": "b/conv.weight", "array": "momentum_buffer",
       "tensor": "conv.weight", "elements": [0, 48], "xxh3": "0000000000000004"},
      {"file": "o.safetensors", "key": "b/scale", "array": "momentum_buffer",
       "tensor": "scale", "elements": [0, 1], "xxh3": "0000000000000005"}]})");
}

// With a matching checksum, as an attacker would write it.
std::string sealed(Json json) {
  const auto text = json.dump();
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  json["checksum"] = digits;
  return json.dump(2);
}

TEST(Manifest, IsPlainJson) {
  auto json = Json::parse(to_json(example()));
  EXPECT_TRUE(json.contains("checksum"));
  json.erase("checksum");
  EXPECT_EQ(nlohmann::json(json), nlohmann::json(example_json()));
}

TEST(Manifest, ReadsARecordedFileAndItsOwn) {
  EXPECT_EQ(parse_manifest(sealed(example_json()), "m"), example());
  EXPECT_EQ(parse_manifest(to_json(example()), "m"), example());
  EXPECT_EQ(parse_manifest(to_json({}), "m"), Manifest());
}

TEST(Manifest, EveryTruncationIsRefused) {
  const auto good = to_json(example());
  for (std::size_t cut = 0; cut + 1 < good.size();
       ++cut)  // without the last line break the file is still valid
    EXPECT_THROW(parse_manifest(good.substr(0, cut), "m"), UserError) << cut;
  EXPECT_THROW(parse_manifest(good + "x", "m"), UserError);
}

TEST(Manifest, EveryChangedByteIsRefusedOrChangesNothing) {
  const auto good = to_json(example());
  Random random(1);
  std::size_t refused = 0;
  const auto check = [&](const std::string& bytes) {
    try {
      ASSERT_EQ(parse_manifest(bytes, "m"), example()) << bytes;
    } catch (const UserError&) {
      ++refused;
    }
  };
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      auto bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << bit));
      check(bytes);
    }
    auto bytes = good;
    bytes[at] = static_cast<char>(random.below(256));
    check(bytes);
  }
  EXPECT_GT(refused, good.size() * 4);
}

TEST(Manifest, NamesTheFileAndTheFault) {
  const auto with = [](const char* place, Json value) {
    auto json = example_json();
    json[Json::json_pointer(place)] = std::move(value);
    return sealed(json);
  };
  const auto without = [](const char* key) {
    auto json = example_json();
    json.erase(key);
    return sealed(json);
  };
  const std::pair<std::string, std::string> faults[] = {
      {"", "truncated or damaged"},
      {"[]", "not the manifest of a Capstan checkpoint"},
      {"3", "not the manifest of a Capstan checkpoint"},
      {"{}", "not the manifest of a Capstan checkpoint"},
      {with("/format", "capstan-checkpoint-9"), "not the manifest of a Capstan checkpoint"},
      {example_json().dump(), "checksum"},
      {std::string(100'000, '['), "truncated or damaged"},
      {"{\"format\":\"capstan-checkpoint-1\",\"x\":" + std::string(200'000, '[') + std::string(200'000, ']') +
           "}",
       "truncated or damaged"},
      {without("tensors"), "truncated or damaged"},
      {without("data"), "truncated or damaged"},
      {with("/version", "five"), "\"five\" is not a whole number"},
      {with("/version", -1), "-1 is not a whole number"},
      {with("/version", 1.5), "1.5 is not a whole number"},
      {with("/version", true), "true is not a whole number"},
      {with("/marks/0/worker", 4'294'967'296), "is not the rank of a worker"},
      {with("/tensors/0/file", "../weights.safetensors"), "is not the name of a file"},
      {with("/tensors/0/file", "/etc/passwd"), "is not the name of a file"},
      {with("/tensors/0/file", "a/b"), "is not the name of a file"},
      {with("/tensors/0/file", ".."), "is not the name of a file"},
      {with("/tensors/0/file", ""), "is not the name of a file"},
      {with("/tensors/0/elements", {0, 49}), "a piece is outside of tensor conv.weight"},
      {with("/tensors/0/elements", {0, 39}), "every element of weights of tensor conv.weight"},
      {with("/tensors/0/elements", {0, 41}), "every element of weights of tensor conv.weight"},
      {with("/tensors/1/elements", {40, 47}), "every element of weights of tensor conv.weight"},
      {with("/tensors/1/array", "other"), "every element of weights of tensor conv.weight"},
      {with("/tensors/3/elements", {0, 3}), "every element of statistics of tensor bn.running_mean"},
      {with("/tensors/5/array", "other"), "every element of momentum_buffer of tensor scale"},
      {with("/optimizer_state", {"momentum_buffer", "exp_avg"}), "every element of exp_avg of tensor conv"},
      {with("/tensors/0/elements", {41, 40}), "a piece is outside of tensor conv.weight"},
      {with("/tensors/0/elements", {-1, 40}), "-1 is not a whole number"},
      {with("/tensors/0/elements", Json::array()), "truncated or damaged"},
      {with("/tensors/0/tensor", "conv.bias"), "is of tensor conv.bias"},
      {with("/tensors/0/array", "statistics"), "is of tensor conv.weight"},
      {with("/tensors/0/xxh3", "ff"), "'ff' is not 16 hexadecimal digits"},
      {with("/tensors/0/xxh3", "000000000000000g"), "is not 16 hexadecimal digits"},
      {with("/marks/0/incarnation", "-123456789abcdef"), "is not 16 hexadecimal digits"},
      {with("/parameters/0/shape", {1ull << 40, 1ull << 40}), "is too large"},
      {with("/parameters/0/shape", {1ull << 63}), "is too large"},
      {with("/parameters/0/shape", {-2}), "-2 is not a whole number"},
      {with("/parameters/0/shape", {2.5}), "2.5 is not a whole number"},
      {with("/parameters/0/shape", {0, 1ull << 63}), "is too large"},
      {with("/statistics/0/shape", {1ull << 60}), "is too large"},
      {with("/data/legs/0/batch", 0), "a data segment has no"},
      {with("/data/legs/0/steps", Json::array()), "a data segment has no"},
      {with("/data/legs/0/steps", {3, 1ull << 62}), "a data segment is too large"},
      {with("/data/legs/0/batch", 1ull << 63), "a data segment is too large"},
  };
  for (const auto& [text, fault] : faults) {
    EXPECT_THAT([&] { parse_manifest(text, "folder/m.json"); },
                ThrowsMessage<UserError>(AllOf(HasSubstr("folder/m.json"), HasSubstr(fault))))
        << text.substr(0, 3000);
  }
}

// ---- groups of tensors ----

TEST(ManifestPhases, AreWrittenAndReadIfThereAreAny) {
  auto m = example();
  m.phases = {{"discriminator", {"d.*"}}, {"generator", {"g.*", "embedding"}}};
  const auto json = Json::parse(to_json(m));
  EXPECT_EQ(json["phases"].dump(), R"([{"phase":"discriminator","tensors":["d.*"]},)"
                                   R"({"phase":"generator","tensors":["g.*","embedding"]}])");
  EXPECT_EQ(parse_manifest(to_json(m), "m"), m);
  EXPECT_FALSE(Json::parse(to_json(example())).contains("phases"));
}

Manifest with_groups() {
  auto m = example();
  m.strategy = "default=sync,conv*=async";
  m.groups = {{"default", {500}}, {"conv*", {1500}}};
  m.marks = {{{1}, {42}, {77}}, {{1}, {42}, {78}, 1}, {{2}, {43}, {9}, 1}};
  return m;
}

TEST(ManifestOfGroups, RoundTrip) {
  const auto m = with_groups();
  EXPECT_EQ(parse_manifest(to_json(m), "m"), m);
  const auto json = Json::parse(to_json(m));
  EXPECT_EQ(json["groups"].dump(), R"([{"group":"default","version":500},{"group":"conv*","version":1500}])");
  EXPECT_FALSE(json["marks"][0].contains("group")) << "0 is not written";
  EXPECT_EQ(json["marks"][1].value("group", 0), 1);
  EXPECT_FALSE(Json::parse(to_json(example())).contains("groups"));
}

TEST(ManifestOfGroups, ResumesTheSameGroups) {
  const auto m = with_groups();
  EXPECT_EQ(m.versions_of({"default", "conv*"}), (std::vector<Version>{{500}, {1500}}));
  EXPECT_EQ(m.marks_of({"default", "conv*"}), m.marks);
}

TEST(ManifestOfGroups, ResumesOtherGroupsWithTheJobsVersion) {
  const auto m = with_groups();
  const std::vector<std::string> others[] = {{"default", "fc*"}, {"default"}, {"default", "conv*", "fc*"}};
  for (const auto& names : others) {
    EXPECT_EQ(m.versions_of(names), std::vector<Version>(names.size(), Version{500}));
    std::vector<HighWaterMark> marks;
    for (std::uint32_t g = 0; g < names.size(); ++g) marks.push_back({{1}, {42}, {77}, g});
    EXPECT_EQ(m.marks_of(names), marks);
  }
  const auto old = example();
  EXPECT_EQ(old.versions_of({"default"}), (std::vector<Version>{{500}}));
  EXPECT_EQ(old.marks_of({"default"}), old.marks);
  EXPECT_EQ(old.versions_of({"default", "x"}), (std::vector<Version>{{500}, {500}}));
}

TEST(ManifestOfGroups, RejectsInconsistentGroups) {
  const auto parsed = [](const Manifest& m) { return [m] { (void)parse_manifest(to_json(m), "m"); }; };
  auto wrong = with_groups();
  wrong.groups[0].version = {499};
  EXPECT_THAT(parsed(wrong), ThrowsMessage<UserError>(HasSubstr("the version of its first group")));
  wrong = with_groups();
  wrong.marks[2].group = 2;
  EXPECT_THAT(parsed(wrong), ThrowsMessage<UserError>(HasSubstr("a mark is of group 2")));
  wrong = example();
  wrong.marks[0].group = 1;
  EXPECT_THAT(parsed(wrong), ThrowsMessage<UserError>(HasSubstr("a mark is of group 1")));
}

}  // namespace
}  // namespace capstan::checkpoint
