#include "capstan/lab/ddp_hooks.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capstan/lab/ddp_trainer.h"
#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

class DdpTrainer final : public DdpTrainerBase {
 public:
  DdpTrainer(const TrainerContext& context, const BucketSizes& sizes)
      : DdpTrainerBase(context, sizes),
        hook_(find_hook(context.hook)),
        blocks_(hook_.name == "hybrid_hook") {}

 private:
  bool uses_servers(bool is_sparse) const override {
    return hook_.uses_servers && (is_sparse || !hook_.uses_group);
  }

  void on_bucket(Bucket& bucket) override {
    if (uses_servers(bucket.is_sparse())) return average_by_servers(bucket);
    if (bucket.is_sparse() && blocks_) return average_by_allreduce_now(bucket);
    average_by_allreduce(bucket);
  }

  const DdpHook& hook_;
  const bool blocks_;  // for sparse buckets
};

std::uint64_t size_of(const Configuration& values, const char* key, std::uint64_t otherwise) {
  return values.has(key) ? static_cast<std::uint64_t>(values.integer(key, 1, 1 << 20)) << 20 : otherwise;
}

// What entries of older files have: none of it changes anything here.
void accept_old_values(const Configuration& values) {
  if (values.has("ps_name")) (void)values.text("ps_name");
  if (values.has("epochs")) values.ignore("epochs");
  if (values.has("backend") && values.text("backend") != "gloo")
    values.fail("backend", fmt::format("is {}: it needs CUDA devices; use gloo", values.text("backend")));
  if (values.has("use_cuda_rpc") && values.boolean("use_cuda_rpc"))
    values.fail("use_cuda_rpc", "is true: it needs CUDA devices; use false");
}

}  // namespace

const std::vector<DdpHook>& ddp_hooks() {
  static const std::vector<DdpHook> hooks = {{"allreduce_hook", false, true},
                                             {"hybrid_hook", false, true},
                                             {"rpc_hook", true, false},
                                             {"sparse_rpc_hook", true, true}};
  return hooks;
}

const DdpHook& find_hook(std::string_view name) {
  const auto found = std::ranges::find(ddp_hooks(), name, &DdpHook::name);
  if (found != ddp_hooks().end()) return *found;
  std::vector<std::string_view> names;
  for (const auto& hook : ddp_hooks()) names.push_back(hook.name);
  throw UserError(fmt::format("--ddp-hook {}: unknown; there are {}", name, fmt::join(names, ", ")));
}

std::unique_ptr<Trainer> make_ddp_trainer(const Configuration& values, const TrainerContext& context) {
  accept_old_values(values);
  BucketSizes sizes;
  sizes.first = size_of(values, "first_bucket_mb", sizes.first);
  sizes.others = size_of(values, "bucket_cap_mb", sizes.others);
  return std::make_unique<DdpTrainer>(context, sizes);
}

}  // namespace capstan::lab
