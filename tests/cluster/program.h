#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <signal.h>

#include "capstan/launch/child.h"

#include "support/processes.h"

// Runs the built programs as a user would.
namespace capstan::testing {

namespace fs = std::filesystem;

inline TimePoint in_seconds(double s) {
  return SteadyClock::now() + from_seconds(s);
}

inline std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// An empty folder that is removed with the test.
class Folder {
 public:
  Folder() {
    std::string form = (fs::temp_directory_path() / "capstan-test-XXXXXX").string();
    path_ = ::mkdtemp(form.data());
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  fs::path operator/(const std::string& name) const { return path_ / name; }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

inline std::string path_of(const std::string& name) {
  return std::string(CAPSTAN_BINARY_DIR) + "/bin/" + name;
}

// One run of capstan, or of another built program.
class Program {
 public:
  Program(const Folder& folder, std::vector<std::string> arguments, std::vector<std::string> environment = {},
          std::vector<std::string> prefix = {}, const std::string& name = "capstan")
      : errors_(folder / ("stderr-" + std::to_string(counter()++))),
        child_({whole(std::move(prefix), name, std::move(arguments)), std::move(environment), errors_, true,
                false}) {}

  launch::Child& child() { return child_; }
  // Everything to the end; a test that waits too long fails.
  int exit_code(double timeout = 90) {
    const auto deadline = in_seconds(timeout);
    while (auto line = child_.read_line(deadline)) output_ += *line + "\n";
    const auto exit = child_.wait(deadline);
    EXPECT_TRUE(exit) << "still running; it said: " << errors();
    return exit ? exit->code : -1;
  }
  const std::string& output() const { return output_; }
  nlohmann::json json() const { return nlohmann::json::parse(output_, nullptr, false); }
  std::string errors() const { return text_of(errors_); }
  // Waits until standard error holds the text.
  bool said(const std::string& text, double timeout = 60) {
    return await_errors([&](const std::string& errors) { return errors.find(text) != std::string::npos; },
                        timeout);
  }
  // Waits until `condition` holds or the program has ended.
  bool await_errors(const std::function<bool(const std::string&)>& condition, double timeout = 60) {
    return await_files(
        errors_, [&] { return condition(errors()); }, child_.pid(), from_seconds(timeout));
  }
  // Processes that this one has started and whose command line holds the text.
  std::vector<pid_t> children(const std::string& text) const {
    std::vector<pid_t> found;
    std::ifstream list("/proc/" + std::to_string(child_.pid()) + "/task/" + std::to_string(child_.pid()) +
                       "/children");
    for (pid_t pid; list >> pid;) {
      auto line = text_of("/proc/" + std::to_string(pid) + "/cmdline");
      std::replace(line.begin(), line.end(), '\0', ' ');
      if (line.find(text) != std::string::npos) found.push_back(pid);
    }
    return found;
  }

 private:
  static int& counter() {
    static int count = 0;
    return count;
  }
  static std::vector<std::string> whole(std::vector<std::string> prefix, const std::string& name,
                                        std::vector<std::string> arguments) {
    prefix.push_back(path_of(name));
    prefix.insert(prefix.end(), arguments.begin(), arguments.end());
    return prefix;
  }

  fs::path errors_;
  launch::Child child_;
  std::string output_;
};

using Flags = std::vector<std::string>;

// A run with little output, with one thread for each worker.
inline Flags quiet_train(const fs::path& run, const Flags& more) {
  Flags arguments = {"train", "--json", "--train-dir=" + run.string(), "--log-interval=60", "--threads=1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

inline constexpr const char* kToken = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
inline constexpr const char* kOtherToken = "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

inline fs::path token_file(const Folder& folder, const std::string& token = kToken) {
  const auto path = folder / ("token-" + token.substr(0, 2));
  std::ofstream(path) << token << "\n";
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  return path;
}

// "listening on HOST:PORT" of a server with --json; empty if it was not printed.
inline std::string address_of(Program& server) {
  const std::string ready = "listening on ";
  if (!server.said(ready, 30)) return {};
  const auto text = server.errors();
  const auto begin = text.find(ready) + ready.size();
  return text.substr(begin, text.find('\n', begin) - begin);
}

// As a prefix of a program: runs it with what a shell does to its descriptors and signals.
inline std::vector<std::string> by_shell(const std::string& how) {
  return {"/bin/sh", "-c", how};
}

}  // namespace capstan::testing
