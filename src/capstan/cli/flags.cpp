#include "capstan/cli/flags.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include "capstan/base/spelling.h"
#include "capstan/base/user_error.h"

namespace capstan::cli {
namespace {

// "--batch_size=3" → "--batch-size=3"; values stay as they are.
std::string with_dashes(std::string argument) {
  if (!argument.starts_with("--")) return argument;
  std::replace(argument.begin(),
               argument.begin() + static_cast<std::ptrdiff_t>(std::min(argument.find('='), argument.size())),
               '_', '-');
  return argument;
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

std::string suggestion(const CLI::App& app, const std::string& name) {
  const auto names = flag_names(app);
  const std::vector<std::string_view> views(names.begin(), names.end());
  return nearest(name, views);
}

std::string value_text(const toml::node& node, const std::string& where) {
  if (const auto v = node.value_exact<std::string>()) return *v;
  if (const auto v = node.value_exact<bool>()) return *v ? "true" : "false";
  if (const auto v = node.value_exact<std::int64_t>()) return fmt::format("{}", *v);
  if (const auto v = node.value_exact<double>()) return fmt::format("{}", *v);
  throw UserError(fmt::format("{}: a value must be a text, a number, true or false", where));
}

// The file's keys as arguments, so that one parser checks both.
Arguments read_config(const CLI::App& app, const std::string& file) {
  Arguments arguments;
  toml::table table;
  try {
    table = toml::parse_file(file);
  } catch (const toml::parse_error& error) {
    throw UserError(fmt::format("{}:{}: {}", file, error.source().begin.line, error.description()));
  }
  const auto known = flag_names(app);
  for (const auto& [key, node] : table) {
    auto name = std::string(key.str());
    std::ranges::replace(name, '_', '-');
    const auto where = fmt::format("{}:{}: {}", file, node.source().begin.line, name);
    if (std::ranges::find(known, name) == known.end() || name == "config" || name == "help") {
      const auto near = suggestion(app, name);
      throw UserError(fmt::format("{}: unknown key{}", where,
                                  near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
    }
    arguments.push_back(fmt::format("--{}={}", name, value_text(node, where)));
  }
  return arguments;
}

// Help as people read it: the kind of a value and its default, without the parser's own terms.
class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* app, std::string) const override {
    return fmt::format("Usage: capstan {} [FLAGS]\n", app->get_name());
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    const auto type = option->get_type_name();
    const auto kind = type.substr(0, type.find(':'));
    return kind == "UINT" ? " N" : kind == "FLOAT" ? " X" : " " + kind;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const auto fallback = option->get_default_str();
    return option->get_description() + (fallback.empty() ? "" : fmt::format(" [{}]", fallback));
  }
};

[[noreturn]] void unknown(const CLI::App& app, const Arguments& extras) {
  const auto& word = extras.front();
  if (!word.starts_with("-"))
    throw UserError(fmt::format("unexpected argument \"{}\" (see capstan {} --help)", word, app.get_name()));
  const auto name = word.substr(word.find_first_not_of('-'), word.find('=') - word.find_first_not_of('-'));
  const auto near = suggestion(app, name);
  throw UserError(fmt::format("unknown flag {}{} (see capstan {} --help)", word.substr(0, word.find('=')),
                              near.empty() ? "" : fmt::format(", did you mean --{}?", near), app.get_name()));
}

}  // namespace

bool parse_flags(CLI::App& app, const Arguments& arguments) {
  std::string file;
  app.add_option("--config", file, "TOML file of flags; flags on the command line win")->type_name("FILE");
  app.set_help_flag("--help,-h", "Print this help");
  app.formatter(std::make_shared<HelpFormatter>());
  app.get_formatter()->column_width(28);
  app.allow_extras();
  for (auto* option : app.get_options()) {
    if (option->get_expected_max() <= 1) option->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  Arguments given;
  std::ranges::transform(arguments, std::back_inserter(given), with_dashes);
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i].starts_with("--config=")) file = given[i].substr(9);
    if (given[i] == "--config" && i + 1 < given.size()) file = given[i + 1];
  }
  Arguments all = file.empty() ? Arguments{} : read_config(app, file);
  all.insert(all.end(), given.begin(), given.end());
  std::ranges::reverse(all);  // as CLI11 takes them
  try {
    app.parse(all);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return false;
  } catch (const CLI::ParseError& error) {
    throw UserError(fmt::format("{} (see capstan {} --help)", error.what(), app.get_name()));
  }
  if (const auto extras = app.remaining(); !extras.empty()) unknown(app, extras);
  return true;
}

