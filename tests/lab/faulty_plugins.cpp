// The strategy lab with plug-ins that fail, for failures_test.cpp.

#include <csignal>
#include <cstdio>
#include <stdexcept>

#include <torch/nn/modules/linear.h>

#include "capstan/cli/bench_ps.h"
#include "capstan/lab/ddp_trainer.h"
#include "capstan/lab/registry.h"
#include "capstan/user_error.h"

namespace {

namespace lab = capstan::lab;

constexpr std::int64_t kSize = 8;

struct Ones : lab::Data {
  std::int64_t size() const override { return 64; }
  lab::Sample item(std::int64_t) override { return {at::ones({kSize}), at::ones({}, at::kLong)}; }
};

struct FaultyData final : Ones {
  lab::Sample item(std::int64_t index) override {
    if (index == 40) throw std::runtime_error("sample 40\nis damaged");
    return Ones::item(index);
  }
};

struct Linear : lab::Model {
  Linear() { register_module("linear", linear); }
  at::Tensor forward(const at::Tensor& input) override { return linear(input); }
  torch::nn::Linear linear{kSize, 2};
};

struct FaultyModel final : Linear {
  at::Tensor forward(const at::Tensor& input) override {
    if (++calls == 5) throw std::runtime_error("the fifth forward pass");
    return Linear::forward(input);
  }
  int calls = 0;
};

// Fails in its third bucket, on one trainer.
struct FaultyTrainer final : lab::DdpTrainerBase {
  FaultyTrainer(const lab::TrainerContext& context, std::function<void()> fault)
      : DdpTrainerBase(context), fail(std::move(fault)) {}
  bool uses_servers(bool) const override { return true; }
  void on_bucket(lab::Bucket& bucket) override {
    if (context().rank == 1 && ++buckets == 3) fail();
    average_by_servers(bucket);
  }
  const std::function<void()> fail;
  int buckets = 0;
};

struct FaultyServer final : lab::Server {
  void process_gradient(lab::Slot& slot, std::uint32_t, const lab::Gradient&) override {
    if (slot.batch() == 3) throw std::runtime_error("batch 3");
  }
  void average(lab::Slot& slot) override { std::ranges::fill(slot.values(), 0.0f); }
};

}  // namespace

int main(int argc, char** argv) {
  lab::Registry registry;
  registry.data["Ones"] = [](const auto&, auto) { return std::make_unique<Ones>(); };
  registry.data["FaultyData"] = [](const auto&, auto) { return std::make_unique<FaultyData>(); };
  registry.models["Linear"] = [](const auto&) { return std::make_shared<Linear>(); };
  registry.models["FaultyModel"] = [](const auto&) { return std::make_shared<FaultyModel>(); };
  registry.servers["FaultyServer"] = [](const auto&) { return std::make_unique<FaultyServer>(); };
  const auto add_trainer = [&](const char* name, std::function<void()> fault) {
    registry.trainers[name] = [fault](const auto&, const auto& context) {
      return std::make_unique<FaultyTrainer>(context, fault);
    };
  };
  add_trainer("ThrowingTrainer", [] { throw std::runtime_error("out of luck"); });
  add_trainer("StrangeTrainer", [] { throw 7; });
  add_trainer("RefusingTrainer", [] { throw capstan::UserError("most 0: should be positive"); });
  add_trainer("AbortingTrainer", [] { std::abort(); });
  add_trainer("CrashingTrainer", [] {
    std::fputs("about to crash\n", stdout);
    std::fflush(stdout);
    std::raise(SIGSEGV);
  });
  add_trainer("LeavingTrainer", [] { std::exit(0); });
  registry.criteria["faulty"] = [](const auto&, const auto&) -> at::Tensor {
    throw std::runtime_error("no loss today");
  };
  return capstan::cli::run_lab_program(argc, argv, registry);
}
