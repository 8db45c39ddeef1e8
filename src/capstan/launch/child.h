#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <signal.h>
#include <sys/types.h>

#include "capstan/base/time.h"
#include "capstan/base/unique_fd.h"

namespace capstan::launch {

// How a process ended.
struct Exit {
  int code = 0;              // as a shell reports it: 128 + signal for a killed process
  int signal = 0;            // 0: the process exited by itself
  std::string text() const;  // "exit code 2", "killed by signal 9"
};

// A parent's stop request to a child that ignores the signals of terminals and schedulers.
inline constexpr int kStopSignal = SIGUSR2;

// A child process that runs one of Capstan's programs. The kernel kills it when this process ends; the
// destructor kills it too. By default it ignores SIGINT, SIGHUP and SIGTERM: terminals and schedulers send
// them to all processes of a job, and this process handles them. Not thread-safe. Start it from a thread that
// runs until this process ends: the kernel sends the death signal when the starting thread ends.
class Child {
 public:
  struct Options {
    std::vector<std::string> arguments;    // the program's path first
    std::vector<std::string> environment;  // "NAME=value", beside the inherited ones
    std::filesystem::path error_log;       // takes standard error; empty: inherited
    bool read_output = false;              // standard output is read by read_line(); else it is discarded
    bool ignore_stop_signals = true;
    bool write_input = false;  // standard input is written by write_input(); else it is empty
  };

  // Throws UserError if the program cannot be started.
  explicit Child(const Options& options);
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  ~Child();

  pid_t pid() const { return pid_; }
  // The next line of standard output without its newline; none at the end of output or at the deadline. A
  // line that has arrived is returned even after the deadline.
  std::optional<std::string> read_line(TimePoint deadline);
  // Readable when read_line() has something to do, for poll(2).
  int output_fd() const { return output_.get(); }
  bool output_ended() const { return output_ended_; }
  // Writes all of the text to standard input; false if the process does not read it any more. Waits while the
  // process leaves more unread than a socket holds (about 200 kB).
  [[nodiscard]] bool write_input(std::string_view text);
  void close_input() { input_.reset(); }
  // None while the process runs.
  std::optional<Exit> poll();
  std::optional<Exit> wait(TimePoint deadline);
  // By a signal such as SIGSTOP; not by a debugger.
  bool is_stopped() const;
  void signal(int number);

 private:
  pid_t pid_ = -1;
  std::optional<Exit> exit_;
  UniqueFd input_, output_;
  std::string buffer_;
  bool output_ended_ = false;
};

// This executable, its folder, and the path of a program in it.
std::filesystem::path own_path();
std::filesystem::path own_folder();
std::string program(const std::string& name);

// The last non-empty line of a log, for messages; empty if there is none.
std::string last_line(const std::filesystem::path& log);

}  // namespace capstan::launch
