#include "capstan/config/job_config.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "capstan/base/cores.h"
#include "capstan/base/text.h"
#include "capstan/config/fields.h"
#include "capstan/config/tasks.h"
#include "capstan/strategy/strategy.h"
#include "capstan/user_error.h"

namespace capstan::config {
namespace {

constexpr double kSgdMomentum = 0.9;

std::uint32_t kinds_of(const optimizer::Spec& spec) {
  std::uint32_t kinds = 0;
  for (std::size_t entry = 0; entry < spec.size(); ++entry) kinds |= optimizer::kinds(spec[entry].kind);
  return kinds;
}

}  // namespace

void OptimizerConfig::prefer(const strategy::StrategySpec& spec) {
  const auto local = spec.first->local_steps();
  if (*local.optimizer) preferred = local.optimizer;
  if (!local.uses_local_steps())
    lr_share = static_cast<double>(spec.least_pushes_per_update()) / spec.workers;
}

// An optimizer without options of its own.
optimizer::Options OptimizerConfig::base(optimizer::Kind kind) const {
  auto out = optimizer::defaults(kind);
  out.lr *= lr_share;
  if (kind == optimizer::Kind::kSgd) out.momentum = kSgdMomentum;
  optimizer::visit_options(
      [&](const optimizer::OptionInfo& option, auto& value, const auto& wanted) {
        if (wanted && option.belongs_to(kind)) value = *wanted;
      },
      out, *this);
  return out;
}

// Options in --optimizer take precedence: a flag that none of them leaves a place is a mistake.
void OptimizerConfig::check_effect(const optimizer::Spec& spec) const {
  std::vector<std::string_view> unused;
  optimizer::visit_options(
      [&](const optimizer::OptionInfo& option, const auto& wanted) {
        if (wanted && (option.owners & kinds_of(spec)) != 0) unused.push_back(option.name);
      },
      *this);
  for (std::size_t entry = 0; entry < spec.size(); ++entry)
    optimizer::visit_options(
        [&](const optimizer::OptionInfo& option, const auto& value, const auto& wanted) {
          if (option.belongs_to(spec[entry].kind) && wanted && value == *wanted)
            std::erase(unused, option.name);
        },
        spec[entry], *this);
  if (!unused.empty())
    throw UserError(
        fmt::format("--{0} has no effect: --optimizer {1} sets {0} itself", unused.front(), name));
}

optimizer::Spec OptimizerConfig::spec() const {
  const auto out = optimizer::parse_spec(name.empty() ? preferred : name,
                                         [this](optimizer::Kind kind) { return base(kind); });
  const auto kinds = kinds_of(out);
  optimizer::visit_options(
      [&](const optimizer::OptionInfo& option, const auto& wanted) {
        if (!wanted || *wanted == 0 || (option.owners & kinds) != 0)
          return;  // a zero is accepted: it means "off" for every optimizer
        throw UserError(fmt::format("--{} is an option of {}, not of optimizer {}", option.name,
                                    optimizer::names_of(option.owners), optimizer::names_of(kinds)));
      },
      *this);
  check_effect(out);
  return out;
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
  const double in_seconds = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  constexpr double kMostSeconds = 1e9;
  if (in_seconds * value > kMostSeconds) fail();
  if (in_seconds > 0) return {0, in_seconds * value};
  if (!unit.empty() || value != std::floor(value)) fail();
  return {static_cast<std::uint64_t>(value), 0};
}

bool JobConfig::has_module() const {
  return task.empty() && (network.find('/') != std::string::npos || network.ends_with(".pt") ||
                          network.ends_with(".pth") || network.ends_with(".ts"));
}

std::string JobConfig::network_name() const {
  return has_module() ? std::filesystem::path(network).filename().string() : network;
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

strategy::StrategySpec JobConfig::strategy_spec() const {
  return strategy::parse_strategy_spec(strategy::strategy_spec_text(strategy, switches), workers);
}

GroupTable JobConfig::group_table() const {
  GroupTable table{.optimizers = optimizer.spec().globs()};
  if (has_servers()) table.strategies = strategy_spec().globs();
  return table;
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
  if (!task.empty() && network != find_task(task).network)
    throw UserError(
        fmt::format("--network {}: task {} has its own network, {}", network, task, find_task(task).network));
  if (!has_module() && loss != "auto" && loss != "cross-entropy")
    throw UserError(
        fmt::format("--loss {} is for a TorchScript module (--network FILE.pt); {} has its own loss", loss,
                    task.empty() ? network : task));
  if (image_size != 0 && (image_size < kLeastSide || image_size > kMostSide)) {
    throw UserError(fmt::format("--image-size {}: must be from {} to {}", image_size, kLeastSide, kMostSide));
  }
  if (!weights.empty() && resume.empty() && !std::filesystem::is_regular_file(weights))
    throw UserError(fmt::format("--weights {}: no such file", weights.string()));
}

void JobConfig::validate() const {
  validate_model();
  auto copy = *this;
  for (const auto& field : fields(copy)) {
    const auto text = text_of(field.setting.value);
    if (text.empty()) continue;
    if (field.is_kept() && !is_utf8(text))
      throw UserError(fmt::format("--{}: is not UTF-8 text", field.name()));
    if (const auto wrong = assign(field.setting, text); !wrong.empty())
      throw UserError(fmt::format("--{} {}: {}", field.name(), text, wrong));
  }
  if (has_servers()) (void)strategy_spec();
  if (!has_servers() && !switches.empty())
    throw UserError(fmt::format("--switch: strategy {} does not support switching", strategy));
  (void)slow_down(0);  // parses the whole list
  (void)optimizer.spec();
  const auto every = CheckpointEvery::parse(checkpoint_every);
  if (evaluator && every.steps == 0 && every.seconds == 0)
    throw UserError("--evaluator evaluates checkpoints, but --checkpoint-every never writes none");
}

JobConfig JobConfig::resolved() const {
  auto out = *this;
  auto& rule = out.optimizer;
  if (has_servers()) rule.prefer(strategy_spec());
  const auto spec = rule.spec();
  if (rule.name.empty()) rule.name = spec.kinds();
  optimizer::visit_options(
      [&](const optimizer::OptionInfo& option, const auto& value, auto& wanted) {
        // Optimizers of groups may have different values: then the option is what was given.
        if ((option.owners & kinds_of(spec)) == 0)
          wanted.reset();
        else if (spec.groups.empty())
          wanted = value;
      },
      spec.first, rule);
  out.threads = worker_threads();
  out.loader_threads = threads_per_loader();
  out.server_threads = threads_per_server();
  out.init_seed = init_seed.value_or(seed);
  if (has_module()) out.network = std::filesystem::absolute(network).lexically_normal().string();
  // Files of the user's own are relative to the current folder: a resumed run may have another.
  if (data_dir.empty() && (dataset.starts_with("csv:") || dataset.starts_with("arrays:")))
    out.data_dir = std::filesystem::current_path();
  for (auto* path : {&out.data_dir, &out.weights, &out.token_file, &out.train_dir})
    if (!path->empty()) *path = std::filesystem::absolute(*path).lexically_normal();
  return out;
}

}  // namespace capstan::config
