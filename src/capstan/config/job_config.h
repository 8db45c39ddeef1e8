#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "capstan/optimizer/spec.h"
#include "capstan/strategy/strategy_spec.h"

namespace capstan::config {

// The optimizers as a user configures them. An option applies to every entry of `name` that has it and does
// not set it; an absent one takes the optimizer's own default. Members are named as those of
// optimizer::Options.
struct OptimizerConfig {
  std::string name;  // optimizer/spec.h; empty: `preferred`
  std::optional<double> lr, weight_decay, momentum, dampening, beta1, beta2, eps, alpha, lr_decay;
  std::optional<bool> nesterov, centered;
  std::string lr_schedule = "constant";
  std::uint64_t warmup = 0;
  // The strategy's defaults, set by prefer().
  std::string preferred = "sgd";
  double lr_share = 1;  // of the optimizer's default learning rate

  // Sets the strategy's default optimizer and, if an update uses only a share of the workers' gradients, the
  // same share of the default learning rate. Options that are given stay.
  void prefer(const strategy::StrategySpec& spec);
  // Both throw UserError. Defaults are PyTorch's, except sgd's momentum of 0.9.
  optimizer::Spec spec() const;
  optimizer::Schedule schedule(std::uint64_t total_steps) const;

 private:
  optimizer::Options base(optimizer::Kind kind) const;
  void check_effect(const optimizer::Spec& spec) const;
};

// How often a checkpoint is written: every `steps` updates, or every `seconds`. Both 0: never.
struct CheckpointEvery {
  std::uint64_t steps = 0;
  double seconds = 0;
  // "500" (updates), "90s", "5m", "2h", "never". Throws UserError.
  static CheckpointEvery parse(const std::string& text);
};

inline constexpr std::uint32_t kLeastSide = 8, kMostSide = 1024;  // of images

// The configuration of a job. fields.h has the table of its fields: flags, keys of configuration files,
// rules.
struct JobConfig {
  std::string task;               // tasks.h; empty: `network` classifies the samples of `dataset`
  std::string program;            // whose own task is trained; empty: Capstan's tasks
  std::string network = "lenet";  // of the zoo, or the file of a TorchScript module
  std::string loss = "auto";
  std::string module_digest;  // of that file, job/module_file.h; empty for a network of the zoo
  std::string dataset = "digits";
  std::filesystem::path data_dir;
  std::uint32_t num_classes = 0;           // 0: the dataset's
  std::uint32_t image_size = 0;            // height and width to which images are scaled; 0: the dataset's
  std::optional<std::uint64_t> init_seed;  // of the initial weights; absent: `seed`
  std::filesystem::path weights;           // initial weights (safetensors); empty: from the seed; unused by a
                                           // resumed run
  std::string augment = "auto";
  std::string normalize = "auto";
  unsigned loader_threads = 0;  // per worker; 0: cores ÷ workers
  bool strict = false;          // an image that cannot be read ends the job
  std::uint32_t workers = 2;
  std::uint32_t servers = 1;
  std::string strategy = "sync";
  std::string switches;           // "500=async,900=ssp:3": strategies to switch to, by update
  std::string slow_workers;       // "1:3x": worker 1 takes three times as long for a step
  std::uint32_t batch_size = 32;  // per worker
  std::uint32_t epochs = 15;
  std::uint64_t max_steps = 0;  // updates; 0: no limit
  OptimizerConfig optimizer;
  std::uint64_t seed = 1;
  std::string device = "cpu";
  unsigned threads = 0;         // per worker; 0: cores ÷ workers
  unsigned server_threads = 0;  // per server; 0: cores ÷ servers
  std::string transport = "auto";
  std::string listen = "127.0.0.1:0";
  double join_timeout = 120;  // seconds; then the job starts without the missing workers
  std::filesystem::path token_file;
  std::filesystem::path train_dir;
  std::string checkpoint_every = "5m";
  std::uint32_t keep = 3;   // checkpoints
  std::string resume;       // auto, a run's folder or a checkpoint's; empty: a new run
  bool evaluator = false;   // a process evaluates each checkpoint
  double log_interval = 0;  // seconds between progress lines; 0: 0.2 on a terminal, 2 elsewhere

  // Names of the fields that a flag or a configuration file has set; the others have their defaults.
  std::set<std::string, std::less<>> given;

  bool has_module() const;           // `network` is a file
  std::string network_name() const;  // for texts: without a file's folders
  bool is_single() const { return strategy == "single"; }
  bool is_allreduce() const { return strategy == "allreduce"; }
  bool has_servers() const { return !is_single() && !is_allreduce(); }
  bool resumes() const { return !resume.empty() && resume != "auto"; }  // `auto` may also start a new run
  strategy::StrategySpec strategy_spec() const;  // of a job that has servers; throws UserError
  GroupTable group_table() const;                // of a model whose steps have one phase; throws UserError
  double slow_down(std::uint32_t worker) const;  // 1 for most; throws UserError
  unsigned worker_threads() const;
  unsigned threads_per_loader() const;
  unsigned threads_per_server() const;

  // Check fields that depend on each other; throw UserError. validate_model() checks the network and its data
  // only.
  void validate() const;
  void validate_model() const;
  // The same job with every derived field set and every path absolute. Throws UserError.
  JobConfig resolved() const;
  // The text of config.toml (toml_file.h); `train --config` repeats the job from it. Throws UserError.
  std::string to_toml() const;
};

// "1:3x,5:2x": the slowdown factor of each listed rank below `workers`. Throws UserError.
std::map<std::uint32_t, double> parse_slow_workers(const std::string& list, std::uint32_t workers);

}  // namespace capstan::config
