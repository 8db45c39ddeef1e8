#include "capstan/base/json.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "capstan/base/check.h"

namespace capstan {

using Document = nlohmann::ordered_json;

struct JsonText {
  static Document document(const Json& json) {
    switch (json.kind_) {
      case Json::Kind::kNull:
        return nullptr;
      case Json::Kind::kBool:
        return json.unsigned_ != 0;
      case Json::Kind::kSigned:
        return json.signed_;
      case Json::Kind::kUnsigned:
        return json.unsigned_;
      case Json::Kind::kReal:
        return json.real_;
      case Json::Kind::kText:
        return json.text_;
      case Json::Kind::kArray: {
        auto array = Document::array();
        for (const auto& item : json.items_) array.push_back(document(item));
        return array;
      }
      case Json::Kind::kObject: {
        auto object = Document::object();
        for (std::size_t i = 0; i < json.items_.size(); ++i)
          object.get_ref<Document::object_t&>().emplace_back(json.keys_[i], document(json.items_[i]));
        return object;
      }
    }
    return nullptr;
  }
  static std::string of(const Document& document, int indent = -1) {
    return document.dump(indent, ' ', false, Document::error_handler_t::replace);
  }
};

Json::Json(std::initializer_list<Json> items) {
  if (!std::ranges::all_of(items, &Json::is_member)) {
    kind_ = Kind::kArray;
    items_ = items;
    return;
  }
  kind_ = Kind::kObject;
  for (const auto& item : items) (*this)[item.items_[0].text_] = item.items_[1];
}

bool Json::is_member() const {
  return kind_ == Kind::kArray && items_.size() == 2 && items_[0].kind_ == Kind::kText;
}

Json& Json::operator[](std::string_view key) {
  if (kind_ == Kind::kNull) kind_ = Kind::kObject;
  CAPSTAN_CHECK(kind_ == Kind::kObject, "an object has members");
  const auto found = std::ranges::find(keys_, key);
  if (found != keys_.end()) return items_[static_cast<std::size_t>(found - keys_.begin())];
  keys_.emplace_back(key);
  return items_.emplace_back();
}

bool Json::contains(std::string_view key) const {
  return std::ranges::find(keys_, key) != keys_.end();
}

void Json::push_back(Json item) {
  if (kind_ == Kind::kNull) kind_ = Kind::kArray;
  CAPSTAN_CHECK(kind_ == Kind::kArray, "an array has items");
  items_.push_back(std::move(item));
}

std::string Json::dump(int indent) const {
  return JsonText::of(JsonText::document(*this), indent);
}

std::string as_utf8(const std::string& text) {
  return Document::parse(JsonText::of(text)).get<std::string>();
}

}  // namespace capstan
