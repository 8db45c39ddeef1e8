#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace capstan {

// A JSON value for output: Json{{"ok", true}, {"losses", list}}. Members keep the order in which they were
// added. Parsing uses nlohmann::json directly; its header adds seconds to the compilation of each file that
// includes it, this one does not. A value; not thread-safe.
class Json {
 public:
  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(std::same_as<bool> auto value) : kind_(Kind::kBool), unsigned_(value) {}
  Json(std::signed_integral auto value) : kind_(Kind::kSigned), signed_(value) {}
  Json(std::unsigned_integral auto value) requires(!std::same_as<decltype(value), bool>)
      : kind_(Kind::kUnsigned), unsigned_(value) {}
  Json(std::floating_point auto value) : kind_(Kind::kReal), real_(value) {}
  Json(std::string_view text) : kind_(Kind::kText), text_(text) {}
  Json(const std::string& text) : Json(std::string_view(text)) {}
  Json(const char* text) : Json(std::string_view(text)) {}
  template <class T>
  Json(const std::vector<T>& values) : kind_(Kind::kArray), items_(values.begin(), values.end()) {}
  // An object if every item is a pair whose first element is text, otherwise an array.
  Json(std::initializer_list<Json> items);

  static Json array() { return Json(Kind::kArray); }
  static Json object() { return Json(Kind::kObject); }

  // A member of an object; a null value becomes an object first.
  Json& operator[](std::string_view key);
  bool contains(std::string_view key) const;
  // Adds an item to an array; a null value becomes an array first.
  void push_back(Json item);

  // One line, or several indented by `indent` spaces. Bytes that are not UTF-8 (in a file name, for example)
  // are replaced; NaN and infinity become null.
  std::string dump(int indent = -1) const;

 private:
  enum class Kind { kNull, kBool, kSigned, kUnsigned, kReal, kText, kArray, kObject };
  explicit Json(Kind kind) : kind_(kind) {}
  bool is_member() const;

  friend struct JsonText;

  Kind kind_ = Kind::kNull;
  union {
    std::int64_t signed_;
    std::uint64_t unsigned_ = 0;
    double real_;
  };
  std::string text_;
  std::vector<std::string> keys_;  // of an object, one for each item
  std::vector<Json> items_;
};

inline std::string json_line(const Json& value) {
  return value.dump();
}

// The text with bytes that are not UTF-8 replaced.
std::string as_utf8(const std::string& text);

}  // namespace capstan
