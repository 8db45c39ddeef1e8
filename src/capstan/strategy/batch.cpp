#include <algorithm>

#include <fmt/format.h>

#include "capstan/strategy/argument_reader.h"
#include "capstan/strategy/strategies.h"
#include "capstan/user_error.h"

namespace capstan::strategy {
namespace {

// Every K buffered gradients make one update.
class Batch final : public Strategy {
 public:
  explicit Batch(std::uint32_t k) : k_(k) {}

  std::string spelling() const override { return fmt::format("batch:{}", k_); }
  Trigger trigger(const View& view) const override {
    const auto enough = std::min<std::size_t>(k_, view.live.size());
    return {enough > 0 && view.buffer.size() >= enough ? enough : 0};
  }
  bool workers_idle_during_update(std::uint32_t workers) const override { return k_ >= workers; }
  std::uint32_t pushes_per_update(std::uint32_t) const override { return k_; }

 private:
  const std::uint32_t k_;
};

}  // namespace

std::unique_ptr<Strategy> make_batch(const std::string& text, std::uint32_t workers) {
  ArgumentReader options(text, "batch:K");
  const auto k = static_cast<std::uint32_t>(options.whole("K", workers, 1, UINT32_MAX));
  options.end();
  if (k > workers)
    throw UserError(
        fmt::format("batch:{0} needs {0} workers, but the job has {1}: K may be at most {1}", k, workers));
  return std::make_unique<Batch>(k);
}

}  // namespace capstan::strategy
