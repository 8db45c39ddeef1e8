#include "capstan/base/user_error.h"
#include "capstan/strategy/strategies.h"

namespace capstan::strategy {
namespace {

// Every gradient is one update, on arrival.
class Async final : public Strategy {
 public:
  std::string spelling() const override { return "async"; }
  std::size_t trigger(const View& view) const override { return view.buffer.empty() ? 0 : 1; }
  double weight(const Push&, std::span<const Push>) const override { return 1; }
  bool parks_all(std::uint32_t workers) const override { return workers == 1; }
  std::uint32_t pushes_per_update(std::uint32_t) const override { return 1; }
};

}  // namespace

std::unique_ptr<Strategy> make_async(const std::string& options, std::uint32_t) {
  if (!options.empty()) throw UserError("strategy async takes no option, not \"" + options + "\"");
  return std::make_unique<Async>();
}

}  // namespace capstan::strategy
