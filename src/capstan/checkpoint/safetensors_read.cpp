#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <ranges>
#include <set>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "capstan/base/dtype.h"
#include "capstan/base/random_access_file.h"
#include "capstan/checkpoint/safetensors.h"
#include "capstan/user_error.h"

namespace capstan::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kMostHeader = 100'000'000;  // the format's own limit
constexpr int kDeepest = 8;                         // a valid header has three levels

// The header as JSON; no value if it is invalid, nests too deeply, or has a duplicate name (of which the
// parser would silently keep the last).
std::optional<Json> parse_json(const std::string& text) {
  struct Rejected {};
  std::vector<std::set<std::string>> names;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > kDeepest) throw Rejected{};
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event == Json::parse_event_t::key && !names.back().insert(value.get<std::string>()).second)
      throw Rejected{};
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::exception&) {
    return {};
  } catch (const Rejected&) {
    return {};
  }
}

std::optional<std::uint64_t> unsigned_value(const Json& json) {
  return json.is_number_unsigned() ? std::optional(json.get<std::uint64_t>()) : std::nullopt;
}

// Fills the span with the bytes at an offset, all of them within the file.
using ReadAt = std::function<void(std::uint64_t at, std::span<std::byte> out)>;

struct Place {
  std::uint64_t begin, end;
};

// A supported dtype.
struct Kind {
  const char* name;
  DType type;
};
constexpr Kind kKinds[] = {
    {"F32", DType::kF32},   {"F64", DType::kF64}, {"F16", DType::kF16}, {"BF16", DType::kBF16},
    {"I8", DType::kI8},     {"U8", DType::kU8},   {"I16", DType::kI16}, {"U16", DType::kU16},
    {"I32", DType::kI32},   {"U32", DType::kU32}, {"I64", DType::kI64}, {"U64", DType::kU64},
    {"BOOL", DType::kBool},
};

// The header's entry of one tensor.
struct Entry {
  Place place;
  TensorInfo info;
};

}  // namespace

class SafetensorsReader::Content {
 public:
  Content(std::uint64_t size, ReadAt read_at, std::string name)
      : size_(size), read_at_(std::move(read_at)), name_(std::move(name)) {
    read_header();
  }

  const Metadata& metadata() const { return metadata_; }
  const std::vector<Entry>& entries() const { return entries_; }

  Tensor read(const Entry& entry) const {
    const auto bytes = entry.place.end - entry.place.begin;
    Tensor tensor{entry.info.name, entry.info.dims, std::vector<float>(bytes / bytes_of(entry.info.type))};
    if (entry.info.type == DType::kF32)
      read_at_(data_ + entry.place.begin, std::as_writable_bytes(std::span(tensor.values)));
    else
      to_floats(entry.info.type, read_bytes(entry), tensor.values);
    return tensor;
  }

  std::vector<std::byte> read_bytes(const Entry& entry) const {
    std::vector<std::byte> bytes(entry.place.end - entry.place.begin);
    read_at_(data_ + entry.place.begin, bytes);
    return bytes;
  }

 private:
  void read_header() {
    const auto header = take_header();
    for (const auto& [key, value] : header.items()) {
      if (key == "__metadata__") {
        metadata_ = metadata(value);
      } else {
        entries_.push_back(tensor(key, value));
      }
    }
    // Tensors without elements share their offset with the next one.
    std::ranges::sort(entries_, {}, [](const Entry& e) { return std::pair(e.place.begin, e.place.end); });
    std::uint64_t at = 0;
    for (const auto& e : entries_) {
      if (e.place.begin != at) fail(fmt::format("tensor '{}' leaves a gap or overlaps another", e.info.name));
      at = e.place.end;
    }
    if (data_ + at != size_) fail(fmt::format("{} bytes follow the last tensor", size_ - data_ - at));
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw UserError(fmt::format("{} is not a valid safetensors file: {}", name_, what));
  }

  // Also sets the offset of the tensors' bytes.
  Json take_header() {
    std::array<std::uint8_t, 8> prefix;
    if (size_ < prefix.size()) fail("it is shorter than 8 bytes");
    read_at_(0, std::as_writable_bytes(std::span(prefix)));
    constexpr std::uint8_t kZip[] = {'P', 'K', 3, 4};
    if (std::ranges::equal(kZip, std::span(prefix).first(4)))
      fail(
          "it is a zip archive, as torch.save() writes; convert it in Python: "
          "safetensors.torch.save_file(torch.load(FILE), NEW_FILE)");
    std::uint64_t length = 0;
    for (auto i = prefix.size(); i-- > 0;) length = length << 8 | prefix[i];
    if (length > kMostHeader || length > size_ - prefix.size()) {
      fail(fmt::format("its header length is {} bytes, but only {} follow", length, size_ - prefix.size()));
    }
    std::string text(length, '\0');
    read_at_(prefix.size(), std::as_writable_bytes(std::span(text)));
    auto header = parse_json(text);
    if (!header || !header->is_object()) fail("its header is not a JSON object with each name once");
    data_ = prefix.size() + length;
    return std::move(*header);
  }

