#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capstan::data {

// An option of a dataset's name: `:name=VALUE`, or `:name` alone.
struct SpecOption {
  std::string_view name;
  bool has_value = true;
};

// A dataset's name with a file and options: KIND:FILE[:option=VALUE][:option]. FILE and values contain no
// colon. A value.
class DatasetSpec {
 public:
  // `form` is shown in messages. Throws UserError for an option that is unknown, repeated, or lacks its
  // value.
  DatasetSpec(const std::string& text, std::span<const SpecOption> known, std::string_view form,
              const std::string& data_dir);

  bool has(std::string_view option) const { return values_.contains(option); }
  // Empty if it is not given.
  std::string value(std::string_view option) const;
  const std::filesystem::path& file() const { return file_; }
  // A file of the dataset: a relative path begins in --data-dir, or in the current folder without it.
  std::filesystem::path locate(const std::string& path) const;
  // The dimensions of `:shape=CxHxW`; empty if it is not given.
  std::vector<std::int64_t> shape() const;

  // Throws UserError that names the dataset and shows the form.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::string text_;
  std::string_view form_;
  std::string data_dir_;
  std::filesystem::path file_;
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace capstan::data
