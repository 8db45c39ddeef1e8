#include "capstan/lab/launcher.h"

#include <algorithm>
#include <fstream>
#include <span>
#include <thread>

#include <fmt/format.h>
#include <poll.h>

#include "capstan/base/failure.h"
#include "capstan/base/text.h"
#include "capstan/cluster/token.h"
#include "capstan/launch/child.h"
#include "capstan/launch/temporary_folder.h"
#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(100);
constexpr auto kStoppedTimeout = std::chrono::seconds(3);
// For a process to end after it has closed its output, or at the end of its input.
constexpr auto kEndTimeout = std::chrono::seconds(10);
// For the process that failed first to be reported, if another one has noticed its loss before.
constexpr auto kCauseTimeout = std::chrono::seconds(2);
constexpr std::size_t kLongestMessage = 500;

struct Process {
  std::string name;  // "trainer 1"
  std::filesystem::path log;
  launch::Child child;
  // Whether an answer is of the kind that the last command asks for; null: none is expected.
  bool (*is_expected)(const Answer&) = nullptr;
  std::optional<Answer> answer = {};  // to the last command; not yet taken
  Answer::Progress progress = {};
  std::optional<TimePoint> stopped_at = {};
  bool killed = false;  // because it was stopped
};

// Use from one thread. The destructor kills all processes.
class Launcher {
 public:
  Launcher(const LaunchOptions& options, job::StopToken& stop) : options_(options), stop_(stop) {
    const auto plan_file = folder_.path() / "plan.json";
    std::ofstream file(plan_file);
    file << options.plan.to_json().dump();
    file.close();
    if (!file) throw UserError(fmt::format("{}: cannot be written", plan_file.string()));
    for (std::uint32_t i = 0; i < options.plan.servers; ++i)
      start(fmt::format("server {}", options.plan.trainers + i), fmt::format("--as-server={}", i), plan_file);
    for (std::uint32_t r = 0; r < options.plan.trainers; ++r)
      start(fmt::format("trainer {}", r), fmt::format("--as-trainer={}", r), plan_file);
  }

  void run() {
    std::string group;
    for (auto& process : processes_) {
      const auto answer = take(process);
      if (&process == &trainers()[0]) group = answer.address;
    }
    for (run_ = 0; run_ <= options_.repeat; ++run_) {
      prepare(group);
      if (run_ == 0) pass_notes();
      auto reports = train();
      if (run_ > 0 && options_.on_run) options_.on_run(reports);
    }
    end();
  }

 private:
  std::span<Process> servers() { return std::span(processes_).first(options_.plan.servers); }
  std::span<Process> trainers() { return std::span(processes_).subspan(options_.plan.servers); }

  void start(std::string name, const std::string& role, const std::filesystem::path& plan_file) {
    launch::Child::Options child;
    child.arguments = options_.command;
    child.arguments.push_back(role);
    child.arguments.push_back("--plan=" + plan_file.string());
    // UCX would catch a crash and write a trace, even if it is not used.
    child.environment = {fmt::format("{}={}", cluster::kTokenVariable, token_.text()),
                         "UCX_HANDLE_ERRORS=none"};
    auto log_name = name + ".log";
    std::ranges::replace(log_name, ' ', '-');
    auto log = (options_.plan.save.empty() ? folder_.path() : options_.plan.save) / log_name;
    std::filesystem::remove(log);  // of an earlier measurement; what it says would count as this one's words
    child.error_log = log;
    child.read_output = child.write_input = true;
    processes_.push_back(
        {std::move(name), std::move(log), launch::Child(child), [](const Answer& a) { return a.started; }});
  }

  void send(Process& process, const Command& command, bool (*is_expected)(const Answer&)) {
    process.is_expected = is_expected;
    // If the process is gone, the next poll() finds out why.
    (void)process.child.write_input(command.line());
  }

  Answer take(Process& process) {
    while (!process.answer) poll();
    auto answer = std::move(*process.answer);
    process.answer.reset();
    return answer;
  }

  void prepare(const std::string& group) {
    Command command{Command::Kind::kPrepare, run_, group, {}};
    const auto is_ready = [](const Answer& a) { return a.ready; };
    for (auto& server : servers()) {
      send(server, command, is_ready);
      command.servers.push_back(take(server).address);
    }
    for (auto& trainer : trainers()) send(trainer, command, is_ready);
    for (auto& trainer : trainers()) (void)take(trainer);
  }

  RunReports train() {
    for (auto& trainer : trainers()) trainer.progress = {};
    const auto is_done = [](const Answer& a) { return a.done.has_value(); };
    RunReports out;
    for (auto& trainer : trainers()) send(trainer, {Command::Kind::kRun, run_, {}, {}}, is_done);
    for (auto& trainer : trainers()) out.trainers.push_back(*take(trainer).done);
    for (auto& server : servers()) send(server, {Command::Kind::kReport, run_, {}, {}}, is_done);
    for (auto& server : servers()) out.servers.push_back(*take(server).done);
    return out;
  }

  void end() {
    is_ending_ = true;
    for (auto& process : processes_) process.child.close_input();
    for (auto& process : processes_) {
      // Again for each: many processes that end at the same time take long.
      const auto deadline = SteadyClock::now() + kEndTimeout;
      while (!process.child.poll() && SteadyClock::now() < deadline) poll();
      const auto exit = process.child.poll();
      if (!exit) fail(process, "did not end after the last run");
      if (exit->code != kSuccess) fail_ended(process);
    }
  }

