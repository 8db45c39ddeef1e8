// docs/wire_format.md lists every message under its number.

#include <cstdio>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "support/random_message.h"

namespace capstan::wire {
namespace {

std::map<std::size_t, std::string> documented_messages() {
  std::ifstream document(CAPSTAN_SOURCE_DIR "/docs/wire_format.md");
  EXPECT_TRUE(document) << "docs/wire_format.md is missing";
  std::map<std::size_t, std::string> found;
  for (std::string line; std::getline(document, line);) {
    std::size_t number = 0;
    char name[32];
    if (std::sscanf(line.c_str(), "| %zu | `%31[A-Za-z]` |", &number, name) != 2) continue;
    EXPECT_TRUE(found.emplace(number, name).second) << "number " << number << " twice";
  }
  return found;
}

TEST(WireDocument, ListsEveryMessageUnderItsNumber) {
  std::map<std::size_t, std::string> messages;
  for (std::size_t type = 0; type < testing::kMessageTypes; ++type) {
    messages[type] = name_of(testing::random_message(type, 0));
  }
  EXPECT_EQ(documented_messages(), messages);
}

TEST(WireDocument, NamesTheProtocolsVersion) {
  std::ifstream document(CAPSTAN_SOURCE_DIR "/docs/wire_format.md");
  const std::string text(std::istreambuf_iterator<char>(document), {});
  EXPECT_NE(text.find("protocol " + std::to_string(kProtocol)), std::string::npos);
}

}  // namespace
}  // namespace capstan::wire
