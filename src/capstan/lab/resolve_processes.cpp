#include "capstan/lab/resolve_processes.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "capstan/lab/ddp_hooks.h"
#include "capstan/lab/names.h"
#include "capstan/strategy/strategy.h"

namespace capstan::lab {
namespace {

Names known_trainers(const Names& in_file, const Names& classes) {
  auto names = in_file;
  for (const auto& name : classes)
    if (!contains(names, name)) names.push_back(name);
  names.insert(names.end(), {"single", "allreduce"});
  for (const auto& entry : strategy::table()) names.emplace_back(entry.name);
  return names;
}

// Each function decides about one subject; they run in the order of run().
class Processes {
 public:
  explicit Processes(PlanDraft& draft) : draft_(draft) {}

  void run() {
    choose_trainer();
    choose_hook();
    choose_counts();
    choose_server();
  }

 private:
  void choose_trainer() {
    if (!draft_.is_given("trainer") && draft_.is_given("server") && is_strategy(plan_.server))
      plan_.trainer = plan_.server;
    const auto in_file = entries(plan_.trainer_config, Kind::kTrainer);
    const auto entry = plugin_entry(plan_, Kind::kTrainer);
    const auto classes = with_keys({}, draft_.registry.trainers);
    alias_ = find_trainer_alias(entry.class_name);
    if (contains(in_file, plan_.trainer)) {
      if (!alias_) check_class(entry, classes);
      take_older_values(entry.values);
    } else if (alias_) {
      plan_.trainer = kDdpTrainer;
    } else if (!contains(classes, plan_.trainer)) {
      draft_.uses_strategy = is_strategy(plan_.trainer);
      if (!draft_.uses_strategy)
        draft_.fail_unknown("trainer", "trainer", known_trainers(in_file, classes), plan_.trainer);
    }
    is_ddp_ = alias_ || entry.class_name == kDdpTrainer;
    is_local_ = entry.class_name == kLocalTrainer;
  }

  // The trainers of older configuration files have some of today's options.
  void take_older_values(const Configuration& values) {
    if (values.has("epochs") && !draft_.is_given("epochs"))
      plan_.epochs = static_cast<std::uint64_t>(values.integer("epochs", 1));
    if (values.has("backend") && !draft_.is_given("backend")) plan_.backend = values.text("backend");
    if (values.has("use_cuda_rpc")) draft_.choices.use_cuda_rpc |= values.boolean("use_cuda_rpc");
  }

  void choose_hook() {
    if (draft_.uses_strategy || is_local_) {
      if (draft_.is_given("ddp-hook"))
        draft_.fail("ddp-hook", fmt::format("is an option of DdpTrainer; the trainer is {}{}",
                                            is_local_ ? "" : "the strategy ", plan_.trainer));
      plan_.hook.clear();
      return;
    }
    if (alias_) {
      if (draft_.is_given("ddp-hook") && plan_.hook != alias_->name && plan_.hook != alias_->hook)
        draft_.fail("ddp-hook", fmt::format("the trainer {} has {}; give DdpTrainer for another hook",
                                            alias_->name, alias_->hook));
      plan_.hook = alias_->hook;
    } else if (!draft_.is_given("ddp-hook") && draft_.is_given("nserver") && draft_.servers() == 0) {
      plan_.hook = "allreduce_hook";
    }
    Names known;
    for (const auto& hook : ddp_hooks()) known.emplace_back(hook.name);
    if (!contains(known, plan_.hook)) draft_.fail_unknown("ddp-hook", "hook", known, plan_.hook);
  }

  // What the trainer needs; none: a plug-in may use servers or not.
  std::optional<bool> uses_servers() const {
    if (draft_.uses_strategy) return has_servers(plan_.trainer);
    if (is_local_) return false;
    if (!is_ddp_) return {};
    return find_hook(plan_.hook).uses_servers;
  }

