#include "capstan/workloads/text.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "capstan/data/gzip.h"
#include "capstan/user_error.h"

// The assembler includes the file: no generated code, and no file to find at run time.
asm(R"(
  .pushsection .rodata
  .balign 16
capstan_text_begin:
  .incbin "as_you_like_it.txt.gz"
capstan_text_end:
  .popsection
  .global capstan_text_begin
  .global capstan_text_end
)");

extern "C" {
[[gnu::visibility("hidden")]] extern const std::uint8_t capstan_text_begin[];
[[gnu::visibility("hidden")]] extern const std::uint8_t capstan_text_end[];
}

namespace capstan::workloads {
namespace {

constexpr std::string_view kBuiltIn = "text", kFile = "text:";
constexpr std::size_t kTestShare = 10;  // a tenth

std::string read(const std::string& dataset) {
  if (dataset == kBuiltIn) return data::unpack_built_in({capstan_text_begin, capstan_text_end});
  if (!dataset.starts_with(kFile) || dataset.size() == kFile.size())
    throw UserError(fmt::format(
        "--dataset {}: a language model takes text (built in) or text:FILE, such as text:novel.txt",
        dataset));
  const auto file = dataset.substr(kFile.size());
  std::error_code error;
  if (std::filesystem::exists(file, error) && !std::filesystem::is_regular_file(file, error))
    throw UserError(fmt::format("--dataset {}: {} is not a regular file", dataset, file));
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open() || in.bad())
    throw UserError(fmt::format("--dataset {}: {} cannot be read: {}", dataset, file, std::strerror(errno)));
  return text;
}

}  // namespace

Text load_text(const std::string& dataset, std::size_t least) {
  const auto bytes = read(dataset);
  const auto test = bytes.size() / kTestShare;
  if (test < least)
    throw UserError(
        fmt::format("--dataset {}: has {} bytes, of which the last tenth is for testing; needs at least {}",
                    dataset, bytes.size(), least * kTestShare));
  std::array<bool, 256> used{};
  for (const auto c : bytes) used[static_cast<std::uint8_t>(c)] = true;
  std::array<std::uint8_t, 256> index{};
  Text text;
  for (std::size_t c = 0; c < used.size(); ++c) {
    if (!used[c]) continue;
    index[c] = static_cast<std::uint8_t>(text.characters.size());
    text.characters.push_back(static_cast<std::uint8_t>(c));
  }
  for (std::size_t i = 0; i < bytes.size(); ++i)
    (i < bytes.size() - test ? text.train : text.test).push_back(index[static_cast<std::uint8_t>(bytes[i])]);
  return text;
}

}  // namespace capstan::workloads
