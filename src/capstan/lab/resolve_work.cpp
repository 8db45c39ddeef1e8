#include "capstan/lab/resolve_work.h"

#include <algorithm>

#include <fmt/format.h>

#include "capstan/config/tasks.h"
#include "capstan/data/dataset.h"
#include "capstan/lab/names.h"
#include "capstan/layouts/networks.h"
#include "capstan/optimizer/spec.h"
#include "capstan/strategy/strategy_spec.h"
#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

template <class Check>
void check_option(PlanDraft& draft, const std::string& option, Check check) {
  try {
    check();
  } catch (const UserError& error) {
    draft.fail(option, error.what());
  }
}

void check_strategy(PlanDraft& draft) {
  const auto& plan = draft.plan;
  if (!draft.uses_strategy) {
    if (draft.is_given("optimizer"))
      draft.fail("optimizer", fmt::format("is an option of strategies; {} makes SGD steps", plan.trainer));
    return;
  }
  if (has_servers(plan.trainer))
    check_option(draft, "trainer",
                 [&] { (void)strategy::parse_strategy_spec(plan.trainer, std::max(1u, plan.trainers)); });
  check_option(draft, "optimizer", [&] {
    (void)optimizer::parse_spec(plan.optimizer, [](optimizer::Kind kind) {
      optimizer::Options options;
      options.kind = kind;
      return options;
    });
  });
}

void check_model(PlanDraft& draft) {
  auto& plan = draft.plan;
  const auto in_file = entries(plan.model_config, Kind::kModel);
  if (contains(in_file, plan.model))
    return check_class(plugin_entry(plan, Kind::kModel), with_keys({}, draft.registry.models));
  auto known = with_keys(in_file, draft.registry.models);
  if (contains(known, plan.model)) return;
  draft.has_own_loss = true;
  auto network = plan.model;
  std::ranges::replace(network, '_', '-');
  const auto is_network = [&](const auto& info) { return info.name == network; };
  const auto is_task = [&](const auto& task) { return task.name == plan.model; };
  if (std::ranges::any_of(layouts::networks(), is_network)) {
    if (!draft.is_given("data")) plan.data = "digits";
  } else if (std::ranges::any_of(config::tasks(), is_task)) {
    if (!draft.is_given("data")) plan.data.clear();
  } else {
    for (const auto& task : config::tasks()) known.emplace_back(task.name);
    for (const auto& info : layouts::networks()) known.emplace_back(info.name);
    draft.fail_unknown("model", "model", known, plan.model);
  }
}

void check_data(PlanDraft& draft) {
  const auto& plan = draft.plan;
  if (plan.data.empty()) return;
  const auto in_file = entries(plan.data_config, Kind::kData);
  if (contains(in_file, plan.data))
    return check_class(plugin_entry(plan, Kind::kData), with_keys({}, draft.registry.data));
  auto known = with_keys(in_file, draft.registry.data);
  for (const auto& name : data::dataset_names()) known.emplace_back(name);
  known.emplace_back("text");  // of the task char-lm
  if (!contains(known, plan.data.substr(0, plan.data.find(':'))))
    draft.fail_unknown("data", "data", known, plan.data);
}

void check_criterion(PlanDraft& draft) {
  if (draft.has_own_loss) {
    if (draft.is_given("create-criterion") && draft.plan.criterion != Plan().criterion)
      draft.fail("create-criterion",
                 fmt::format("is for models of the configurations; {} has its own loss", draft.plan.model));
    draft.plan.criterion.clear();
    return;
  }
  const auto known = with_keys({}, draft.registry.criteria);
  if (!contains(known, draft.plan.criterion))
    draft.fail_unknown("create-criterion", "criterion", known, draft.plan.criterion);
}

}  // namespace

void resolve_work(PlanDraft& draft) {
  check_strategy(draft);
  check_model(draft);
  check_data(draft);
  check_criterion(draft);
}

}  // namespace capstan::lab
