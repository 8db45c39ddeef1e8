#include "capstan/lab/server_process.h"

#include <optional>

#include "capstan/cluster/token.h"
#include "capstan/lab/assembly.h"
#include "capstan/lab/average_server.h"
#include "capstan/lab/controlled_process.h"
#include "capstan/lab/names.h"
#include "capstan/lab/strategy_server.h"

namespace capstan::lab {
namespace {

class ServerProcess {
 public:
  ServerProcess(const Plan& plan, const Registry& registry, std::uint32_t index)
      : plan_(plan), registry_(registry), index_(index), token_(cluster::find_token({})) {
    metrics_.set_enabled(plan.timers);
  }

  void run() {
    Answer started;
    started.started = true;
    control_.answer(started);
    while (const auto command = control_.next()) {
      if (command->kind == Command::Kind::kPrepare) prepare(*command);
      if (command->kind == Command::Kind::kReport) report();
    }
  }

 private:
  void prepare(const Command& command) {
    strategy_.reset();
    metrics_.clear();
    if (is_strategy(plan_.trainer)) {
      strategy_.emplace(plan_, index_, command.run, command.servers, token_, metrics_);
    } else if (average_) {
      average_->reset_state();
    } else {
      average_.emplace(plan_, index_, token_, make_server(plan_, registry_), metrics_);
    }
    Answer ready;
    ready.ready = true;
    ready.address = strategy_ ? strategy_->address() : average_->address();
    control_.answer(ready);
  }

  void report() {
    if (strategy_) strategy_->finish();
    Answer done;
    done.done.emplace();
    done.done->series = metrics_.series();
    control_.answer(done);
  }

  const Plan& plan_;
  const Registry& registry_;
  const std::uint32_t index_;
  const cluster::Token token_;
  ControlledProcess control_;
  MetricsLogger metrics_;
  std::optional<AverageServer> average_;    // of all runs
  std::optional<StrategyServer> strategy_;  // of one run
};

}  // namespace

void run_server_process(const Plan& plan, const Registry& registry, std::uint32_t index) {
  ServerProcess(plan, registry, index).run();
}

}  // namespace capstan::lab
