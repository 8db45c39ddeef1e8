#include "capstan/strategy/argument_reader.h"
#include "capstan/strategy/strategies.h"

namespace capstan::strategy {
namespace {

// Bulk-synchronous: the gradients of all live workers make one update.
class Sync final : public Strategy {
 public:
  std::string spelling() const override { return "sync"; }
  Trigger trigger(const View& view) const override { return when_all_have_pushed(view); }
  bool workers_idle_during_update(std::uint32_t) const override { return true; }
  std::uint32_t pushes_per_update(std::uint32_t workers) const override { return workers; }
};

}  // namespace

std::unique_ptr<Strategy> make_sync(const std::string& options, std::uint32_t) {
  ArgumentReader(options, "sync").end();
  return std::make_unique<Sync>();
}

}  // namespace capstan::strategy
