#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "capstan/base/time.h"
#include "capstan/base/unique_fd.h"

namespace capstan::launch {

// How a process ended.
struct Exit {
  int code = 0;              // as a shell would say it: 128 + signal for a killed one
  int signal = 0;            // 0: it exited by itself
  std::string text() const;  // "exit code 2", "killed by signal 9"
};

// A process of our own executables. It does not outlive this process (the kernel kills it then), by default
// ignores the terminal's interrupt and its closing (this process decides what they mean), and is killed by
// the destructor. Not thread-safe; start it from a thread that lives as long as the process.
class Child {
 public:
  struct Options {
    std::vector<std::string> arguments;    // the program's path first
    std::vector<std::string> environment;  // "NAME=value", beside the inherited ones
    std::filesystem::path error_log;       // takes standard error; empty: inherited
    bool read_output = false;              // standard output goes to read_line(); else to /dev/null
    bool ignore_interrupt = true;
  };

  // Throws UserError where the program cannot be started.
  explicit Child(const Options& options);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  pid_t pid() const { return pid_; }
  // The next line of standard output, without its end; none at the end of output or the deadline.
  std::optional<std::string> read_line(TimePoint deadline);
  // How it ended, if it has.
  std::optional<Exit> poll();
  std::optional<Exit> wait(TimePoint deadline);
  void signal(int number);

 private:
  pid_t pid_ = -1;
  std::optional<Exit> exit_;
  UniqueFd output_;
  std::string buffer_;
};

// The folder of this executable, and programs beside it.
std::filesystem::path own_folder();
std::string program(const std::string& name);

// The last non-empty line of a log, for messages; empty where there is none.
std::string last_line(const std::filesystem::path& log);

}  // namespace capstan::launch
