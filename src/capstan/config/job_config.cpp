#include "capstan/config/job_config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "capstan/base/cores.h"
#include "capstan/base/user_error.h"
#include "capstan/strategy/strategy.h"

namespace capstan::config {
namespace {

constexpr std::uint32_t kLeastSide = 8, kMostSide = 1024;  // of images

// One flag, as it stands on a command line and in a file.
struct Setting {
  std::string name;
  std::string text;      // of the value on a command line; empty for a switch that is on
  bool is_text = false;  // quoted in a file
};

template <class T>
Setting setting(const char* name, const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return {name, value, true};
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    return {name, value.string(), true};
  } else {
    return {name, fmt::format("{}", value), false};
  }
}

constexpr const char* kUsual = "sgd";

std::vector<Setting> optimizer_settings(const OptimizerConfig& o) {
  const auto resolved = o.options();
  std::vector<Setting> out = {setting("optimizer", std::string(optimizer::name(resolved.kind))),
                              setting("lr", resolved.lr),
                              setting("momentum", resolved.momentum),
                              setting("weight-decay", o.weight_decay),
                              setting("lr-schedule", o.lr_schedule),
                              setting("warmup", o.warmup)};
  if (o.dampening != 0) out.push_back(setting("dampening", o.dampening));
  if (o.nesterov) out.push_back({"nesterov", "", false});
  if (o.centered) out.push_back({"centered", "", false});
  if (o.beta1) out.push_back(setting("beta1", *o.beta1));
  if (o.beta2) out.push_back(setting("beta2", *o.beta2));
  if (o.eps) out.push_back(setting("eps", *o.eps));
  if (o.alpha) out.push_back(setting("alpha", *o.alpha));
  if (o.lr_decay) out.push_back(setting("lr-decay", *o.lr_decay));
  return out;
}

// What is seldom given. Paths are made absolute: a run may be repeated from elsewhere.
void add_model_settings(std::vector<Setting>& settings, const JobConfig& c) {
  if (!c.data_dir.empty()) settings.push_back(setting("data-dir", std::filesystem::absolute(c.data_dir)));
  if (c.strict) settings.push_back({"strict", "", false});
  if (c.num_classes > 0) settings.push_back(setting("num-classes", c.num_classes));
  if (c.image_size > 0) settings.push_back(setting("image-size", c.image_size));
  if (c.init_seed) settings.push_back(setting("init-seed", *c.init_seed));
  if (!c.weights.empty()) settings.push_back(setting("weights", std::filesystem::absolute(c.weights)));
}

std::vector<std::string> as_arguments(const std::vector<Setting>& settings) {
  std::vector<std::string> out;
  for (const auto& s : settings)
    out.push_back(s.text.empty() ? "--" + s.name : fmt::format("--{}={}", s.name, s.text));
  return out;
}

// Options of one rule mean nothing to another; a zero, as files have it, says nothing.
void refuse_foreign(const OptimizerConfig& c, optimizer::Kind kind) {
  using optimizer::Kind;
  const bool sgd = kind == Kind::kSgd, rmsprop = kind == Kind::kRmsProp, adagrad = kind == Kind::kAdagrad;
  const bool adam = kind == Kind::kAdam || kind == Kind::kAdamW;
  const auto check = [&](const char* option, bool given, bool fits, const char* owners) {
    if (given && !fits)
      throw UserError(
          fmt::format("--{} is an option of {}, not of optimizer {}", option, owners, optimizer::name(kind)));
  };
  check("momentum", c.momentum.value_or(0) != 0, sgd || rmsprop, "sgd and rmsprop");
  check("dampening", c.dampening != 0, sgd, "sgd");
  check("nesterov", c.nesterov, sgd, "sgd");
  check("beta1", c.beta1.has_value(), adam, "adam and adamw");
  check("beta2", c.beta2.has_value(), adam, "adam and adamw");
  check("eps", c.eps.has_value(), adam || rmsprop || adagrad, "adam, adamw, rmsprop and adagrad");
  check("alpha", c.alpha.has_value(), rmsprop, "rmsprop");
  check("lr-decay", c.lr_decay.has_value(), adagrad, "adagrad");
  check("centered", c.centered, rmsprop, "rmsprop");
}

}  // namespace

