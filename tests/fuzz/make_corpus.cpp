// Writes the fuzzer's seeds: make_fuzz_corpus FOLDER. Run it when a message is added or changed.

#include <fstream>

#include <fmt/format.h>

#include "support/random_message.h"

namespace capstan {
namespace {

void write(const std::string& file, wire::Bytes frame) {
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(frame.data()), static_cast<std::streamsize>(frame.size()));
}

// A random message of the type with all its fields: the longest of several.
std::vector<std::byte> fullest(std::size_t type) {
  std::vector<std::byte> best;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    auto frame = wire::encode(testing::random_message(type, seed));
    if (frame.size() > best.size()) best = std::move(frame);
  }
  return best;
}

void write_all(const std::string& folder) {
  for (std::size_t type = 0; type < testing::kMessageTypes; ++type) {
    write(fmt::format("{}/{:02}-{}", folder, type, wire::name_of(testing::random_message(type, 0))),
          fullest(type));
  }
  write(folder + "/bad-empty", {});
  write(folder + "/bad-type", wire::Bytes(std::array{std::byte{0xff}, std::byte{0xff}}));
  auto frame = wire::encode(wire::StopRequest{"x"});
  frame[5] = std::byte{0xff};
  write(folder + "/bad-count", frame);
  frame = wire::encode(wire::Share{});
  frame.back() = std::byte{9};
  write(folder + "/bad-enumeration", frame);
  frame = wire::encode(wire::Weights{});
  frame.back() = std::byte{2};
  write(folder + "/bad-bool", frame);
  frame = wire::encode(wire::Leave{});
  frame.push_back(std::byte{0});
  write(folder + "/bad-surplus", frame);
}

}  // namespace
}  // namespace capstan

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  capstan::write_all(argv[1]);
  return 0;
}
