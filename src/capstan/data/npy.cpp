#include "capstan/data/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "capstan/user_error.h"

namespace capstan::data {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

[[noreturn]] void fail(const std::string& place, const std::string& what) {
  throw UserError(fmt::format("{}: {}", place, what));
}

// The header's dictionary, a Python literal such as
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
struct Header {
  std::string_view descr;  // without quotes; empty if it is not a text
  std::optional<bool> fortran;
  std::optional<std::vector<std::int64_t>> dims;
};

// Reads the literal from the front of a text. Every function returns no value if the text is another.
class Literal {
 public:
  explicit Literal(std::string_view text) : text_(text) {}

  std::optional<Header> header() {
    Header out;
    bool descr = false;
    if (!take('{')) return {};
    while (!take('}')) {
      const auto key = quoted();
      if (!key || !take(':')) return {};
      if (*key == "descr") {
        descr = true;
        if (const auto value = quoted())
          out.descr = *value;
        else
          skip_list();
      } else if (*key == "fortran_order") {
        out.fortran = take_word("True")    ? std::optional(true)
                      : take_word("False") ? std::optional(false)
                                           : std::nullopt;
        if (!out.fortran) return {};
      } else if (*key == "shape") {
        out.dims = tuple();
        if (!out.dims) return {};
      } else {
        return {};
      }
      if (!take(',') && !peek('}')) return {};
    }
    if (!descr || !out.fortran || !out.dims) return {};
    return out;
  }

 private:
  void skip_spaces() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }
  bool peek(char c) {
    skip_spaces();
    return text_.starts_with(c);
  }
  bool take(char c) {
    const bool found = peek(c);
    if (found) text_.remove_prefix(1);
    return found;
  }
  bool take_word(std::string_view word) {
    skip_spaces();
    const bool found = text_.starts_with(word);
    if (found) text_.remove_prefix(word.size());
    return found;
  }
  std::optional<std::string_view> quoted() {
    if (!peek('\'') && !peek('"')) return {};
    const auto end = text_.find(text_[0], 1);
    if (end == std::string_view::npos) return {};
    const auto inside = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return inside;
  }
  // The fields of a structured array, which are refused later.
  void skip_list() {
    const auto end = text_.rfind(']');
    if (end != std::string_view::npos) text_.remove_prefix(end + 1);
  }
  std::optional<std::vector<std::int64_t>> tuple() {
    std::vector<std::int64_t> out;
    if (!take('(')) return {};
    while (!take(')')) {
      skip_spaces();
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
      if (error != std::errc{} || value < 0) return {};
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      (void)take_word("L");  // Python 2
      out.push_back(value);
      if (!take(',') && !peek(')')) return {};
    }
    return out;
  }

  std::string_view text_;
};

struct Named {
  std::string_view name;
  DType type;
};
constexpr Named kTypes[] = {
    {"f2", DType::kF16}, {"f4", DType::kF32}, {"f8", DType::kF64}, {"i1", DType::kI8},
    {"u1", DType::kU8},  {"i2", DType::kI16}, {"u2", DType::kU16}, {"i4", DType::kI32},
    {"u4", DType::kU32}, {"i8", DType::kI64}, {"u8", DType::kU64}, {"b1", DType::kBool},
};

DType type_of(std::string_view descr, const std::string& place) {
  const auto order = descr.substr(0, 1), name = descr.substr(std::min<std::size_t>(1, descr.size()));
  const auto found = std::ranges::find(kTypes, name, &Named::name);
  if (found == std::end(kTypes) || std::string_view("<>|=").find(order) == std::string_view::npos) {
    fail(place,
         fmt::format("its dtype {} is not supported; supported are f2, f4, f8, i1, i2, i4, i8, u1, u2, u4, "
                     "u8 and b1",
                     descr.empty() ? "(a structured one)" : fmt::format("'{}'", descr)));
  }
  return found->type;
}

// The bytes of the header's dictionary, and the offset after it.
struct HeaderText {
  std::string_view text;
  std::size_t end = 0;
};

HeaderText header_text(std::span<const std::byte> bytes, const std::string& place) {
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!all.starts_with(kMagic)) fail(place, "is not a .npy file");
  const auto prefix = kMagic.size() + 2;
  const auto version = all.size() > prefix ? static_cast<unsigned char>(all[kMagic.size()]) : 0;
  const std::size_t width = version == 1 ? 2 : 4;
  if (all.size() < prefix + width) fail(place, "ends in the middle of its header");
  if (version < 1 || version > 3)
    fail(place, fmt::format("has version {} of the .npy format; known are 1 to 3", version));
  std::size_t length = 0;
  for (auto i = width; i-- > 0;) length = length << 8 | static_cast<unsigned char>(all[prefix + i]);
  if (length > all.size() - prefix - width) fail(place, "ends in the middle of its header");
  return {all.substr(prefix + width, length), prefix + width + length};
}

void swap_bytes(std::span<std::byte> bytes, std::size_t width) {
  for (std::size_t i = 0; i < bytes.size(); i += width)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + width));
}

// From the order in which the first index changes fastest to the one in which the last does.
std::vector<std::byte> row_major(std::span<const std::byte> in, const std::vector<std::int64_t>& dims,
                                 std::size_t width) {
  std::vector<std::size_t> strides(dims.size()), index(dims.size());
  std::size_t stride = width;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    strides[d] = stride;
    stride *= static_cast<std::size_t>(dims[d]);
  }
  std::vector<std::byte> out(in.size());
  std::size_t from = 0;
  for (std::size_t to = 0; to < out.size(); to += width) {
    std::memcpy(out.data() + to, in.data() + from, width);
    for (auto d = dims.size(); d-- > 0;) {
      from += strides[d];
      if (++index[d] < static_cast<std::size_t>(dims[d])) break;
      from -= index[d] * strides[d];
      index[d] = 0;
    }
  }
  return out;
}

}  // namespace

Array parse_npy(std::vector<std::byte> bytes, const std::string& place) {
  const auto [text, begin] = header_text(bytes, place);
  const auto header = Literal(text).header();
  if (!header) fail(place, "its header is not a dictionary with descr, fortran_order and shape");
  const auto type = type_of(header->descr, place);
  const bool big_endian = header->descr.starts_with('>');
  const auto width = bytes_of(type);
  std::size_t size = width;
  for (const auto d : *header->dims) {
    if (__builtin_mul_overflow(size, static_cast<std::size_t>(d), &size))
      fail(place, "its shape is too large");
  }
  const auto found = bytes.size() - begin;
  if (found != size) {
    fail(place, fmt::format("is {}: its shape needs {} bytes, and it has {}",
                            found < size ? "truncated" : "too long", size, found));
  }
  Array array{place, type, *header->dims, {}};
  const bool fortran = *header->fortran && array.dims.size() > 1;
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(begin));  // header's views end here
  array.bytes = std::move(bytes);
  if (big_endian) swap_bytes(array.bytes, width);
  if (fortran) array.bytes = row_major(array.bytes, array.dims, width);
  return array;
}

}  // namespace capstan::data
