#include "capstan/strategy/argument_reader.h"
#include "capstan/strategy/strategies.h"

namespace capstan::strategy {
namespace {

// Every gradient is one update, on arrival. `damped` divides the learning rate by 1 + staleness.
class Async final : public Strategy {
 public:
  explicit Async(bool damped) : damped_(damped) {}

  std::string spelling() const override { return damped_ ? "async:damped" : "async"; }
  Trigger trigger(const View& view) const override { return {view.buffer.empty() ? 0u : 1u}; }
  double weight(const Push&, const Merging&) const override { return 1; }
  UpdateRule apply(std::span<const Push> merged, Version now) const override {
    return {.rate = damped_ ? 1 / (1 + static_cast<double>(staleness(merged[0], now))) : 1};
  }
  bool workers_idle_during_update(std::uint32_t workers) const override { return workers == 1; }
  std::uint32_t pushes_per_update(std::uint32_t) const override { return 1; }

 private:
  const bool damped_;
};

}  // namespace

std::unique_ptr<Strategy> make_async(const std::string& text, std::uint32_t) {
  ArgumentReader options(text, "async[:damped]");
  const bool damped = options.is("damped");
  options.end();
  return std::make_unique<Async>(damped);
}

}  // namespace capstan::strategy
