#include "capstan/data/array_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/base/random.h"
#include "capstan/data/npy.h"
#include "capstan/user_error.h"

#include "support/temporary_folder.h"

namespace capstan::data {
namespace {

namespace fs = std::filesystem;
using capstan::testing::contents;
using capstan::testing::TemporaryFolder;
using capstan::testing::write_file;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// Written by NumPy: tests/reference/make_arrays.py.
const fs::path kReference = fs::path(CAPSTAN_SOURCE_DIR) / "tests/reference/arrays";

// The rule of make_arrays.py.
std::vector<float> expected(std::size_t count, char kind) {
  std::vector<float> out;
  for (std::size_t k = 0; k < count; ++k) {
    const auto value = static_cast<float>(k * 7 % 23) - (kind == 'u' ? 0.0f : 5.0f);
    out.push_back(kind == 'f' ? value / 4 : value);
  }
  return out;
}

std::vector<float> values(const Array& array) {
  std::vector<float> out(array.bytes.size() / bytes_of(array.type));
  to_floats(array.type, array.bytes, out);
  return out;
}

Array only(const fs::path& path) {
  const auto file = open_array_file(path);
  EXPECT_EQ(file->names().size(), 1u);
  return file->read(0);
}

TEST(ArrayFile, ReadsWhatNumPyWritesStoredAndDeflated) {
  for (const auto* name : {"stored.npz", "deflated.npz"}) {
    const auto file = open_array_file(kReference / name);
    ASSERT_EQ(file->names().size(), 18u);
    for (std::size_t i = 0; i < 18; ++i) {
      const auto& array = file->names()[i];
      const auto read = file->read(i);
      if (array == "bool") {
        EXPECT_EQ(values(read), (std::vector<float>{1, 0, 0, 1, 1, 0}));
      } else if (array == "fortran") {
        EXPECT_EQ(read.dims, (std::vector<std::int64_t>{2, 3, 4}));
        EXPECT_EQ(values(read), expected(24, 'i'));
      } else {
        EXPECT_EQ(read.dims, (std::vector<std::int64_t>{2, 3}));
        EXPECT_EQ(values(read), expected(6, array[0])) << array;
      }
    }
  }
}

TEST(ArrayFile, ReadsEveryVersionOfTheFormatAndBothOrders) {
  for (const auto* name : {"version1.npy", "version2.npy", "version3.npy"})
    EXPECT_EQ(values(only(kReference / name)), expected(6, 'f')) << name;
  const auto fortran = only(kReference / "fortran.npy");
  EXPECT_EQ(fortran.dims, (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_EQ(fortran.type, DType::kF64);
  EXPECT_EQ(values(fortran), expected(24, 'f'));
  EXPECT_TRUE(only(kReference / "scalar.npy").dims.empty());
}

TEST(ArrayFile, RefusesOtherTypesByName) {
  const auto refused = [](const char* file, const std::string& type) {
    EXPECT_THAT([&] { only(kReference / file); },
                ThrowsMessage<UserError>(
                    AllOf(HasSubstr(file), HasSubstr("its dtype " + type + " is not supported"))));
  };
  refused("complex.npy", "'<c8'");
  refused("structured.npy", "(a structured one)");
  refused("text.npy", "'<U2'");
  EXPECT_THAT([] { open_array_file("x.csv"); },
              ThrowsMessage<UserError>("x.csv: a file of arrays ends in .npy, .npz or .safetensors"));
  EXPECT_THAT([] { open_array_file("/no/such.npz"); },
              ThrowsMessage<UserError>("cannot read /no/such.npz: No such file or directory"));
}

Array parse(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return parse_npy({bytes.begin(), bytes.end()}, "a.npy");
}

std::string npy(const std::string& header, const std::string& body) {
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header + body;
}

TEST(Npy, DamageIsAnErrorOfOneLine) {
  const auto refused = [](const std::string& file, const std::string& fault) {
    EXPECT_THAT([&] { parse(file); }, ThrowsMessage<UserError>("a.npy: " + fault));
  };
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  EXPECT_EQ(parse(npy(header, "12345678")).dims, std::vector<std::int64_t>{2});
  refused("", "is not a .npy file");
  refused("\x93NUMPX", "is not a .npy file");
  refused("\x93NUMPY\x01", "ends in the middle of its header");
  refused(npy(header, "").substr(0, 30), "ends in the middle of its header");
  refused(std::string("\x93NUMPY\x04\x00\x01\x00\x00\x00{", 13),
          "has version 4 of the .npy format; known are 1 to 3");
  refused(npy(header, "1234567"), "is truncated: its shape needs 8 bytes, and it has 7");
  refused(npy(header, "123456789"), "is too long: its shape needs 8 bytes, and it has 9");
  refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 4), }", ""),
          "its shape is too large");
  const auto* const bad = "its header is not a dictionary with descr, fortran_order and shape";
  for (const auto* text :
       {"", "{", "{}", "{'descr': '<f4', 'shape': (2,)}", "{'descr': '<f4', 'fortran_order': 0, 'shape': ()}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2", "{'x': 3}", "{'descr"})
    refused(npy(text, "12345678"), bad);
}

// A damaged file is refused, or has as many bytes as its shape.
TEST(ArrayFile, NoDamageReadsOutsideOfTheFile) {
  const TemporaryFolder folder;
  Random random(3);
  for (const auto* name : {"stored.npz", "deflated.npz", "fortran.npy"}) {
    const auto good = contents(kReference / name);
    const auto path = folder / name;
    for (int round = 0; round < 600; ++round) {
      auto bytes = good;
      if (round % 3 == 0) bytes.resize(random.below(bytes.size()));
      // The directory of an archive is at its end.
      for (int flips = 0; flips < 3 && !bytes.empty(); ++flips) {
        const auto near_end = std::min<std::size_t>(bytes.size(), 400);
        bytes[round % 2 ? random.below(bytes.size()) : bytes.size() - 1 - random.below(near_end)] =
            static_cast<char>(random.below(256));
      }
      write_file(path, bytes);
      try {
        const auto file = open_array_file(path);
        for (std::size_t i = 0; i < file->names().size(); ++i) {
          const auto array = file->read(i);
          auto size = bytes_of(array.type);
          for (const auto d : array.dims) size *= static_cast<std::size_t>(d);
          ASSERT_EQ(array.bytes.size(), size);
        }
      } catch (const UserError& error) {
        ASSERT_THAT(error.what(), AllOf(HasSubstr(name), ::testing::Not(HasSubstr("\n"))));
      }
    }
  }
}

}  // namespace
}  // namespace capstan::data
