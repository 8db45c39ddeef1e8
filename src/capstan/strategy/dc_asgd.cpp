#include <fmt/format.h>

#include "capstan/strategy/argument_reader.h"
#include "capstan/strategy/strategies.h"

namespace capstan::strategy {
namespace {

// Asynchronous with delay compensation: every gradient is one update, corrected for the change of the weights
// since the worker pulled them.
class DelayCompensated final : public Strategy {
 public:
  DelayCompensated(double strength, bool adaptive) : strength_(strength), adaptive_(adaptive) {}

  std::string spelling() const override {
    return fmt::format("{}:{}", adaptive_ ? "dc-asgd-a" : "dc-asgd", text_of(strength_));
  }
  Trigger trigger(const View& view) const override { return {view.buffer.empty() ? 0u : 1u}; }
  double weight(const Push&, const Merging&) const override { return 1; }
  UpdateRule apply(std::span<const Push>, Version) const override {
    using Kind = UpdateRule::Kind;
    return {adaptive_ ? Kind::kCompensateAdaptive : Kind::kCompensate, 1, strength_};
  }
  bool needs_mean_square() const override { return adaptive_; }
  bool compensates() const override { return true; }
  bool workers_idle_during_update(std::uint32_t workers) const override { return workers == 1; }
  std::uint32_t pushes_per_update(std::uint32_t) const override { return 1; }

 private:
  const double strength_;
  const bool adaptive_;
};

std::unique_ptr<Strategy> make(const std::string& text, const char* spelling, double missing, bool adaptive) {
  ArgumentReader options(text, spelling);
  const auto strength = options.number("LAMBDA", missing, 0, 1e6);
  options.end();
  return std::make_unique<DelayCompensated>(strength, adaptive);
}

}  // namespace

std::unique_ptr<Strategy> make_dc_asgd(const std::string& options, std::uint32_t) {
  return make(options, "dc-asgd:LAMBDA", 0.04, false);
}

std::unique_ptr<Strategy> make_dc_asgd_adaptive(const std::string& options, std::uint32_t) {
  return make(options, "dc-asgd-a:LAMBDA", 0.04, true);
}

}  // namespace capstan::strategy