void OptimizerConfig::prefer(const strategy::StrategySpec& plan) {
  const auto round = plan.first->local_steps();
  if (name.empty()) name = round.optimizer;
  if (!round.uses_local_steps())
    lr_share = static_cast<double>(plan.least_pushes_per_update()) / plan.workers;
}

optimizer::Options OptimizerConfig::options() const {
  auto o = optimizer::defaults(optimizer::parse_kind(name.empty() ? kUsual : name));
  refuse_foreign(*this, o.kind);
  o.lr = lr.value_or(o.lr * lr_share);
  o.weight_decay = weight_decay;
  o.momentum = momentum.value_or(o.kind == optimizer::Kind::kSgd ? 0.9 : 0.0);
  o.dampening = dampening;
  o.nesterov = nesterov;
  o.beta1 = beta1.value_or(o.beta1);
  o.beta2 = beta2.value_or(o.beta2);
  o.eps = eps.value_or(o.eps);
  o.alpha = alpha.value_or(o.alpha);
  o.lr_decay = lr_decay.value_or(o.lr_decay);
  o.centered = centered;
  optimizer::validate(o);
  return o;
}

optimizer::Schedule OptimizerConfig::schedule(std::uint64_t total_steps) const {
  return optimizer::Schedule::parse(lr_schedule, warmup, total_steps);
}

CheckpointEvery CheckpointEvery::parse(const std::string& text) {
  const auto fail = [&] {
    throw UserError(fmt::format(
        "--checkpoint-every {}: must be a number of updates (500), a time (90s, 5m, 2h) or never", text));
  };
  if (text == "never") return {};
  double value = 0;
  const auto* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || !(value > 0) || !(value <= 1e12)) fail();
  const std::string_view unit(at, end);
  if (unit == "s") return {0, value};
  if (unit == "m") return {0, 60 * value};
  if (unit == "h") return {0, 3600 * value};
  if (!unit.empty() || value != std::floor(value)) fail();
  return {static_cast<std::uint64_t>(value), 0};
}

unsigned JobConfig::worker_threads() const {
  return threads > 0 ? threads : std::max(1u, usable_cores() / (is_single() ? 1 : workers));
}

unsigned JobConfig::threads_per_loader() const {
  return loader_threads > 0 ? loader_threads : std::max(1u, usable_cores() / (is_single() ? 1 : workers));
}

unsigned JobConfig::threads_per_server() const {
  return server_threads > 0 ? server_threads : std::max(1u, usable_cores() / servers);
}

strategy::StrategySpec JobConfig::plan() const {
  return strategy::parse_strategy_spec(strategy::strategy_spec_text(strategy, switches), workers);
}

std::map<std::uint32_t, double> parse_slow_workers(const std::string& list, std::uint32_t workers) {
  std::map<std::uint32_t, double> factors;
  for (std::size_t begin = 0; begin < list.size();) {
    const auto end = std::min(list.find(',', begin), list.size());
    const std::string_view text(list.data() + begin, end - begin);
    begin = end + 1;
    std::uint32_t rank = 0;
    double times = 0;
    const auto colon = std::min(text.find(':'), text.size());
    const auto [rank_end, bad_rank] = std::from_chars(text.data(), text.data() + colon, rank);
    const auto* const number = text.data() + std::min(colon + 1, text.size());
    const auto [times_end, bad_times] = std::from_chars(number, text.data() + text.size(), times);
    if (bad_rank != std::errc() || rank_end != text.data() + colon || bad_times != std::errc() ||
        std::string_view(times_end, text.data() + text.size()) != "x" || !(times >= 1 && times <= 1000) ||
        rank >= workers) {
      throw UserError(fmt::format(
          "--slow-worker {}: must be RANK:TIMESx, such as 1:3x, with a rank below {} and 1x to 1000x", text,
          workers));
    }
    if (!factors.emplace(rank, times).second)
      throw UserError(fmt::format("--slow-worker {}: worker {} is named twice", list, rank));
  }
  return factors;
}

double JobConfig::slow_down(std::uint32_t worker) const {
  const auto factors = parse_slow_workers(slow_workers, workers);
  const auto found = factors.find(worker);
  return found == factors.end() ? 1 : found->second;
}

void JobConfig::validate_model() const {
  if (image_size != 0 && (image_size < kLeastSide || image_size > kMostSide)) {
    throw UserError(fmt::format("--image-size {}: must be from {} to {}", image_size, kLeastSide, kMostSide));
  }
  if (!weights.empty() && !std::filesystem::is_regular_file(weights))
    throw UserError(fmt::format("--weights {}: there is no such file", weights.string()));
}

