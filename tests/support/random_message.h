#pragma once

#include <bit>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "capstan/wire/messages.h"

// Messages of every type with random fields, and fields as plain text: both walk a type's list of fields,
// so a new message is covered as soon as it exists.
namespace capstan::testing {

class RandomFields {
 public:
  explicit RandomFields(std::uint64_t seed) : engine_(seed) {}

  template <class T>
  void operator()(T& value) {
    fill(value);
  }

 private:
  template <std::integral T>
  void fill(T& value) {
    value = static_cast<T>(engine_());
  }
  void fill(bool& value) { value = engine_() % 2 == 1; }
  // Any bits, NaNs included.
  void fill(float& value) { value = std::bit_cast<float>(static_cast<std::uint32_t>(engine_())); }
  void fill(double& value) { value = std::bit_cast<double>(engine_()); }
  template <class E>
  requires std::is_enum_v<E>
  void fill(E& value) { value = static_cast<E>(engine_() % (static_cast<std::uint64_t>(E::kLast) + 1)); }
  template <class Tag, class Int>
  void fill(Id<Tag, Int>& id) {
    fill(id.value);
  }
  template <std::size_t N>
  void fill(std::array<std::byte, N>& bytes) {
    for (auto& b : bytes) b = static_cast<std::byte>(engine_());
  }
  void fill(std::string& text) {
    text.resize(engine_() % 20);
    for (auto& c : text) c = static_cast<char>(engine_());
  }
  template <class T>
  void fill(std::vector<T>& list) {
    list.resize(engine_() % 4);
    for (auto& item : list) fill(item);
  }
  template <class T>
  void fill(std::optional<T>& maybe) {
    maybe.reset();
    if (engine_() % 2 == 0) fill(maybe.emplace());
  }
  template <wire::HasFields T>
  void fill(T& message) {
    T::fields(*this, message);
  }

  std::mt19937_64 engine_;
};

// Every field in order, as text.
class FieldTexts {
 public:
  template <class T>
  void operator()(const T& value) {
    add(value);
  }
  std::vector<std::string> texts;

 private:
  template <std::integral T>
  void add(const T& value) {
    texts.push_back(std::to_string(value));
  }
  void add(float value) { add(std::bit_cast<std::uint32_t>(value)); }
  void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }
  template <class E>
  requires std::is_enum_v<E>
  void add(const E& value) { add(static_cast<int>(value)); }
  template <class Tag, class Int>
  void add(const Id<Tag, Int>& id) {
    add(id.value);
  }
  template <std::size_t N>
  void add(const std::array<std::byte, N>& bytes) {
    for (auto b : bytes) add(static_cast<int>(b));
  }
  void add(const std::string& text) { texts.push_back("\"" + text + "\""); }
  template <class T>
  void add(const std::vector<T>& list) {
    texts.push_back(std::to_string(list.size()) + " items");
    for (const auto& item : list) add(item);
  }
  template <class T>
  void add(const std::optional<T>& maybe) {
    texts.push_back(maybe ? "some" : "none");
    if (maybe) add(*maybe);
  }
  template <class T>
  requires wire::HasFields<const T>
  void add(const T& message) { T::fields(*this, message); }
};

inline std::vector<std::string> field_texts(const wire::Message& message) {
  FieldTexts out;
  std::visit([&](const auto& m) { out(m); }, message);
  return std::move(out.texts);
}

inline constexpr std::size_t kMessageTypes = std::variant_size_v<wire::Message>;

namespace detail {
template <std::size_t I>
wire::Message random_message_as(std::uint64_t seed) {
  std::variant_alternative_t<I, wire::Message> message;
  RandomFields fill(seed);
  fill(message);
  return message;
}
template <std::size_t... I>
wire::Message random_message(std::size_t type, std::uint64_t seed, std::index_sequence<I...>) {
  using Make = wire::Message (*)(std::uint64_t);
  static constexpr Make kMakers[] = {&random_message_as<I>...};
  return kMakers[type](seed);
}
}  // namespace detail

inline wire::Message random_message(std::size_t type, std::uint64_t seed) {
  return detail::random_message(type, seed, std::make_index_sequence<kMessageTypes>());
}

}  // namespace capstan::testing
