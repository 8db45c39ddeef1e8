#include "capstan/checkpoint/torch_file.h"

#include <cstdio>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "capstan/user_error.h"

#include "checkpoint/odd_tensors.h"
#include "support/temporary_folder.h"
#include "zip_reader.h"

namespace capstan::checkpoint {
namespace {

using capstan::testing::contents;
using capstan::testing::TemporaryFolder;
using capstan::testing::zip_of;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(TorchFile, HasTheEntriesOfTorchSave) {
  const TemporaryFolder folder;
  const std::vector<float> w = {1, -2.5f}, n = {300};
  write_torch_file(folder / "x.pt", std::vector<TensorView>{{"w", {1, 2}, w}, {"n", {}, n, true}});
  const auto bytes = contents(folder / "x.pt");
  EXPECT_EQ(folder.files(), 1);

  const auto entries = zip_of(bytes).entries();
  std::vector<std::string> names;
  for (const auto& e : entries) {
    names.push_back(e.name);
    EXPECT_EQ(e.data_at % 64, 0u) << e.name;
  }
  EXPECT_THAT(names, ::testing::ElementsAre("archive/data.pkl", "archive/byteorder", "archive/data/0",
                                            "archive/data/1", "archive/version"));
  const auto text = [&](std::size_t i) { return bytes.substr(entries[i].data_at, entries[i].bytes); };
  EXPECT_EQ(text(1), "little");
  EXPECT_EQ(text(2), std::string("\0\0\x80?\0\0\x20\xc0", 8));
  EXPECT_EQ(text(3), std::string("\x2c\x01\0\0\0\0\0\0", 8));
  EXPECT_EQ(text(4), "3\n");
  // By Python's documentation of pickle's opcodes.
  const std::string dict = "ccollections\nOrderedDict\n)R";
  const auto storage = [](const std::string& kind, char key, char elements) {
    return std::string("((X\x07\0\0\0storage", 14) + "ctorch\n" + kind + "\nX" + std::string("\1\0\0\0", 4) +
           key + std::string("X\3\0\0\0cpu", 8) + "K" + elements + "tQ" + std::string("K\0", 2);
  };
  EXPECT_EQ(text(0), "\x80\x02" + dict + "(" +                                                     //
                         std::string("X\1\0\0\0w", 6) + "ctorch._utils\n_rebuild_tensor_v2\n" +    //
                         storage("FloatStorage", '0', 2) + "(K\1K\2t(K\2K\1t\x89" + dict + "tR" +  //
                         std::string("X\1\0\0\0n", 6) + "ctorch._utils\n_rebuild_tensor_v2\n" +    //
                         storage("LongStorage", '1', 1) + "(t(t\x89" + dict + "tRu.");
}

TEST(TorchFile, NamesAFileThatCannotBeWritten) {
  EXPECT_THAT([] { write_torch_file("/no/such/folder/x.pt", {}); },
              ThrowsMessage<UserError>(HasSubstr("/no/such/folder/x.pt")));
}

// The output of a command; empty if it fails.
std::string output_of(const std::string& command) {
  std::string out;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) return {};
  char bytes[4096];
  while (const auto n = std::fread(bytes, 1, sizeof bytes, pipe)) out.append(bytes, n);
  return ::pclose(pipe) == 0 ? out : "";
}

// A Python interpreter with torch.
std::string python() {
  for (const char* name : {"python3", "/usr/bin/python3"})
    if (!output_of(std::string(name) + " -c 'import torch; print(1)' 2>/dev/null").empty()) return name;
  return "";
}

TEST(TorchFile, IsReadByPython) {
  const auto program = python();
  if (program.empty()) GTEST_SKIP() << "no python3 with torch";
  const TemporaryFolder folder;
  const auto read = [&] {
    const auto line = output_of(program + " " CAPSTAN_SOURCE_DIR "/tests/checkpoint/print_state_dict.py " +
                                (folder / "x.pt").string());
    return nlohmann::json::parse(line, nullptr, false);
  };
  const capstan::testing::OddTensors odd;
  write_torch_file(folder / "x.pt", odd.tensors);
  const auto rows = read();
  ASSERT_TRUE(rows.is_array());
  ASSERT_EQ(rows.size(), odd.tensors.size());
  for (std::size_t i = 0; i < odd.tensors.size(); ++i) {
    const auto& t = odd.tensors[i];
    EXPECT_EQ(rows[i][0], odd.names[i]);
    EXPECT_EQ(rows[i][1], t.as_int64 ? "torch.int64" : "torch.float32") << t.name;
    EXPECT_EQ(rows[i][2], t.dims) << t.name;
    EXPECT_EQ(rows[i][3].get<std::vector<float>>(), std::vector<float>(t.values.begin(), t.values.end()))
        << t.name;
  }
  write_torch_file(folder / "x.pt", {});
  EXPECT_EQ(read(), nlohmann::json::array());
}

}  // namespace
}  // namespace capstan::checkpoint
