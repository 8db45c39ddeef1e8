#include "capstan/data/array_file.h"

#include <fmt/format.h>

#include "capstan/base/random_access_file.h"
#include "capstan/checkpoint/safetensors.h"
#include "capstan/data/npy.h"
#include "capstan/data/zip_file.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNpy = ".npy";

std::string place_of(const std::string& file, const std::string& array) {
  return fmt::format("{}: array '{}'", file, array);
}

class NpyFile final : public ArrayFile {
 public:
  explicit NpyFile(const fs::path& path) : file_(path) {}
  const std::vector<std::string>& names() const override { return names_; }
  Array read(std::size_t) const override {
    std::vector<std::byte> bytes(file_.size());
    file_.read(0, bytes);
    return parse_npy(std::move(bytes), file_.name());
  }

 private:
  const RandomAccessFile file_;
  const std::vector<std::string> names_ = {""};
};

class NpzFile final : public ArrayFile {
 public:
  explicit NpzFile(const fs::path& path) : zip_(path) {
    for (const auto& member : zip_.members()) {
      const std::string_view name = member.name;
      names_.emplace_back(name.ends_with(kNpy) ? name.substr(0, name.size() - kNpy.size()) : name);
    }
  }
  const std::vector<std::string>& names() const override { return names_; }
  Array read(std::size_t array) const override {
    return parse_npy(zip_.read(zip_.members().at(array)), place_of(zip_.name(), names_.at(array)));
  }

 private:
  const ZipFile zip_;
  std::vector<std::string> names_;
};

class SafetensorsFile final : public ArrayFile {
 public:
  explicit SafetensorsFile(const fs::path& path) : path_(path), reader_(path) {
    for (std::size_t i = 0; i < reader_.tensors(); ++i) names_.push_back(reader_.info(i).name);
  }
  const std::vector<std::string>& names() const override { return names_; }
  Array read(std::size_t array) const override {
    const auto& info = reader_.info(array);
    return {place_of(path_.string(), info.name), info.type, info.dims, reader_.read_bytes(array)};
  }

 private:
  const fs::path path_;
  const checkpoint::SafetensorsReader reader_;
  std::vector<std::string> names_;
};

}  // namespace

bool is_npy(const fs::path& path) {
  return path.extension() == kNpy;
}

std::unique_ptr<ArrayFile> open_array_file(const fs::path& path) {
  if (is_npy(path)) return std::make_unique<NpyFile>(path);
  if (path.extension() == ".npz") return std::make_unique<NpzFile>(path);
  if (path.extension() == ".safetensors") return std::make_unique<SafetensorsFile>(path);
  throw UserError(fmt::format("{}: a file of arrays ends in .npy, .npz or .safetensors", path.string()));
}

}  // namespace capstan::data
