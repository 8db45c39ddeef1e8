#include <fmt/format.h>

#include "capstan/strategy/argument_reader.h"
#include "capstan/strategy/strategies.h"

namespace capstan::strategy {
namespace {

// Workers make many local steps; then servers make an outer step with the mean of the workers' deltas.
class DiLoCo final : public Strategy {
 public:
  explicit DiLoCo(std::uint64_t steps) : steps_(steps) {}

  std::string spelling() const override { return fmt::format("diloco:{}", steps_); }
  Trigger trigger(const View& view) const override { return when_all_have_pushed(view); }
  double weight(const Push&, const Merging& merging) const override {
    return 1.0 / static_cast<double>(merging.pushes);
  }
  LocalSteps local_steps() const override { return {LocalSteps::Payload::kDelta, steps_, 0, 1, "adamw"}; }
  std::optional<OuterStep> outer() const override { return OuterStep{0.7, 0.9}; }
  bool workers_idle_during_update(std::uint32_t) const override { return true; }
  std::uint32_t pushes_per_update(std::uint32_t workers) const override { return workers; }

 private:
  const std::uint64_t steps_;
};

}  // namespace

std::unique_ptr<Strategy> make_diloco(const std::string& text, std::uint32_t) {
  ArgumentReader options(text, "diloco:H");
  const auto steps = options.whole("H", 500, 1, 1'000'000'000);
  options.end();
  return std::make_unique<DiLoCo>(steps);
}

}  // namespace capstan::strategy
