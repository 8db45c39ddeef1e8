#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "support/temporary_folder.h"

// Files of arrays, written by hand.
namespace capstan::testing {

template <class T>
std::string bytes_of_values(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
void write_npy(const std::filesystem::path& path, const std::string& descr,
               const std::vector<std::int64_t>& dims, const std::vector<T>& values) {
  const auto header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}", descr,
                                  fmt::join(dims, ", "));
  write_file(path, std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header +
                       bytes_of_values(values));
}

struct WrittenTensor {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> dims;
  std::string bytes;
};

inline void write_tensors(const std::filesystem::path& path, const std::vector<WrittenTensor>& tensors) {
  std::string header, body;
  for (const auto& t : tensors) {
    header += fmt::format("{}\"{}\":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          header.empty() ? "{" : ",", t.name, t.dtype, fmt::join(t.dims, ","), body.size(),
                          body.size() + t.bytes.size());
    body += t.bytes;
  }
  header += tensors.empty() ? "{}" : "}";
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  write_file(path, length + header + body);
}

}  // namespace capstan::testing
