#include <algorithm>

#include <fmt/format.h>

#include "capstan/strategy/argument_reader.h"
#include "capstan/strategy/strategies.h"
#include "capstan/user_error.h"

namespace capstan::strategy {
namespace {

// DiLoCo that waits for `enough` workers and then for `grace`: the pushes that have arrived by then make the
// outer step, weighted by samples; later ones count for the next.
class DecoupledDiLoCo final : public Strategy {
 public:
  DecoupledDiLoCo(std::uint64_t steps, std::uint32_t enough, Duration grace)
      : steps_(steps), enough_(enough), grace_(grace) {}

  std::string spelling() const override {
    return fmt::format("decoupled-diloco:{}:{}:{}", steps_, enough_, text_of(grace_));
  }
  Trigger trigger(const View& view) const override {
    const auto enough = std::min<std::size_t>(enough_, view.live.size());
    if (enough == 0 || view.buffer.size() < enough) return {};
    if (view.buffer.size() >= view.live.size()) return {view.buffer.size()};
    const auto until = view.buffer[enough - 1].arrived + grace_;
    if (view.now >= until) return {view.buffer.size()};
    return {0, until};
  }
  LocalSteps local_steps() const override { return {LocalSteps::Payload::kDelta, steps_, 0, 1, "adamw"}; }
  std::optional<OuterStep> outer() const override { return OuterStep{0.7, 0.9}; }
  bool workers_idle_during_update(std::uint32_t workers) const override { return enough_ >= workers; }
  std::uint32_t pushes_per_update(std::uint32_t) const override { return enough_; }

 private:
  const std::uint64_t steps_;
  const std::uint32_t enough_;
  const Duration grace_;
};

}  // namespace

std::unique_ptr<Strategy> make_decoupled_diloco(const std::string& text, std::uint32_t workers) {
  ArgumentReader options(text, "decoupled-diloco:H:K:GRACE");
  const auto steps = options.whole("H", 500, 1, 1'000'000'000);
  const auto enough = static_cast<std::uint32_t>(options.whole("K", (workers + 1) / 2, 1, UINT32_MAX));
  const auto grace = options.time("GRACE", std::chrono::seconds(1));
  options.end();
  if (enough > workers)
    throw UserError(
        fmt::format("strategy decoupled-diloco:H:K:GRACE: K is {}, but the job has {} workers: K may be "
                    "at most {}",
                    enough, workers, workers));
  return std::make_unique<DecoupledDiLoCo>(steps, enough, grace);
}

}  // namespace capstan::strategy
