#include "capstan/job/evaluator_process.h"

#include <fstream>

#include <fmt/format.h>

#include "capstan/checkpoint/run_checkpoints.h"

namespace capstan::job {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(100);
constexpr auto kNoticeDelay = std::chrono::seconds(1);  // before the user is notified of the wait
constexpr auto kExitTimeout = std::chrono::seconds(5);  // after a stop request, before it is killed

}  // namespace

EvaluatorProcess::EvaluatorProcess(bool requested, const std::filesystem::path& run, Environment environment)
    : run_(run), log_(run / "evaluator.log"), environment_(environment) {
  if (!requested) return;
  std::error_code ignored;
  std::filesystem::remove(log_, ignored);
  child_.emplace(launch::Child::Options{
      {environment.program.trainer, "eval", "--train-dir=" + run.string()}, {}, log_, false});
}

void EvaluatorProcess::report_log() {
  if (!child_) return;
  std::ifstream in(log_);
  in.seekg(log_offset_);
  for (std::string line; std::getline(in, line) && !in.eof(); log_offset_ = in.tellg())
    environment_.events.message("evaluator: " + line);
}

void EvaluatorProcess::finish() {
  if (!child_) return;
  const auto begin = environment_.now();
  const auto asked = environment_.stop.requests();
  bool notified = false;
  std::optional<launch::Exit> exit;
  if (!checkpoint::is_finished(run_)) {
    child_->signal(launch::kStopSignal);
    exit = child_->wait(SteadyClock::now() + kExitTimeout);
    report_log();
    return environment_.events.message(
        fmt::format("the evaluator was stopped: the run could not be marked as finished; evaluate the rest "
                    "with {} eval --once",
                    environment_.program.name));
  }
  while (!exit && environment_.stop.requests() == asked) {
    exit = child_->wait(SteadyClock::now() + kPollInterval);
    report_log();
    if (exit || notified || environment_.now() - begin <= kNoticeDelay) continue;
    environment_.events.message("waiting for the evaluator (Ctrl-C to stop waiting)");
    notified = true;
  }
  if (exit && exit->code != 0)
    environment_.events.message(fmt::format("the evaluator failed ({}); see evaluator.log", exit->text()));
}

}  // namespace capstan::job