  Metadata metadata(const Json& json) const {
    if (!json.is_object()) fail("__metadata__ is not an object");
    Metadata result;
    for (const auto& [key, value] : json.items()) {
      if (!value.is_string()) fail(fmt::format("__metadata__ '{}' is not a string", key));
      result[key] = value.get<std::string>();
    }
    return result;
  }

  Entry tensor(const std::string& name, const Json& json) const {
    const auto bad = [&](const std::string& what) { fail(fmt::format("tensor '{}': {}", name, what)); };
    if (!json.is_object() || !json.contains("dtype") || !json.contains("shape") ||
        !json.contains("data_offsets")) {
      bad("dtype, shape and data_offsets are needed");
    }
    const auto kind = std::ranges::find_if(kKinds, [&](const Kind& k) { return json["dtype"] == k.name; });
    if (kind == std::end(kKinds))
      bad(fmt::format("its dtype {} is not supported; supported are {}", json["dtype"].dump(),
                      fmt::join(kKinds | std::views::transform(&Kind::name), ", ")));
    if (!json["shape"].is_array()) bad("its shape is not an array");
    TensorInfo result{name, {}, kind->type};
    std::uint64_t bytes = bytes_of(kind->type);
    for (const auto& d : json["shape"]) {
      const auto dim = unsigned_value(d);
      if (!dim || *dim > std::uint64_t{INT64_MAX}) bad("its shape has an invalid size");
      if (__builtin_mul_overflow(bytes, *dim, &bytes)) bad("its shape is too large");
      result.dims.push_back(static_cast<std::int64_t>(*dim));
    }
    const auto& offsets = json["data_offsets"];
    if (!offsets.is_array() || offsets.size() != 2) bad("data_offsets are not two numbers");
    const auto begin = unsigned_value(offsets[0]), end = unsigned_value(offsets[1]);
    if (!begin || !end || *begin > *end || *end > size_ - data_) bad("data_offsets are outside of the file");
    if (*end - *begin != bytes) bad("data_offsets and shape differ in size");
    return {{*begin, *end}, std::move(result)};
  }

  std::uint64_t size_;
  ReadAt read_at_;
  std::string name_;
  std::uint64_t data_ = 0;
  Metadata metadata_;
  std::vector<Entry> entries_;
};

namespace {

ReadAt reader_of(std::span<const std::byte> bytes) {
  return [bytes](std::uint64_t at, std::span<std::byte> out) {
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), out.size(), out.begin());
  };
}

Safetensors read_all(const SafetensorsReader& reader) {
  Safetensors all;
  all.metadata = reader.metadata();
  for (std::size_t i = 0; i < reader.tensors(); ++i) all.tensors.push_back(reader.read(i));
  return all;
}

}  // namespace

SafetensorsReader::SafetensorsReader(std::span<const std::byte> bytes, std::string name)
    : content_(std::make_unique<Content>(bytes.size(), reader_of(bytes), std::move(name))) {}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path) {
  const auto file = std::make_shared<const RandomAccessFile>(path);
  const auto read_at = [file](std::uint64_t at, std::span<std::byte> out) { file->read(at, out); };
  content_ = std::make_unique<Content>(file->size(), read_at, file->name());
}

SafetensorsReader::~SafetensorsReader() = default;

const Metadata& SafetensorsReader::metadata() const {
  return content_->metadata();
}

std::size_t SafetensorsReader::tensors() const {
  return content_->entries().size();
}

const TensorInfo& SafetensorsReader::info(std::size_t tensor) const {
  return content_->entries().at(tensor).info;
}

std::vector<std::byte> SafetensorsReader::read_bytes(std::size_t tensor) const {
  return content_->read_bytes(content_->entries().at(tensor));
}

Tensor SafetensorsReader::read(std::size_t tensor) const {
  return content_->read(content_->entries().at(tensor));
}

std::optional<Tensor> SafetensorsReader::read(const std::string& tensor) const {
  const auto& entries = content_->entries();
  const auto found = std::ranges::find(entries, tensor, [](const Entry& e) { return e.info.name; });
  return found == entries.end() ? std::nullopt : std::optional(content_->read(*found));
}

Safetensors parse_safetensors(std::span<const std::byte> bytes, const std::string& name) {
  return read_all(SafetensorsReader(bytes, name));
}

Safetensors read_safetensors(const std::filesystem::path& path) {
  return read_all(SafetensorsReader(path));
}

}  // namespace capstan::checkpoint
