#pragma once

#include "cluster/program.h"
#include "library/shell.h"

namespace capstan::testing {

// What this build installs, moved to another folder afterwards. Removed with the test.
class Installation {
 public:
  Installation() : prefix_(folder_ / "moved to") {
    const auto installed =
        shell({"cmake", "--install", CAPSTAN_BINARY_DIR, "--prefix", first_prefix().string()});
    EXPECT_EQ(installed.code, 0) << installed.output;
    fs::rename(first_prefix(), prefix_);
  }

  const Folder& folder() const { return folder_; }
  fs::path first_prefix() const { return folder_ / "first"; }
  const fs::path& prefix() const { return prefix_; }
  fs::path program(const std::string& name) const { return prefix_ / "bin" / name; }

  // A folder with a project of one file and this CMakeLists.txt.
  fs::path project(const std::string& name, const std::string& cmake, const std::string& main = {}) const {
    const auto source = folder_ / name;
    fs::create_directory(source);
    std::ofstream(source / "CMakeLists.txt") << "cmake_minimum_required(VERSION 3.25)\n" << cmake;
    std::ofstream(source / "main.cpp") << main;
    return source;
  }
  // The folder of an example, copied out of the installation.
  fs::path example(const std::string& name) const {
    const auto source = folder_ / name;
    fs::copy(prefix_ / "share/doc/capstan/examples" / name, source, fs::copy_options::recursive);
    return source;
  }
  // Configures a project in its folder build/, with the compiler and sanitizers of Capstan itself.
  ShellResult configure(const fs::path& source) const {
    return shell({"cmake", "-G", "Ninja", "-S", source.string(), "-B", (source / "build").string(),
                  "-DCMAKE_PREFIX_PATH=" + prefix_.string(), "-DCMAKE_CXX_COMPILER=" CAPSTAN_CXX,
                  "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_CXX_FLAGS=" + sanitizer()});
  }
  static std::string sanitizer() {
    const std::string names = CAPSTAN_SANITIZE;
    return names.empty() ? "" : "-fsanitize=" + names;
  }

 private:
  const Folder folder_;
  const fs::path prefix_;
};

inline int lines_of(const fs::path& file) {
  std::ifstream in(file);
  int lines = 0;
  for (std::string line; std::getline(in, line);) ++lines;
  EXPECT_GT(lines, 0) << file;
  return lines;
}

}  // namespace capstan::testing
