#include <fmt/format.h>

#include "capstan/strategy/argument_reader.h"
#include "capstan/strategy/strategies.h"

namespace capstan::strategy {
namespace {

// After `steps` local steps all workers continue with the mean of their weights.
class LocalSgd final : public Strategy {
 public:
  explicit LocalSgd(std::uint64_t steps) : steps_(steps) {}

  std::string spelling() const override { return fmt::format("local-sgd:{}", steps_); }
  Trigger trigger(const View& view) const override { return when_all_have_pushed(view); }
  double weight(const Push&, const Merging& merging) const override {
    return 1.0 / static_cast<double>(merging.pushes);
  }
  UpdateRule apply(std::span<const Push>, Version) const override { return {UpdateRule::Kind::kMove, 1, 0}; }
  LocalSteps local_steps() const override { return {LocalSteps::Payload::kWeights, steps_, 0, 1}; }
  bool workers_idle_during_update(std::uint32_t) const override { return true; }
  std::uint32_t pushes_per_update(std::uint32_t workers) const override { return workers; }

 private:
  const std::uint64_t steps_;
};

}  // namespace

std::unique_ptr<Strategy> make_local_sgd(const std::string& text, std::uint32_t) {
  ArgumentReader options(text, "local-sgd:H");
  const auto steps = options.whole("H", 10, 1, 1'000'000'000);
  options.end();
  return std::make_unique<LocalSgd>(steps);
}

}  // namespace capstan::strategy