void JobConfig::validate() const {
  validate_model();
  if (device != "cpu" && device != "cuda")
    throw UserError(fmt::format("--device {}: must be cpu or cuda", device));
  // A configuration file holds whole numbers up to this; a job must fit its own file.
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  for (const auto& [name, value] : {std::pair{"seed", seed},
                                    {"init-seed", init_seed.value_or(0)},
                                    {"max-steps", max_steps},
                                    {"warmup", optimizer.warmup}}) {
    if (value > kMost) throw UserError(fmt::format("--{} {}: may be at most {}", name, value, kMost));
  }
  if (has_servers()) (void)plan();
  if (!has_servers() && !switches.empty())
    throw UserError(fmt::format("--switch: strategy {} has no other to change to", strategy));
  (void)slow_down(0);  // reads all of them
  (void)optimizer.options();
  (void)CheckpointEvery::parse(checkpoint_every);
}

std::string JobConfig::to_toml() const {
  std::vector<Setting> settings = {setting("network", network),
                                   setting("dataset", dataset),
                                   setting("augment", augment),
                                   setting("loader-threads", threads_per_loader()),
                                   setting("workers", workers),
                                   setting("servers", servers),
                                   setting("strategy", strategy),
                                   setting("batch-size", batch_size),
                                   setting("epochs", epochs),
                                   setting("max-steps", max_steps),
                                   setting("seed", seed),
                                   setting("device", device),
                                   setting("threads", worker_threads()),
                                   setting("server-threads", threads_per_server()),
                                   setting("transport", transport),
                                   setting("checkpoint-every", checkpoint_every),
                                   setting("keep", keep)};
  if (!switches.empty()) settings.push_back(setting("switch", switches));
  if (!slow_workers.empty()) settings.push_back(setting("slow-worker", slow_workers));
  add_model_settings(settings, *this);
  const auto rule = optimizer_settings(optimizer);
  settings.insert(settings.end(), rule.begin(), rule.end());
  std::ostringstream out;
  for (const auto& s : settings) {
    out << s.name << " = ";
    if (s.is_text) {
      out << toml::value<std::string>(s.text);
    } else {
      out << (s.text.empty() ? "true" : s.text);
    }
    out << "\n";
  }
  return out.str();
}

std::vector<std::string> serve_arguments(const JobConfig& c, std::uint64_t total_steps) {
  auto settings = optimizer_settings(c.optimizer);
  const std::vector<Setting> more = {
      setting("workers", c.workers),
      setting("servers", c.servers),
      setting("strategy", strategy::strategy_spec_text(c.strategy, c.switches)),
      setting("max-steps", c.max_steps),
      setting("total-steps", total_steps),
      setting("server-threads", c.threads_per_server()),
      setting("transport", c.transport),
      setting("join-timeout", c.join_timeout),
      setting("checkpoint-every", c.checkpoint_every),
      setting("keep", c.keep)};
  settings.insert(settings.end(), more.begin(), more.end());
  return as_arguments(settings);
}

std::vector<std::string> team_arguments(const JobConfig& c) {
  auto settings = optimizer_settings(c.optimizer);
  const std::vector<Setting> more = {setting("workers", c.workers), setting("strategy", c.strategy),
                                     setting("max-steps", c.max_steps)};
  settings.insert(settings.end(), more.begin(), more.end());
  if (!c.slow_workers.empty()) settings.push_back(setting("slow-worker", c.slow_workers));
  auto arguments = as_arguments(settings);
  const auto work = work_arguments(c);
  arguments.insert(arguments.end(), work.begin(), work.end());
  return arguments;
}

std::vector<std::string> work_arguments(const JobConfig& c) {
  std::vector<Setting> settings = {setting("network", c.network),
                                   setting("dataset", c.dataset),
                                   setting("augment", c.augment),
                                   setting("loader-threads", c.threads_per_loader()),
                                   setting("batch-size", c.batch_size),
                                   setting("epochs", c.epochs),
                                   setting("seed", c.seed),
                                   setting("device", c.device),
                                   setting("threads", c.worker_threads()),
                                   setting("transport", c.transport)};
  add_model_settings(settings, c);
  return as_arguments(settings);
}

}  // namespace capstan::config