  // Of messages about servers.
  std::string subject() const {
    if (draft_.uses_strategy) return "the strategy " + plan_.trainer;
    return is_ddp_ ? "the hook " + plan_.hook : plan_.trainer;
  }

  void choose_counts() {
    const auto cuda_trainers = draft_.choices.cuda_trainers, cuda_servers = draft_.choices.cuda_servers;
    const bool is_single = draft_.uses_strategy && plan_.trainer == "single";
    if (is_single && draft_.is_given("ntrainer") && plan_.trainers != 1)
      draft_.fail("ntrainer", "the strategy single is one process: give 1");
    if (is_single) plan_.trainers = 1;
    if (cuda_trainers > 0 && !draft_.is_given("ntrainer")) plan_.trainers = 0;
    if (plan_.trainers + cuda_trainers == 0) draft_.fail("ntrainer", "should be at least 1");

    const auto uses = uses_servers();
    if (!draft_.is_given("nserver")) plan_.servers = uses.value_or(true) && cuda_servers == 0 ? 1 : 0;
    const auto subject = this->subject();
    if (uses == true && draft_.servers() == 0)
      draft_.fail("nserver", fmt::format("{} needs a server: give 1 or more{}", subject,
                                         is_ddp_ ? ", or --ddp-hook allreduce_hook" : ""));
    if (uses == false && draft_.servers() > 0)
      draft_.fail(
          plan_.servers > 0 ? "nserver" : "ncudaserver",
          fmt::format("{} uses no servers: give 0{}", subject, is_ddp_ ? ", or --ddp-hook rpc_hook" : ""));

    if (cuda_servers > 0 && cuda_trainers == 0)
      draft_.fail("ncudaserver", "needs --ncudatrainer of at least 1");
    if (uses != true) return;
    if (cuda_trainers > 0 && cuda_servers == 0)
      draft_.fail("ncudatrainer", "needs --ncudaserver of at least 1");
    if (cuda_trainers > 0 && plan_.trainers > 0 && plan_.servers == 0)
      draft_.fail("ntrainer", "with --ncudatrainer it needs --nserver of at least 1");
  }

  void choose_server() {
    if (draft_.uses_strategy) {
      if (draft_.is_given("server") && plan_.server != plan_.trainer)
        draft_.fail("server",
                    fmt::format("the strategy {} has its own server: leave this option out", plan_.trainer));
      plan_.server = has_servers(plan_.trainer) ? plan_.trainer : "";
      return;
    }
    const auto in_file = entries(plan_.server_config, Kind::kServer);
    const auto known = with_keys(in_file, draft_.registry.servers);
    if (draft_.is_given("server") && !contains(known, plan_.server)) {
      if (is_strategy(plan_.server))
        draft_.fail("server", fmt::format("is the server of a strategy: give --trainer {}", plan_.server));
      draft_.fail_unknown("server", "server", known, plan_.server);
    }
    if (draft_.servers() == 0) {
      if (draft_.is_given("server") && !draft_.is_given("nserver"))
        draft_.fail("server", fmt::format("{} uses no servers: leave this option out{}", subject(),
                                          is_ddp_ ? ", or give --ddp-hook rpc_hook" : ""));
      plan_.server.clear();
      return;
    }
    const auto entry = plugin_entry(plan_, Kind::kServer);
    if (contains(in_file, plan_.server)) check_class(entry, with_keys({}, draft_.registry.servers));
    if (entry.values.has("use_cuda_rpc")) draft_.choices.use_cuda_rpc |= entry.values.boolean("use_cuda_rpc");
  }

  PlanDraft& draft_;
  Plan& plan_ = draft_.plan;
  const TrainerAlias* alias_ = nullptr;
  bool is_ddp_ = false, is_local_ = false;
};

}  // namespace

void resolve_processes(PlanDraft& draft) {
  Processes(draft).run();
}

}  // namespace capstan::lab
