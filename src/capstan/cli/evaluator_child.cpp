#include "capstan/cli/evaluator_child.h"

#include <fstream>

#include <fmt/format.h>

namespace capstan::cli {
namespace {

constexpr auto kPatience = std::chrono::seconds(1);  // after which the user hears what is waited for

}  // namespace

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
  bool told = false;
  for (const auto begin = SteadyClock::now(); !exit && !hurry();) {
    exit = child_->wait(SteadyClock::now() + std::chrono::milliseconds(100));
    look(say);
    if (!exit && !told && SteadyClock::now() - begin > kPatience) {
      say("waiting for the evaluator (Ctrl-C to leave it)");
      told = true;
    }
  }
  if (exit && exit->code != 0) say(fmt::format("the evaluator ended badly ({})", exit->text()));
}

}  // namespace capstan::cli
