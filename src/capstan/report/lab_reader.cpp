#include "capstan/report/lab_reader.h"

#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "capstan/base/text.h"
#include "capstan/report/lab_fields.h"
#include "capstan/user_error.h"

namespace capstan::report {
namespace {

using Parsed = nlohmann::json;

// A value and its place in the file, for messages. Refers to both; a value of a moment.
class Place {
 public:
  Place(const Parsed& json, const std::string& file, std::string at = "")
      : json_(json), file_(file), at_(std::move(at)) {}

  void read(bool& out) const {
    require(json_.is_boolean(), "true or false");
    out = json_.get<bool>();
  }
  void read(double& out) const {
    require(json_.is_number() && json_.get<double>() >= 0, "a number of at least 0");
    out = json_.get<double>();
  }
  void read(std::uint64_t& out) const {
    require(json_.is_number_unsigned(), "a whole number of at least 0");
    out = json_.get<std::uint64_t>();
  }
  // Names and messages are printed in tables.
  void read(std::string& out) const {
    require(json_.is_string() && is_one_line(json_.get_ref<const std::string&>()), "one line of text");
    out = json_.get<std::string>();
  }
  void read(std::optional<std::string>& out) const {
    if (!json_.is_null()) read(out.emplace());
  }
  void read(std::optional<double>& out) const {
    require(json_.is_null() || json_.is_number(), "a number or null");
    if (!json_.is_null()) out = json_.get<double>();
  }
  void read(LabValue& out) const {
    switch (json_.type()) {
      case Parsed::value_t::null:
        out = nullptr;
        return;
      case Parsed::value_t::boolean:
        out = json_.get<bool>();
        return;
      case Parsed::value_t::number_integer:
      case Parsed::value_t::number_unsigned:
        require(!json_.is_number_unsigned() || json_.get<std::uint64_t>() <= INT64_MAX,
                "a number below 2^63");
        out = json_.get<std::int64_t>();
        return;
      case Parsed::value_t::number_float:
        out = json_.get<double>();
        return;
      default:
        read(out.emplace<std::string>());
    }
  }
  void read(LabOptions& out) const {
    require(json_.is_object(), "an object");
    for (const auto& [name, value] : json_.items()) {
      require(is_one_line(name), "an object whose keys are one line");
      member(name, value).read(out.emplace_back(name, LabValue()).second);
    }
  }
  template <class T>
  void read(std::vector<T>& out) const {
    require(json_.is_array(), "a list");
    for (std::size_t i = 0; i < json_.size(); ++i)
      Place(json_[i], file_, fmt::format("{}[{}]", at_, i)).read(out.emplace_back());
  }
  template <class T>
  void read(T& out) const {
    require(json_.is_object(), "an object");
    std::set<std::string> known = {"kind", "schema"};
    if (!at_.empty()) known.clear();
    visit_fields(out, [&](const char* key, auto& field) {
      const auto found = json_.find(key);
      if (found == json_.end()) fail(fmt::format("has no \"{}\"", key));
      member(key, *found).read(field);
      known.insert(key);
    });
    for (const auto& [key, value] : json_.items())
      if (!known.contains(key))
        fail(fmt::format("has an unknown key {}", shortened(json_line(Parsed(key)), 60)));
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw UserError(fmt::format("{}: {} {}", file_, at_.empty() ? "the result" : at_, problem));
  }

 private:
  Place member(const std::string& key, const Parsed& value) const {
    return {value, file_, at_.empty() ? key : fmt::format("{}.{}", at_, key)};
  }
  void require(bool condition, const char* allowed) const {
    if (!condition) fail(fmt::format("should be {}", allowed));
  }

  const Parsed& json_;
  const std::string& file_;
  const std::string at_;
};

void check_names(const LabResult& result, const std::string& file) {
  std::set<std::string> names;
  for (const auto& configuration : result.configurations)
    if (!names.insert(configuration.name).second)
      throw UserError(fmt::format("{}: two configurations are named \"{}\"; names must differ", file,
                                  configuration.name));
}

}  // namespace

LabResult read_lab(const Parsed& json, const std::string& file) {
  const auto schema = json.find("schema");
  if (schema == json.end() || *schema != kLabSchema)
    throw UserError(fmt::format("{}: a lab result with schema {}; this version reads schema {}", file,
                                schema == json.end() ? "none" : shortened(json_line(*schema), 40),
                                kLabSchema));
  LabResult out;
  Place(json, file).read(out);
  check_names(out, file);
  return out;
}

}  // namespace capstan::report