void add_model_flags(CLI::App& app, config::JobConfig& c) {
  app.add_option("--network", c.network, "Which network to train: lenet, mlp")
      ->capture_default_str()
      ->group("Model and data");
  app.add_option("--dataset", c.dataset, "digits (built in), mnist, synthetic:CxHxW:classes[:samples]")
      ->capture_default_str()
      ->group("Model and data");
  app.add_option("--data-dir", c.data_dir, "Folder of the dataset's files")->group("Model and data");
  app.add_option("--batch-size", c.batch_size, "Samples per worker and step")
      ->check(CLI::Range(1u, 1u << 20))
      ->capture_default_str()
      ->group("Model and data");
  app.add_option("--epochs", c.epochs, "Passes over the training set")
      ->check(CLI::Range(1u, 1u << 20))
      ->capture_default_str()
      ->group("Model and data");
  app.add_option("--seed", c.seed, "Fixes initial weights and the order of samples")
      ->capture_default_str()
      ->group("Model and data");
  app.add_option("--device", c.device, "cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str()
      ->group("Model and data");
  app.add_flag_callback(
         "--enable-gpu", [&c] { c.device = "cuda"; }, "The same as --device cuda")
      ->group("Model and data");
  app.add_option("--threads", c.threads, "Compute threads per worker (0: cores ÷ workers)")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str()
      ->group("Model and data");
}

void add_strategy_flags(CLI::App& app, config::JobConfig& c) {
  app.add_option("--workers", c.workers, "Workers of the job")
      ->check(CLI::Range(1u, 4096u))
      ->capture_default_str()
      ->group("Job");
  app.add_option("--servers", c.servers, "Servers that share the weights")
      ->check(CLI::Range(1u, 256u))
      ->capture_default_str()
      ->group("Job");
  app.add_option("--strategy", c.strategy, "sync, async, async:damped or batch:K")
      ->capture_default_str()
      ->group("Job");
  app.add_option_function<std::uint32_t>(
         "--num-aggregate", [&c](std::uint32_t k) { c.strategy = fmt::format("batch:{}", k); },
         "K: the same as --strategy batch:K")
      ->check(CLI::Range(1u, 4096u))
      ->type_name("K")
      ->group("Job");
  app.add_flag_callback(
         "--staleness-damping",
         [&c] {
           if (!c.strategy.starts_with("async"))
             throw UserError(fmt::format("--staleness-damping needs --strategy async, not {}", c.strategy));
           c.strategy = "async:damped";
         },
         "With async: the learning rate of a gradient that is t updates old is divided by 1 + t")
      ->group("Job");
  app.add_option("--max-steps", c.max_steps, "End after so many updates (0: no limit)")
      ->capture_default_str()
      ->group("Job");
  app.add_option("--server-threads", c.server_threads, "Threads per server (0: cores ÷ servers)")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str()
      ->group("Job");
}

void add_optimizer_flags(CLI::App& app, config::OptimizerConfig& c) {
  const auto option = [&](const char* name, auto& variable, const char* help) {
    return app.add_option(name, variable, help)->group("Optimizer");
  };
  option("--optimizer", c.name, "sgd, adam, adamw, adagrad, rmsprop, or none (only adds)")
      ->capture_default_str();
  option("--lr", c.lr, "Learning rate")->capture_default_str();
  option("--momentum", c.momentum, "sgd (default 0.9), rmsprop (default 0)");
  option("--weight-decay", c.weight_decay, "Weight decay")->capture_default_str();
  option("--dampening", c.dampening, "sgd: dampening of momentum")->capture_default_str();
  app.add_flag("--nesterov", c.nesterov, "sgd: Nesterov momentum")->group("Optimizer");
  option("--beta1", c.beta1, "adam, adamw (default 0.9)");
  option("--beta2", c.beta2, "adam, adamw (default 0.999)");
  option("--eps", c.eps, "adam, adamw, rmsprop (default 1e-8), adagrad (default 1e-10)");
  option("--alpha", c.alpha, "rmsprop: smoothing (default 0.99)");
  option("--lr-decay", c.lr_decay, "adagrad (default 0)");
  app.add_flag("--centered", c.centered, "rmsprop: normalise by the variance")->group("Optimizer");
  option("--lr-schedule", c.lr_schedule, "constant, step:EVERY:GAMMA (in updates) or cosine")
      ->capture_default_str();
  option("--warmup", c.warmup, "Updates of linear warm-up")->capture_default_str();
}

void add_transport_flags(CLI::App& app, config::JobConfig& c) {
  app.add_option("--transport", c.transport, "auto, local (shared memory, one host) or ucx (any host)")
      ->check(CLI::IsMember({"auto", "local", "ucx"}))
      ->capture_default_str()
      ->group("Connection");
  app.add_option("--token-file", c.token_file, "File (mode 0600) with the job's token; else $CAPSTAN_TOKEN")
      ->group("Connection");
}

void add_listen_flags(CLI::App& app, config::JobConfig& c) {
  app.add_option("--listen", c.listen, "HOST:PORT to listen on; port 0 picks a free one")
      ->capture_default_str()
      ->group("Connection");
  app.add_option("--join-timeout", c.join_timeout,
                 "Seconds after which workers that have not come are left out")
      ->check(CLI::Range(0.1, 1e6))
      ->capture_default_str()
      ->group("Connection");
}

}  // namespace capstan::cli
