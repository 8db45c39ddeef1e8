#pragma once

#include <map>
#include <vector>

#include "capstan/averaging/buckets.h"
#include "capstan/lab/server.h"

namespace capstan::averaging {

using lab::Slot;
// The arithmetic of an averaging server.
using Rule = lab::Server;

// Adds each gradient when it arrives. The first is kept in the trainer's memory, and the last is added in the
// same pass that divides, so that with two trainers no pass but the last touches memory. With more than two,
// the result depends on the order of arrival in its last bits.
class AverageOnArrival final : public Rule {
 public:
  void process_gradient(Slot& slot, std::uint32_t trainer, const Gradient& gradient) override;
  void average(Slot& slot) override;
  void reset_state() override { sums_.clear(); }
  std::size_t work(const Slot& slot, std::uint32_t arrival) const override;

 private:
  struct Buffer {
    std::vector<std::uint32_t> rows;
    std::vector<float> values;
  };
  // Of one bucket. `sum` refers to the first gradient, then to a buffer.
  struct Sum {
    Gradient sum, last;
    Buffer buffers[2];  // the sum of rows moves from one to the other
    int current = 0;
  };

  static void add_dense(Slot& slot, Sum& sum, const Gradient& gradient);
  static void add_rows(Slot& slot, Sum& sum, const Gradient& gradient);

  std::map<std::uint32_t, Sum> sums_;  // by bucket
};

// Keeps the gradients and averages them in rank order when all have arrived: the result does not depend on
// the order of arrival.
class AverageInRankOrder final : public Rule {
 public:
  void process_gradient(Slot& slot, std::uint32_t trainer, const Gradient& gradient) override;
  void average(Slot& slot) override;
  void reset_state() override { kept_.clear(); }
  std::size_t work(const Slot&, std::uint32_t) const override { return 0; }

 private:
  std::map<std::uint32_t, std::vector<Gradient>> kept_;  // by bucket and rank
};

}  // namespace capstan::averaging
