#include "capstan/base/user_error.h"
#include "capstan/strategy/strategies.h"

namespace capstan::strategy {
namespace {

// Every gradient is one update, on arrival; damped, with a learning rate that falls as it is older.
class Async final : public Strategy {
 public:
  explicit Async(bool damped) : damped_(damped) {}

  std::string spelling() const override { return damped_ ? "async:damped" : "async"; }
  std::size_t trigger(const View& view) const override { return view.buffer.empty() ? 0 : 1; }
  double weight(const Push&, std::span<const Push>) const override { return 1; }
  double rate(std::span<const Push> merged, Version now) const override {
    return damped_ ? 1 / (1 + static_cast<double>(staleness(merged[0], now))) : 1;
  }
  bool parks_all(std::uint32_t workers) const override { return workers == 1; }
  std::uint32_t pushes_per_update(std::uint32_t) const override { return 1; }

 private:
  const bool damped_;
};

}  // namespace

std::unique_ptr<Strategy> make_async(const std::string& options, std::uint32_t) {
  if (!options.empty() && options != "damped")
    throw UserError("strategy async may be async or async:damped, not async:" + options);
  return std::make_unique<Async>(!options.empty());
}

}  // namespace capstan::strategy