  void pass_notes() {
    constexpr std::string_view kNote = "note: ";
    std::ifstream log(trainers()[0].log);
    for (std::string line; std::getline(log, line);)
      if (line.starts_with(kNote) && options_.on_note) options_.on_note(printable(line.substr(kNote.size())));
  }

  // Waits for something to happen, reads what processes have written, and throws Failure if one has failed.
  void poll() {
    std::vector<pollfd> fds = {{stop_.fd(), POLLIN, 0}};
    for (const auto& process : processes_)
      if (!process.child.output_ended()) fds.push_back({process.child.output_fd(), POLLIN, 0});
    (void)::poll(fds.data(), fds.size(), kPollInterval.count());
    if (stop_.requests() > 0) throw Failure(kInterrupted, "interrupted");
    for (auto& process : processes_) read(process);
    if (!is_ending_) check_all();
  }

  void read(Process& process) {
    while (const auto line = process.child.read_line(SteadyClock::now())) {
      auto answer = parsed(process, *line);
      if (!answer.progress) {
        if (!process.is_expected || !process.is_expected(answer))
          fail(process, "an answer that was not expected: " + answer.line());
        process.is_expected = nullptr;
        process.answer = std::move(answer);
        continue;
      }
      process.progress = *answer.progress;
      if (!options_.on_progress) continue;
      const auto step = [](const Process& p) { return p.progress.step; };
      const auto slowest = step(*std::ranges::min_element(trainers(), {}, step));
      options_.on_progress(LaunchProgress{run_, slowest, process.progress.of});
    }
  }

  static Answer parsed(const Process& process, const std::string& line) {
    try {
      return Answer::parse(line);
    } catch (const std::runtime_error& error) {
      fail(process, error.what());
    }
  }

  void check_all() {
    const auto has_ended = [](Process& p) { return p.child.poll() || p.child.output_ended(); };
    const auto first = std::ranges::find_if(processes_, has_ended);
    if (first != processes_.end()) fail_ended(cause_of(*first));
    if (SteadyClock::now() < next_check_) return;
    next_check_ = SteadyClock::now() + kPollInterval;
    for (auto& process : processes_) check_stopped(process);
  }

  // Peers of a process that stays stopped would wait for it forever.
  static void check_stopped(Process& process) {
    if (!process.child.is_stopped()) {
      process.stopped_at.reset();
    } else if (!process.stopped_at) {
      process.stopped_at = SteadyClock::now();
    } else if (SteadyClock::now() - *process.stopped_at > kStoppedTimeout) {
      process.killed = true;
      process.child.signal(SIGKILL);
    }
  }

  // Of the processes that have ended, the one because of which others did: one that was killed, otherwise one
  // that ended for another reason than a lost peer. It may be reported after those that have noticed its end.
  Process& cause_of(Process& first) {
    const auto begin = SteadyClock::now();
    for (;;) {
      Process* failed = nullptr;
      for (auto& process : processes_) {
        const auto exit = process.child.poll();
        if (exit && exit->signal != 0) return process;
        if (!failed && exit && exit->code != kSuccess && exit->code != kLost) failed = &process;
      }
      const auto waited = SteadyClock::now() - begin;
      if (failed && waited >= kPollInterval) return *failed;
      if (waited >= kCauseTimeout) return first;
      std::this_thread::sleep_for(kPollInterval / 10);
    }
  }

  [[noreturn]] void fail_ended(Process& process) {
    const auto words = last_words(process);
    // One that has said why ends soon, unless many end at the same time.
    const auto exit = process.child.wait(SteadyClock::now() + (words.empty() ? Duration() : kEndTimeout));
    if (process.killed) fail(process, "was stopped (SIGSTOP) for 3 s, and has been killed", kLost);
    if (!exit) fail(process, "closed its standard output");
    if (exit->signal != 0)
      fail(process, exit->text() + (words.empty() ? "" : "; its last line: " + words), kLost);
    const auto code = exit->code == kWrongUsage ? kWrongUsage : exit->code == kLost ? kLost : kFailed;
    if (exit->code == kSuccess || words.empty())
      fail(process, fmt::format("ended before its work was done ({})", exit->text()), code);
    fail(process, words, code);
  }

  // Without the name of the program.
  std::string last_words(const Process& process) const {
    auto words = launch::last_line(process.log);
    const auto prefix = options_.program + ": ";
    return words.starts_with(prefix) ? words.substr(prefix.size()) : words;
  }

  [[noreturn]] static void fail(const Process& process, const std::string& what, ExitCode code = kFailed) {
    throw Failure(code, fmt::format("{}: {}", process.name, shortened(printable(what), kLongestMessage)));
  }

  const LaunchOptions& options_;
  job::StopToken& stop_;
  const cluster::Token token_ = cluster::Token::generate();
  const launch::TemporaryFolder folder_{"lab"};
  std::uint32_t run_ = 0;
  bool is_ending_ = false;
  TimePoint next_check_ = SteadyClock::now();
  std::vector<Process> processes_;  // servers, then trainers. Last: they end before their folder is removed.
};

}  // namespace

void launch(const LaunchOptions& options, job::StopToken& stop) {
  Launcher(options, stop).run();
}

}  // namespace capstan::lab
