// Reads the include lines of src/capstan and fails if a folder includes one of a higher layer.

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;

// The folders that a folder may include, besides itself and base. docs/architecture.md shows the same layers.
const std::map<std::string, std::set<std::string>> kArrows = {
    {"base", {}},
    {"metrics", {}},
    {"layouts", {}},
    {"kernels", {}},
    {"transport", {}},
    {"wire", {}},
    {"placement", {}},
    {"strategy", {}},
    {"optimizer", {"kernels"}},
    {"store", {"kernels", "optimizer"}},
    {"checkpoint", {}},
    {"fetch", {}},
    {"report", {"metrics", "simulate"}},
    {"simulate", {"placement", "strategy"}},
    {"cluster", {"transport", "wire"}},
    {"server",
     {"checkpoint", "cluster", "kernels", "metrics", "optimizer", "placement", "store", "strategy",
      "transport", "wire"}},
    {"client", {"cluster", "placement", "transport", "wire"}},
    {"averaging", {"client", "cluster", "kernels", "placement", "server", "transport", "wire"}},
    {"library", {"client", "cluster", "wire"}},
    {"config", {"optimizer", "strategy"}},
    {"data", {"checkpoint"}},
    {"models", {"layouts"}},
    {"training",
     {"checkpoint", "client", "data", "kernels", "layouts", "metrics", "models", "optimizer", "store",
      "strategy"}},
    {"workloads", {"data", "training"}},
    {"launch", {"cluster", "transport"}},
    {"bench",
     {"client", "cluster", "config", "data", "kernels", "launch", "layouts", "metrics", "optimizer"}},
    {"job",
     {"checkpoint", "client", "cluster", "config", "data", "launch", "metrics", "models", "optimizer",
      "placement", "report", "server", "store", "strategy", "training", "transport", "wire", "workloads"}},
    {"lab", {"averaging", "checkpoint", "client",   "cluster",   "config", "data",      "job",
             "kernels",   "launch",     "layouts",  "metrics",   "models", "optimizer", "report",
             "server",    "strategy",   "training", "transport", "wire",   "workloads"}},
};

// Layers that must stay free of libtorch, so that a server starts in milliseconds.
const std::set<std::string> kWithTorch = {"models", "training", "workloads", "lab", "job", "cli"};

struct Include {
  fs::path file;
  std::string folder;  // of the including file
  std::string target;  // the text between the quotes or brackets
};

std::vector<Include> all_includes() {
  const fs::path root = fs::path(CAPSTAN_SOURCE_DIR) / "src" / "capstan";
  const std::regex line_form(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
  std::vector<Include> found;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const auto extension = entry.path().extension();
    if (extension != ".h" && extension != ".cpp") continue;
    const auto folder = fs::relative(entry.path(), root).begin()->string();
    std::ifstream in(entry.path());
    std::string line;
    std::smatch match;
    while (std::getline(in, line)) {
      if (std::regex_search(line, match, line_form)) found.push_back({entry.path(), folder, match[1]});
    }
  }
  return found;
}

// Headers of include/capstan/ that all layers may use. The others are for users of the library.
const std::set<std::string> kPublicBase = {"cxx20.h",  "layout.h",     "metric.h",     "samples.h",
                                           "status.h", "step_phase.h", "user_error.h", "version.h"};

// A header of include/capstan/ has no folder in its path.
bool is_public(const fs::path& target) {
  return std::distance(target.begin(), target.end()) == 2;
}

TEST(Architecture, NoIncludePointsUp) {
  const auto includes = all_includes();
  ASSERT_GT(includes.size(), 200u) << "the sources were not found";
  for (const auto& include : includes) {
    if (!include.target.starts_with("capstan/")) continue;
    const auto target = fs::path(include.target);
    if (is_public(target)) {
      EXPECT_TRUE(include.folder == "library" || kPublicBase.contains(target.filename().string()))
          << include.file << " includes " << include.target;
      continue;
    }
    const auto folder = std::next(target.begin())->string();
    if (fs::exists(fs::path(CAPSTAN_SOURCE_DIR) / "include" / target)) continue;  // a public header
    if (include.folder == "cli" || folder == include.folder || folder == "base") continue;
    const auto allowed = kArrows.find(include.folder);
    ASSERT_NE(allowed, kArrows.end()) << include.folder << " is not in the table of arrows";
    EXPECT_TRUE(allowed->second.contains(folder)) << include.file << " includes " << include.target << ": "
                                                  << include.folder << " may not use " << folder;
  }
}

TEST(Architecture, OnlyModelsTrainingAndCommandsIncludeLibtorch) {
  const std::regex torch(R"(^(torch/|ATen/|c10/|caffe2/|capstan/torch/))");
  for (const auto& include : all_includes()) {
    if (!std::regex_search(include.target, torch)) continue;
    EXPECT_TRUE(kWithTorch.contains(include.folder)) << include.file << " includes " << include.target;
  }
}

// CLI11 takes 15 s to compile.
TEST(Architecture, OneFileIncludesCli11) {
  std::set<fs::path> files;
  for (const auto& include : all_includes())
    if (include.target.starts_with("CLI/")) files.insert(include.file.filename());
  EXPECT_EQ(files, std::set<fs::path>{"command_line.cpp"});
}

}  // namespace
