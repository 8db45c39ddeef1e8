#include <limits>

#include <fmt/format.h>

#include "capstan/strategy/argument_reader.h"
#include "capstan/strategy/strategies.h"

namespace capstan::strategy {
namespace {

constexpr auto kNoBound = std::numeric_limits<std::uint64_t>::max();

// Stale synchronous parallel: every gradient is one update, on arrival; a worker that is more than `bound`
// steps ahead of the slowest worker waits.
class Ssp final : public Strategy {
 public:
  explicit Ssp(std::uint64_t bound) : bound_(bound) {}

  std::string spelling() const override {
    return bound_ == kNoBound ? "ssp:inf" : fmt::format("ssp:{}", bound_);
  }
  Trigger trigger(const View& view) const override { return {view.buffer.empty() ? 0u : 1u}; }
  double weight(const Push&, const Merging&) const override { return 1; }
  bool release(const LiveWorker& worker, const View& view) const override {
    return !worker.buffered && worker.pushes.value - view.slowest.value <= bound_;
  }
  bool workers_idle_during_update(std::uint32_t workers) const override { return workers == 1; }
  std::uint32_t pushes_per_update(std::uint32_t) const override { return 1; }

 private:
  const std::uint64_t bound_;
};

}  // namespace

std::unique_ptr<Strategy> make_ssp(const std::string& text, std::uint32_t) {
  ArgumentReader options(text, "ssp:S");
  const auto bound =
      options.is("inf") ? kNoBound : options.whole("S, the bound (or inf),", 3, 0, 1'000'000'000);
  options.end();
  return std::make_unique<Ssp>(bound);
}

}  // namespace capstan::strategy
