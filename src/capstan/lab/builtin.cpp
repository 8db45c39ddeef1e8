#include "capstan/lab/builtin.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/l1_loss.h>
#include <ATen/ops/mse_loss.h>
#include <fmt/format.h>

#include "capstan/averaging/rules.h"
#include "capstan/lab/ddp_hooks.h"
#include "capstan/lab/dummy_data.h"
#include "capstan/lab/dummy_model.h"
#include "capstan/lab/linear_model.h"
#include "capstan/lab/local_trainer.h"
#include "capstan/lab/random_vectors.h"
#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

template <class Rule>
std::unique_ptr<Server> make_server(const Configuration& values) {
  values.ignore("lock_count");  // of older files; there are no locks
  return std::make_unique<Rule>();
}

template <class Table>
void add(const char* kind, Table& to, const Table& own) {
  for (const auto& [name, make] : own)
    if (!to.emplace(name, make).second)
      throw UserError(fmt::format("the {} {} is one of Capstan's: give yours another name", kind, name));
}

}  // namespace

Registry builtin() {
  return {
      .data = {{"DummyData", make_dummy_data}, {"RandomVectors", make_random_vectors}},
      .models = {{"DummyModel", make_dummy_model}, {"LinearModel", make_linear_model}},
      .trainers = {{"DdpTrainer", make_ddp_trainer}, {"LocalTrainer", make_local_trainer}},
      .servers = {{"AverageParameterServer", make_server<averaging::AverageOnArrival>},
                  {"AverageBatchParameterServer", make_server<averaging::AverageInRankOrder>}},
      .criteria = {{"cel", [](auto& output, auto& target) { return at::cross_entropy_loss(output, target); }},
                   {"l1", [](auto& output, auto& target) { return at::l1_loss(output, target); }},
                   {"mse", [](auto& output, auto& target) { return at::mse_loss(output, target); }}},
  };
}

Registry with_builtin(const Registry& own) {
  auto all = builtin();
  add("data", all.data, own.data);
  add("model", all.models, own.models);
  add("trainer", all.trainers, own.trainers);
  add("server", all.servers, own.servers);
  add("criterion", all.criteria, own.criteria);
  return all;
}

}  // namespace capstan::lab
