#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "capstan/base/ids.h"

// The one encoding of every message. A message type lists its fields once, in a static function
//   template <class V, class M> static void fields(V&& visit, M&& m) { visit(m.a); visit(m.b); }
// and Writer, Reader and tests all walk that list. Numbers are little-endian; strings and lists carry a
// 32-bit count. Capstan runs on little-endian machines only, so numbers are copied unchanged.
namespace capstan::wire {

using Bytes = std::span<const std::byte>;

inline constexpr std::size_t kMaxStringBytes = 65536;

template <class T>
concept Number = (std::integral<T> && !std::same_as<T, bool>) || std::floating_point<T>;

template <class T>
concept HasFields = requires(T& t) {
  std::remove_cv_t<T>::fields([](auto&&) {}, t);
};

// Appends to a buffer that the caller may reuse.
class Writer {
 public:
  explicit Writer(std::vector<std::byte>& out) : out_(out) {}

  template <class T>
  void operator()(const T& value) {
    put(value);
  }

 private:
  template <Number T>
  void put(const T& value) {
    append(&value, sizeof value);
  }
  void put(bool value) { put(static_cast<std::uint8_t>(value)); }
  template <class E>
  requires std::is_enum_v<E>
  void put(const E& value) { put(static_cast<std::underlying_type_t<E>>(value)); }
  template <class Tag, class Int>
  void put(const Id<Tag, Int>& id) {
    put(id.value);
  }
  template <std::size_t N>
  void put(const std::array<std::byte, N>& bytes) {
    append(bytes.data(), N);
  }
  void put(const std::string& text) {
    const auto size = std::min(text.size(), kMaxStringBytes);
    put(static_cast<std::uint32_t>(size));
    append(text.data(), size);
  }
  template <class T>
  void put(const std::vector<T>& list) {
    put(static_cast<std::uint32_t>(list.size()));
    for (const auto& item : list) put(item);
  }
  template <class T>
  void put(const std::optional<T>& maybe) {
    put(maybe.has_value());
    if (maybe) put(*maybe);
  }
  template <class T>
  requires HasFields<const T>
  void put(const T& message) { T::fields(*this, message); }

  void append(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), bytes, bytes + size);
  }

  std::vector<std::byte>& out_;
};

// Reads untrusted bytes: every length is checked before it is used, and nothing is allocated that the present
// bytes could not fill. After an error all further reads do nothing and ok() is false.
class Reader {
 public:
  explicit Reader(Bytes in) : in_(in) {}

  bool ok() const { return ok_; }
  bool at_end() const { return in_.empty(); }

  template <class T>
  void operator()(T& value) {
    take(value);
  }

 private:
  template <Number T>
  void take(T& value) {
    copy(&value, sizeof value);
  }
  void take(bool& value) {
    std::uint8_t byte = 0;
    take(byte);
    if (byte > 1) ok_ = false;
    value = byte == 1;
  }
  template <class E>
  requires std::is_enum_v<E>
  void take(E& value) {
    std::underlying_type_t<E> raw{};
    take(raw);
    if (raw > static_cast<std::underlying_type_t<E>>(E::kLast)) ok_ = false;
    if (ok_) value = static_cast<E>(raw);
  }
  template <class Tag, class Int>
  void take(Id<Tag, Int>& id) {
    take(id.value);
  }
  template <std::size_t N>
  void take(std::array<std::byte, N>& bytes) {
    copy(bytes.data(), N);
  }
  void take(std::string& text) {
    const auto size = count(1, kMaxStringBytes);
    text.resize(size);
    copy(text.data(), size);
  }
  template <class T>
  void take(std::vector<T>& list) {
    list.clear();
    const auto n = count(1, in_.size());
    for (std::size_t i = 0; i < n && ok_; ++i) take(list.emplace_back());
  }
  template <class T>
  void take(std::optional<T>& maybe) {
    bool present = false;
    take(present);
    maybe.reset();
    if (present && ok_) take(maybe.emplace());
  }
  template <HasFields T>
  void take(T& message) {
    T::fields(*this, message);
  }

  // A count of items of at least `item_bytes` each; 0 and an error if the remaining bytes cannot hold them.
  std::size_t count(std::size_t item_bytes, std::size_t limit) {
    std::uint32_t n = 0;
    take(n);
    if (n > limit || n * item_bytes > in_.size()) ok_ = false;
    return ok_ ? n : 0;
  }
  void copy(void* out, std::size_t size) {
    if (!ok_ || size > in_.size()) {
      ok_ = false;
      return;
    }
    if (size > 0) std::memcpy(out, in_.data(), size);
    in_ = in_.subspan(size);
  }

  Bytes in_;
  bool ok_ = true;
};

}  // namespace capstan::wire
