#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace capstan::metrics {

// The output folder of a run: its configuration, a description of the machine, metrics.jsonl and the weights.
// Not thread-safe.
class RunFolder {
 public:
  // Creates `folder`, or `runs/<time>-<name>` if `folder` is empty. Throws UserError if the folder cannot be
  // created or already contains a run, unless `resumes`: nothing is overwritten.
  RunFolder(const std::filesystem::path& folder, const std::string& name, bool resumes = false);

  const std::filesystem::path& path() const { return path_; }
  // Throws UserError if the file cannot be written, for example on a full disk.
  void write(const std::string& file, const std::string& text) const;
  // Adds one line to metrics.jsonl. A failure does not stop the run: all later lines are dropped, and
  // is_complete() is false.
  void append(const std::string& json_line);
  bool is_complete() const { return metrics_.good(); }  // every line was written

 private:
  std::filesystem::path path_;
  std::ofstream metrics_;
};

}  // namespace capstan::metrics
