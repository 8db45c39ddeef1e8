#include <fmt/format.h>

#include "capstan/strategy/argument_reader.h"
#include "capstan/strategy/strategies.h"
#include "capstan/user_error.h"

namespace capstan::strategy {
namespace {

// Synchronous with `spare` backup workers: the first (workers - spare) gradients of a step make the update,
// later ones of that step are dropped.
class Backup final : public Strategy {
 public:
  explicit Backup(std::uint32_t spare) : spare_(spare) {}

  std::string spelling() const override { return fmt::format("backup:{}", spare_); }
  Admission admit(const Push& push, const View& view) const override {
    return push.step == view.version ? Admission::kTake : Admission::kDrop;
  }
  Trigger trigger(const View& view) const override {
    const auto enough = view.live.size() > spare_ ? view.live.size() - spare_ : std::size_t{1};
    return {!view.live.empty() && view.buffer.size() >= enough ? enough : 0};
  }
  bool drops_by_step() const override { return true; }
  bool workers_idle_during_update(std::uint32_t) const override { return spare_ == 0; }
  std::uint32_t pushes_per_update(std::uint32_t workers) const override { return workers; }

 private:
  const std::uint32_t spare_;
};

}  // namespace

std::unique_ptr<Strategy> make_backup(const std::string& text, std::uint32_t workers) {
  ArgumentReader options(text, "backup:B");
  const auto spare = static_cast<std::uint32_t>(options.whole("B", workers > 1 ? 1 : 0, 0, UINT32_MAX));
  options.end();
  if (spare >= workers)
    throw UserError(
        fmt::format("backup:{} leaves none of {} workers: B may be at most {}", spare, workers, workers - 1));
  return std::make_unique<Backup>(spare);
}

}  // namespace capstan::strategy
