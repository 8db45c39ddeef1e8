#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace capstan::metrics {

// What a run leaves behind: one folder with its configuration, what it ran on, its measurements line by
// line, and its weights. Not thread-safe.
class RunFolder {
 public:
  // Makes `folder`, or `runs/<time>-<name>` where it is empty. Throws UserError where it cannot be made or
  // holds a run already: nothing is overwritten. With `goes_on` the run in it is continued.
  RunFolder(const std::filesystem::path& folder, const std::string& name, bool goes_on = false);

  const std::filesystem::path& path() const { return path_; }
  // Throws UserError where the file cannot be written, for example on a full disk.
  void write(const std::string& file, const std::string& text) const;
  // Adds one line to metrics.jsonl. Where that fails, so does every later call: a run is worth more than its
  // record.
  void append(const std::string& json_line);
  bool is_complete() const { return metrics_.good(); }  // every line was written

 private:
  std::filesystem::path path_;
  std::ofstream metrics_;
};

}  // namespace capstan::metrics
