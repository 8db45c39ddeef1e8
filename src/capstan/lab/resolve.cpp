#include "capstan/lab/resolve.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capstan/base/spelling.h"
#include "capstan/config/given.h"
#include "capstan/config/tasks.h"
#include "capstan/data/dataset.h"
#include "capstan/lab/ddp_hooks.h"
#include "capstan/lab/names.h"
#include "capstan/lab/shipped_files.h"
#include "capstan/layouts/networks.h"
#include "capstan/optimizer/spec.h"
#include "capstan/strategy/strategy_spec.h"
#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

using Names = std::vector<std::string>;

template <class Table>
void add_keys(Names& names, const Table& table) {
  for (const auto& [name, make] : table) names.push_back(name);
}

bool contains(const Names& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

report::LabValue lab_value(const config::Value& value) {
  return std::visit(
      []<class P>(const P& place) -> report::LabValue {
        if constexpr (std::is_same_v<P, std::string*> || std::is_same_v<P, std::filesystem::path*>) {
          if (place->empty()) return nullptr;
          return std::string(*place);
        } else if constexpr (std::is_same_v<P, bool*> || std::is_same_v<P, double*>) {
          return *place;
        } else if constexpr (std::is_same_v<P, std::uint16_t*> || std::is_same_v<P, std::uint32_t*> ||
                             std::is_same_v<P, std::uint64_t*>) {
          return static_cast<std::int64_t>(*place);
        } else {
          return nullptr;
        }
      },
      value);
}

// Makes one plan. Each function checks one subject; they run in the order of run().
class Resolver {
 public:
  Resolver(const Layers& layers, const Registry& registry) : registry_(registry) {
    std::vector<config::Field> fields;
    for (auto& setting : settings(choices_)) fields.push_back({.setting = std::move(setting)});
    std::vector<std::vector<config::Given>> all;
    for (const auto& layer : layers) {
      auto& out = all.emplace_back();
      for (const auto& option : layer) {
        given_[option.name] = option;
        out.push_back({config::find(fields, option.name), option.text, option.place});
      }
    }
    config::apply(fields, all);
  }

  Resolved run() {
    find_files();
    choose_trainer();
    choose_hook();
    choose_counts();
    choose_server();
    check_strategy();
    check_work();
    if (is_given("filestore")) note("filestore", "is not needed: trainers meet at --master-addr");
    auto unsupported = cuda_needs();
    Resolved out{plan_, {}, std::move(unsupported), std::move(notes_)};
    for (const auto& setting : settings(choices_)) {
      std::string name(setting.name);
      std::ranges::replace(name, '-', '_');
      out.options.emplace_back(std::move(name), lab_value(setting.value));
    }
    return out;
  }

 private:
  bool is_given(const std::string& name) const { return given_.contains(name); }

  // "--trainer DdpTrianer", "x.toml:3: trainer DdpTrianer".
  std::string where(const std::string& name) {
    const auto found = given_.find(name);
    if (found != given_.end() && !found->second.place.empty())
      return fmt::format("{}: {} {}", found->second.place, name, found->second.text);
    const auto all = settings(choices_);
    return fmt::format("--{} {}", name, config::text_of(find_setting(all, name)->value));
  }
  [[noreturn]] void fail(const std::string& name, const std::string& what) {
    config::fail(fmt::format("{}: {}", where(name), what));
  }
  void note(const std::string& name, const std::string& what) {
    notes_.push_back(fmt::format("{}: {}", where(name), what));
  }
  [[noreturn]] void fail_unknown(const std::string& name, const std::string& kind, const Names& known,
                                 const std::string& word) {
    const std::vector<std::string_view> views(known.begin(), known.end());
    const auto near = nearest(word, views);
    fail(name,
         fmt::format("unknown {}{}; known: {}", kind,
                     near.empty() ? "" : fmt::format(", did you mean {}?", near), fmt::join(known, ", ")));
  }

  // An entry of the file whose class is unknown.
  void check_class(const Entry& entry, const Names& known) {
    if (contains(known, entry.class_name)) return;
    const std::vector<std::string_view> views(known.begin(), known.end());
    const auto near = nearest(entry.class_name, views);
    config::fail(fmt::format("{}: unknown class {}{}", entry.values.place(), entry.class_name,
                             near.empty() ? fmt::format("; known: {}", fmt::join(known, ", "))
                                          : fmt::format(", did you mean {}?", near)));
  }
  static Names entries(const std::filesystem::path& file, Kind kind) {
    return file.empty() ? Names() : ConfigurationFile(file, kind).names();
  }

  void find_files() {
    const auto find = [&](std::filesystem::path& file, const char* option, const char* shipped) {
      if (!is_given(option)) file = find_shipped("configurations", shipped);
      if (!file.empty()) file = std::filesystem::absolute(file);
    };
    find(plan_.data_config, "data-config-path", "data_configurations.json");
    find(plan_.model_config, "model-config-path", "model_configurations.json");
    find(plan_.trainer_config, "trainer-config-path", "trainer_configurations.json");
    find(plan_.server_config, "server-config-path", "parameter_server_configurations.json");
    if (!plan_.data_dir.empty()) plan_.data_dir = std::filesystem::absolute(plan_.data_dir);
    if (!plan_.save.empty()) plan_.save = std::filesystem::absolute(plan_.save);
  }

  void choose_trainer() {
    if (!is_given("trainer") && is_given("server") && is_strategy(plan_.server)) plan_.trainer = plan_.server;
    const auto in_file = entries(plan_.trainer_config, Kind::kTrainer);
    const auto entry = plugin_entry(plan_, Kind::kTrainer);
    Names classes;
    add_keys(classes, registry_.trainers);
    alias_ = find_trainer_alias(entry.class_name);
    if (contains(in_file, plan_.trainer)) {
      if (!alias_) check_class(entry, classes);
      take_older_values(entry.values);
    } else if (alias_) {
      plan_.trainer = kDdpTrainer;
    } else if (!contains(classes, plan_.trainer)) {
      uses_strategy_ = is_strategy(plan_.trainer);
      if (!uses_strategy_)
        fail_unknown("trainer", "trainer", known_trainers(in_file, classes), plan_.trainer);
    }
    is_ddp_ = alias_ || entry.class_name == kDdpTrainer;
    is_local_ = entry.class_name == kLocalTrainer;
  }

  static Names known_trainers(Names names, const Names& classes) {
    for (const auto& name : classes)
      if (!contains(names, name)) names.push_back(name);
    names.insert(names.end(), {"single", "allreduce"});
    for (const auto& entry : strategy::table()) names.emplace_back(entry.name);
    return names;
  }

  // The trainers of older configuration files have some of today's options.
  void take_older_values(const Configuration& values) {
    if (values.has("epochs") && !is_given("epochs"))
      plan_.epochs = static_cast<std::uint64_t>(values.integer("epochs", 1));
    if (values.has("backend") && !is_given("backend")) plan_.backend = values.text("backend");
    if (values.has("use_cuda_rpc")) choices_.use_cuda_rpc |= values.boolean("use_cuda_rpc");
  }

  void choose_hook() {
    if (uses_strategy_ || is_local_) {
      if (is_given("ddp-hook"))
        fail("ddp-hook", fmt::format("is an option of DdpTrainer; the trainer is {}{}",
                                     is_local_ ? "" : "the strategy ", plan_.trainer));
      plan_.hook.clear();
      return;
    }
    if (alias_) {
      if (is_given("ddp-hook") && plan_.hook != alias_->name && plan_.hook != alias_->hook)
        fail("ddp-hook", fmt::format("the trainer {} has {}; give DdpTrainer for another hook", alias_->name,
                                     alias_->hook));
      plan_.hook = alias_->hook;
    } else if (!is_given("ddp-hook") && is_given("nserver") && plan_.servers + choices_.cuda_servers == 0) {
      plan_.hook = "allreduce_hook";
    }
    Names known;
    for (const auto& hook : ddp_hooks()) known.emplace_back(hook.name);
    if (!contains(known, plan_.hook)) fail_unknown("ddp-hook", "hook", known, plan_.hook);
  }

  // What the trainer needs; none: a plug-in may use servers or not.
  std::optional<bool> uses_servers() const {
    if (uses_strategy_) return has_servers(plan_.trainer);
    if (is_local_) return false;
    if (!is_ddp_) return {};
    return find_hook(plan_.hook).uses_servers;
  }

  void choose_counts() {
    const bool is_single = uses_strategy_ && plan_.trainer == "single";
    if (is_single && is_given("ntrainer") && plan_.trainers != 1)
      fail("ntrainer", "the strategy single is one process: give 1");
    if (is_single) plan_.trainers = 1;
    if (choices_.cuda_trainers > 0 && !is_given("ntrainer")) plan_.trainers = 0;
    if (plan_.trainers + choices_.cuda_trainers == 0) fail("ntrainer", "should be at least 1");

    const auto uses = uses_servers();
    if (!is_given("nserver")) plan_.servers = uses.value_or(true) && choices_.cuda_servers == 0 ? 1 : 0;
    const auto subject = uses_strategy_ ? "the strategy " + plan_.trainer
                         : is_local_    ? plan_.trainer
                                        : "the hook " + plan_.hook;
    const auto servers = plan_.servers + choices_.cuda_servers;
    if (uses == true && servers == 0)
      fail("nserver", fmt::format("{} needs a server: give 1 or more{}", subject,
                                  is_ddp_ ? ", or --ddp-hook allreduce_hook" : ""));
    if (uses == false && servers > 0)
      fail(plan_.servers > 0 ? "nserver" : "ncudaserver",
           fmt::format("{} uses no servers: give 0{}", subject, is_ddp_ ? ", or --ddp-hook rpc_hook" : ""));
    check_cuda_counts(uses);
  }

  void check_cuda_counts(std::optional<bool> uses) {
    if (choices_.cuda_servers > 0 && choices_.cuda_trainers == 0)
      fail("ncudaserver", "needs --ncudatrainer of at least 1");
    if (uses != true) return;
    if (choices_.cuda_trainers > 0 && choices_.cuda_servers == 0)
      fail("ncudatrainer", "needs --ncudaserver of at least 1");
    if (choices_.cuda_trainers > 0 && plan_.trainers > 0 && plan_.servers == 0)
      fail("ntrainer", "with --ncudatrainer it needs --nserver of at least 1");
  }

  void choose_server() {
    if (uses_strategy_) {
      const bool same = plan_.server == plan_.trainer;
      if (is_given("server") && !same)
        fail("server",
             fmt::format("the strategy {} has its own server: leave this option out", plan_.trainer));
      plan_.server = has_servers(plan_.trainer) ? plan_.trainer : "";
      return;
    }
    Names classes;
    add_keys(classes, registry_.servers);
    auto known = entries(plan_.server_config, Kind::kServer);
    const bool is_entry = contains(known, plan_.server);
    for (const auto& name : classes)
      if (!contains(known, name)) known.push_back(name);
    if (is_given("server") && !contains(known, plan_.server)) {
      if (is_strategy(plan_.server))
        fail("server", fmt::format("is the server of a strategy: give --trainer {}", plan_.server));
      fail_unknown("server", "server", known, plan_.server);
    }
    if (plan_.servers + choices_.cuda_servers == 0) {
      if (is_given("server") && !is_given("nserver"))
        fail("server", fmt::format("the hook {} uses no servers: leave this option out, or give --ddp-hook "
                                   "rpc_hook",
                                   plan_.hook));
      plan_.server.clear();
      return;
    }
    const auto entry = plugin_entry(plan_, Kind::kServer);
    if (is_entry) check_class(entry, classes);
    if (entry.values.has("use_cuda_rpc")) choices_.use_cuda_rpc |= entry.values.boolean("use_cuda_rpc");
  }

  void check_strategy() {
    if (!uses_strategy_) {
      if (is_given("optimizer"))
        fail("optimizer", fmt::format("is an option of strategies; {} makes SGD steps", plan_.trainer));
      return;
    }
    if (has_servers(plan_.trainer))
      rethrow("trainer",
              [&] { (void)strategy::parse_strategy_spec(plan_.trainer, std::max(1u, plan_.trainers)); });
    rethrow("optimizer", [&] {
      (void)optimizer::parse_spec(plan_.optimizer, [](optimizer::Kind kind) {
        optimizer::Options options;
        options.kind = kind;
        return options;
      });
    });
  }

  template <class Function>
  void rethrow(const std::string& option, Function check) {
    try {
      check();
    } catch (const UserError& error) {
      fail(option, error.what());
    }
  }

  void check_work() {
    check_model();
    check_data();
    if (!registry_.criteria.contains(plan_.criterion)) {
      Names known;
      add_keys(known, registry_.criteria);
      fail_unknown("create-criterion", "criterion", known, plan_.criterion);
    }
  }

  void check_model() {
    auto known = entries(plan_.model_config, Kind::kModel);
    Names classes;
    add_keys(classes, registry_.models);
    if (contains(known, plan_.model)) return check_class(plugin_entry(plan_, Kind::kModel), classes);
    for (const auto& name : classes)
      if (!contains(known, name)) known.push_back(name);
    if (contains(known, plan_.model)) return;
    auto network = plan_.model;
    std::ranges::replace(network, '_', '-');
    const auto is_network = [&](const auto& info) { return info.name == network; };
    const auto is_task = [&](const auto& task) { return task.name == plan_.model; };
    if (std::ranges::any_of(layouts::networks(), is_network)) {
      if (!is_given("data")) plan_.data = "digits";
    } else if (std::ranges::any_of(config::tasks(), is_task)) {
      if (!is_given("data")) plan_.data.clear();
    } else {
      for (const auto& task : config::tasks()) known.emplace_back(task.name);
      for (const auto& info : layouts::networks()) known.emplace_back(info.name);
      fail_unknown("model", "model", known, plan_.model);
    }
  }

  void check_data() {
    if (plan_.data.empty()) return;
    auto known = entries(plan_.data_config, Kind::kData);
    Names classes;
    add_keys(classes, registry_.data);
    if (contains(known, plan_.data)) return check_class(plugin_entry(plan_, Kind::kData), classes);
    for (const auto& name : classes)
      if (!contains(known, name)) known.push_back(name);
    for (const auto& name : data::dataset_names()) known.emplace_back(name);
    known.emplace_back("text");  // of the task char-lm
    if (!contains(known, plan_.data.substr(0, plan_.data.find(':'))))
      fail_unknown("data", "data", known, plan_.data);
  }

  std::string cuda_needs() {
    Names reasons;
    if (choices_.cuda_trainers > 0)
      reasons.push_back(fmt::format("--ncudatrainer {}", choices_.cuda_trainers));
    if (choices_.cuda_servers > 0) reasons.push_back(fmt::format("--ncudaserver {}", choices_.cuda_servers));
    if (choices_.use_cuda_rpc) reasons.emplace_back("use_cuda_rpc");
    if (plan_.backend != "gloo") reasons.push_back("--backend " + plan_.backend);
    if (reasons.empty()) return "";
    return fmt::format("needs CUDA devices ({}), which this build of Capstan does not support yet",
                       fmt::join(reasons, ", "));
  }

  const Registry& registry_;
  Choices choices_;
  Plan& plan_ = choices_.plan;
  std::map<std::string, GivenOption> given_;
  const TrainerAlias* alias_ = nullptr;
  bool uses_strategy_ = false, is_ddp_ = false, is_local_ = false;
  std::vector<std::string> notes_;
};

}  // namespace

Resolved resolve(const Layers& layers, const Registry& registry) {
  return Resolver(layers, registry).run();
}

}  // namespace capstan::lab
