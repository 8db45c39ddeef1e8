// The fuzzer's seeds, replayed in every build.

#include <filesystem>
#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include "fuzz/decode_check.h"

namespace capstan {
namespace {

TEST(DecodeCorpus, SeedsDecodeOrAreRejectedAsTheirNamesSay) {
  std::set<std::string> types;
  for (const auto& entry : std::filesystem::directory_iterator(CAPSTAN_SOURCE_DIR "/tests/fuzz/corpus")) {
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const auto name = entry.path().filename().string();
    const auto frame = std::as_bytes(std::span(text));
    EXPECT_EQ(testing::check_decode(frame), !name.starts_with("bad-")) << name;
    const auto message = wire::decode(frame);
    if (message) types.insert(wire::name_of(*message));
  }
  EXPECT_EQ(types.size(), std::variant_size_v<wire::Message>) << "run make_fuzz_corpus for the new message";
}

}  // namespace
}  // namespace capstan
