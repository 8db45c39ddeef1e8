#include "capstan/cli/evaluator_child.h"

#include <fstream>

#include <fmt/format.h>

namespace capstan::cli {

EvaluatorChild::EvaluatorChild(bool wanted, const std::filesystem::path& run) : log_(run / "evaluator.log") {
  if (!wanted) return;
  std::error_code ignored;
  std::filesystem::remove(log_, ignored);
  child_.emplace(launch::Child::Options{
      {launch::program("capstan-torch"), "eval", "--train-dir=" + run.string()}, {}, log_, false});
}

void EvaluatorChild::look(const Say& say) {
  if (!child_) return;
  std::ifstream in(log_);
  in.seekg(said_);
  for (std::string line; std::getline(in, line) && !in.eof(); said_ = in.tellg()) say("evaluator: " + line);
}

void EvaluatorChild::finish(const Say& say, const std::function<bool()>& hurry) {
  if (!child_) return;
  std::optional<launch::Exit> exit;
  while (!exit && !hurry()) {
    exit = child_->wait(SteadyClock::now() + std::chrono::milliseconds(100));
    look(say);
  }
  if (exit && exit->code != 0) say(fmt::format("the evaluator ended badly ({})", exit->text()));
}

}  // namespace capstan::cli
