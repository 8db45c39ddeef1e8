#include "capstan/launch/child.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "capstan/user_error.h"

namespace capstan::launch {
namespace {

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (auto& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

// Runs between fork and exec: async-signal-safe calls only.
[[noreturn]] void become(char** argv, char** envp, int input, int output, int error, pid_t parent,
                         bool ignore_stop_signals) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // the parent died before the line above
  struct sigaction action {};
  action.sa_handler = ignore_stop_signals ? SIG_IGN : SIG_DFL;
  for (const int number : {SIGINT, SIGHUP, SIGTERM}) ::sigaction(number, &action, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = ::open("/dev/null", O_RDWR);
  ::dup2(input >= 0 ? input : null, STDIN_FILENO);
  ::dup2(output >= 0 ? output : null, STDOUT_FILENO);
  if (error >= 0) ::dup2(error, STDERR_FILENO);
  ::execve(argv[0], argv, envp);
  ::_exit(127);
}

}  // namespace

std::string Exit::text() const {
  if (signal == 0) return fmt::format("exit code {}", code);
  return fmt::format("killed by signal {} ({})", signal, ::strsignal(signal));
}

Child::Child(const Options& options) {
  auto arguments = options.arguments;
  auto environment = options.environment;
  const auto overridden = [&](std::string_view inherited) {
    const auto name = inherited.substr(0, inherited.find('=') + 1);
    return std::ranges::any_of(options.environment,
                               [&](const std::string& own) { return own.starts_with(name); });
  };
  for (char** e = environ; *e; ++e) {
    if (!overridden(*e)) environment.emplace_back(*e);
  }
  auto argv = pointers(arguments);
  auto envp = pointers(environment);
  if (::access(argv[0], X_OK) != 0) {
    throw UserError(fmt::format("cannot start {}: {}; the installation is incomplete", arguments[0],
                                std::strerror(errno)));
  }

  UniqueFd error;
  if (!options.error_log.empty()) {
    error.reset(::open(options.error_log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    if (!error) throw UserError(fmt::format("{}: {}", options.error_log.string(), std::strerror(errno)));
  }
  UniqueFd write_end;
  if (options.read_output) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw UserError(fmt::format("cannot create a pipe: {}", std::strerror(errno)));
    output_.reset(ends[0]);
    write_end.reset(ends[1]);
  }
  UniqueFd read_end;
  if (options.write_input) {
    // A socket, because only send() can be told not to raise SIGPIPE.
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw UserError(fmt::format("cannot create a socket: {}", std::strerror(errno)));
    read_end.reset(ends[0]);
    input_.reset(ends[1]);
  }
  ::signal(SIGCHLD, SIG_DFL);  // if inherited as ignored, exit codes would be lost
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw UserError(fmt::format("cannot start a process: {}", std::strerror(errno)));
  if (pid_ == 0)
    become(argv.data(), envp.data(), read_end.get(), write_end.get(), error.get(), parent,
           options.ignore_stop_signals);
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      exit_(other.exit_),
      input_(std::move(other.input_)),
      output_(std::move(other.output_)),
      buffer_(std::move(other.buffer_)),
      output_ended_(other.output_ended_) {}

Child::~Child() {
  if (pid_ < 0 || poll()) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::optional<std::string> Child::read_line(TimePoint deadline) {
  for (;;) {
    if (const auto end = buffer_.find('\n'); end != std::string::npos) {
      auto line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now()).count();
    constexpr std::int64_t kLongest = 3'600'000;
    if (output_ended_) return {};
    pollfd ready{output_.get(), POLLIN, 0};
    const int found = ::poll(&ready, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, kLongest)));
    if (found == 0 && left <= 0) return {};
    if (found == 0 || (found < 0 && errno == EINTR)) continue;
    char bytes[1 << 16];  // what a pipe holds
    const auto n = found > 0 ? ::read(output_.get(), bytes, sizeof bytes) : -1;
    if (n <= 0) {
      output_ended_ = true;
      if (buffer_.empty()) return {};
      return std::exchange(buffer_, {});  // a last line without a newline
    }
    buffer_.append(bytes, static_cast<std::size_t>(n));
  }
}

bool Child::write_input(std::string_view text) {
  while (!text.empty()) {
    const auto n = ::send(input_.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

std::optional<Exit> Child::poll() {
  int status = 0;
  if (!exit_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    const bool killed = WIFSIGNALED(status);
    exit_ = Exit{killed ? 128 + WTERMSIG(status) : WEXITSTATUS(status), killed ? WTERMSIG(status) : 0};
  }
  return exit_;
}

std::optional<Exit> Child::wait(TimePoint deadline) {
  while (!poll() && SteadyClock::now() < deadline) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return exit_;
}

bool Child::is_stopped() const {
  // "PID (name) STATE …"; the name may have parentheses.
  std::ifstream stat(fmt::format("/proc/{}/stat", pid_));
  const std::string text{std::istreambuf_iterator<char>(stat), {}};
  const auto name_end = text.rfind(") ");
  return name_end != std::string::npos && text[name_end + 2] == 'T';
}

void Child::signal(int number) {
  if (!poll()) ::kill(pid_, number);
}

std::filesystem::path own_path() {
  return std::filesystem::read_symlink("/proc/self/exe");
}

std::filesystem::path own_folder() {
  return own_path().parent_path();
}

std::string program(const std::string& name) {
  return (own_folder() / name).string();
}

std::string last_line(const std::filesystem::path& log) {
  std::ifstream in(log);
  std::string line, last;
  while (std::getline(in, line)) {
    if (std::ranges::any_of(line, [](unsigned char c) { return std::isalnum(c) != 0; })) last = line;
  }
  return last;
}

}  // namespace capstan::launch
