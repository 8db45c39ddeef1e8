#include "capstan/config/fields.h"

#include <algorithm>

#include <fmt/format.h>

#include "capstan/user_error.h"

namespace capstan::config {
namespace {

constexpr const char *kModel = "Model and data", *kJob = "Job", *kOptimizer = "Optimizer",
                     *kConnection = "Connection", *kCheckpoints = "Checkpoints", *kOutput = "Output";
constexpr auto kManages = kTrain | kServe;  // commands that configure the whole job
constexpr auto kTrains = kManages | kWork;  // commands that have a network and its data
constexpr auto kLoads = kTrains | kEval;
constexpr auto kReads = kLoads | kBenchData;
constexpr auto kServes = kManages | kBenchWire;

using enum OnResume;

std::vector<Field> model_fields(JobConfig& c) {
  return {
      {.setting = {.name = "task",
                   .value = &c.task,
                   .help = "What is trained, if not a network on labelled samples: char-lm (language model "
                           "of characters), "
                           "gan (generates images)",
                   .group = kModel},
       .commands = kLoads,
       .on_resume = kMustMatch,
       .derived = true},
      {.setting = {.name = "program",
                   .value = &c.program,
                   .help = "Program whose own task is trained",
                   .group = kModel},
       .on_resume = kMustMatch,
       .derived = true},
      {.setting = {.name = "network",
                   .also = "--model",
                   .value = &c.network,
                   .help =
                       "Network to train: lenet, resnet18-cifar, vgg16-bn … (capstan models lists all), or a "
                       "TorchScript module: net.pt",
                   .group = kModel},
       .commands = kLoads,
       .on_resume = kMustMatch},
      {.setting = {.name = "loss",
                   .value = &c.loss,
                   .limits = Words{"auto", "cross-entropy", "mse", "l1", "smooth-l1", "bce", "module"},
                   .help = "Loss of a TorchScript module: auto (cross-entropy for classes, mse for numbers), "
                           "cross-entropy, mse, l1, smooth-l1, bce (of logits), module (its method loss)",
                   .group = kModel},
       .commands = kLoads,
       .on_resume = kMustMatch},
      {.setting = {.name = "module-digest",
                   .value = &c.module_digest,
                   .help = "Digest of a TorchScript module's file; set by train and serve",
                   .group = kModel,
                   .hidden = true},
       .commands = kManages,
       .on_resume = kMustMatch,
       .derived = true},
      {.setting = {.name = "dataset",
                   .value = &c.dataset,
                   .help = "digits (built in), mnist, fashion-mnist, cifar10, cifar100, imagenette, "
                           "imagefolder (a folder of "
                           "JPEGs or PNGs per class, in train/ and val/ or alone), arrays:FILE "
                           "(.safetensors, .npz or .npy; "
                           "options :test=FILE :input=NAME :target=NAME :numbers :shape=CxHxW), "
                           "csv:FILE:target=COLUMN[,COLUMN] "
                           "(options :test=FILE :classes :shape=CxHxW :separator=CHARACTER), "
                           "synthetic:CxHxW:classes[:samples]",
                   .group = kModel},
       .commands = kReads,
       .on_resume = kMustMatch},
      {.setting = {.name = "data-dir",
                   .value = &c.data_dir,
                   .help = "Folder with the dataset's files, directly or in a folder of its name (default: "
                           "data; for the "
                           "files of arrays and csv the current folder)",
                   .group = kModel},
       .commands = kReads,
       .on_resume = kSameJob,
       .per_process = true},
      {.setting = {.name = "image-size",
                   .value = &c.image_size,
                   .limits = WholeRange{0, kMostSide},
                   .help = "Height and width of images, 8 to 1024, for image folders (0: the dataset's)",
                   .group = kModel},
       .commands = kReads,
       .on_resume = kMustMatch},
      {.setting = {.name = "augment",
                   .value = &c.augment,
                   .limits = Words{"auto", "none", "crop-flip", "resized-crop"},
                   .help = "Augmentation of training images: auto (usual for the dataset), none, crop-flip "
                           "(random crop, padding 4; flip), resized-crop (random resized crop; flip)",
                   .group = kModel},
       .commands = kTrains | kBenchData,
       .on_resume = kSameJob},
      {.setting =
           {.name = "normalize",
            .value = &c.normalize,
            .limits = Words{"auto", "none", "train"},
            .help = "Normalisation of inputs: auto (the dataset's constants; for arrays and csv as train), "
                    "none, train (mean 0 and deviation 1 over the training part)",
            .group = kModel},
       .commands = kReads,
       .on_resume = kMustMatch},
      {.setting = {.name = "loader-threads",
                   .value = &c.loader_threads,
                   .limits = WholeRange{0, 1024},
                   .help = "Threads per worker that decode and augment images (0: cores ÷ workers)",
                   .group = kModel},
       .commands = kLoads,
       .on_resume = kMayDiffer,
       .derived = true,
       .per_process = true},
      {.setting = {.name = "strict",
                   .value = &c.strict,
                   .help = "Fail at an unreadable image instead of replacing it",
                   .group = kModel},
       .commands = kReads,
       .on_resume = kSameJob},
      {.setting = {.name = "num-classes",
                   .value = &c.num_classes,
                   .limits = WholeRange{0, 1u << 20},
                   .help = "Number of classes of the network (0: the dataset's)",
                   .group = kModel},
       .commands = kLoads,
       .on_resume = kMustMatch},
      {.setting = {.name = "weights",
                   .value = &c.weights,
                   .help = "Initial weights: a PyTorch state dict of the same network (safetensors)",
                   .group = kModel,
                   .hint = "FILE"},
       .commands = kTrains,
       .on_resume = kSameJob,
       .per_process = true},
      {.setting = {.name = "batch-size",
                   .value = &c.batch_size,
                   .limits = WholeRange{1, 1u << 20},
                   .help = "Samples per worker and step",
                   .group = kModel},
       .commands = kTrains,
       .on_resume = kSameJob},
      {.setting = {.name = "epochs",
                   .value = &c.epochs,
                   .limits = WholeRange{1, 1u << 20},
                   .help = "Passes over the training set",
                   .group = kModel},
       .commands = kTrains,
       .on_resume = kMayDiffer},
      {.setting = {.name = "seed",
                   .value = &c.seed,
                   .help = "Seed of the initial weights and of the order of samples",
                   .group = kModel},
       .commands = kTrains | kBenchData,
       .on_resume = kMustMatch},
      {.setting = {.name = "init-seed",
                   .value = &c.init_seed,
                   .help = "Seed of the initial weights, instead of --seed",
                   .group = kModel},
       .commands = kTrains,
       .on_resume = kSameJob,
       .derived = true},
      {.setting = {.name = "device",
                   .value = &c.device,
                   .limits = Words{"cpu", "cuda"},
                   .help = "cpu or cuda",
                   .group = kModel},
       .commands = kLoads,
       .on_resume = kSameJob,
       .per_process = true},
      {.setting = {.name = "enable-gpu",
                   .value = Action{[&c](const std::string&) { c.device = "cuda"; }, true},
                   .help = "The same as --device cuda",
                   .group = kModel},
       .commands = kLoads,
       .sets = "device"},
      {.setting = {.name = "threads",
                   .value = &c.threads,
                   .limits = WholeRange{0, 1024},
                   .help = "Compute threads per worker (0: cores ÷ workers)",
                   .group = kModel},
       .commands = kLoads,
       .on_resume = kMayDiffer,
       .derived = true,
       .per_process = true},
  };
}

void damp(JobConfig& c) {
  if (c.strategy != "async" && c.strategy != "async:damped")
    throw UserError(fmt::format("--staleness-damping needs --strategy async, not {}", c.strategy));
  c.strategy = "async:damped";
}

std::vector<Field> job_fields(JobConfig& c) {
  return {
      {.setting = {.name = "workers",
                   .value = &c.workers,
                   .limits = WholeRange{1, 4096},
                   .help = "Number of workers",
                   .group = kJob},
       .commands = kServes,
       .on_resume = kMayDiffer},
      {.setting = {.name = "servers",
                   .value = &c.servers,
                   .limits = WholeRange{1, 256},
                   .help = "Number of servers; each holds a shard of the weights",
                   .group = kJob},
       .commands = kServes,
       .on_resume = kMayDiffer},
      {.setting = {.name = "strategy",
                   .value = &c.strategy,
                   .help = "How workers and servers synchronise (--strategy help lists the strategies)",
                   .group = kJob},
       .commands = kServes,
       .on_resume = kSameJob},
      {.setting = {.name = "switch",
                   .value = &c.switches,
                   .help = "Strategies to switch to, and after how many updates: 500=async,900=ssp:3",
                   .group = kJob,
                   .hint = "STEP=STRATEGY,..."},
       .commands = kServes,
       .on_resume = kSameJob},
      {.setting = {.name = "num-aggregate",
                   .value = Action{[&c](const std::string& k) { c.strategy = "batch:" + k; }},
                   .limits = WholeRange{1, 4096},
                   .help = "K: the same as --strategy batch:K",
                   .group = kJob,
                   .hint = "K"},
       .commands = kServes,
       .sets = "strategy"},
      {.setting =
           {.name = "staleness-damping",
            .value = Action{[&c](const std::string&) { damp(c); }, true},
            .help = "With async: the learning rate of a gradient that is t updates old is divided by 1 + t",
            .group = kJob},
       .commands = kManages,
       .sets = "strategy",
       .adjusts = true},
      {.setting = {.name = "max-steps",
                   .value = &c.max_steps,
                   .help = "Updates after which the job ends (0: no limit)",
                   .group = kJob},
       .commands = kManages,
       .on_resume = kMayDiffer},
      {.setting = {.name = "server-threads",
                   .value = &c.server_threads,
                   .limits = WholeRange{0, 1024},
                   .help = "Threads per server (0: cores ÷ servers)",
                   .group = kJob},
       .commands = kServes,
       .on_resume = kMayDiffer,
       .derived = true,
       .per_process = true},
      {.setting = {.name = "slow-worker",
                   .value = &c.slow_workers,
                   .help = "Slow workers down by a factor, to test a strategy: 1:3x",
                   .group = kJob,
                   .hint = "RANK:TIMESx,..."},
       .commands = kTrain,
       .on_resume = kSameJob},
  };
}

// Without options, which may change.
std::string optimizer_kinds(const std::string& text) {
  return text.empty() ? text : optimizer::parse_spec(text, optimizer::defaults).kinds();
}

std::vector<Field> optimizer_fields(JobConfig& c) {
  std::vector<Field> out = {{.setting = {.name = "optimizer",
                                         .value = &c.optimizer.name,
                                         .help = "sgd (default; adamw with diloco), adam, adamw, adagrad, "
                                                 "rmsprop, sparse-adam (for tensors with "
                                                 "sparse gradients), or none (adds the sum); with options "
                                                 "(adam:lr=0.001:beta1=0.5); by tensors "
                                                 "(default=sgd,fc*=adam:lr=0.001)",
                                         .group = kOptimizer},
                             .commands = kServes,
                             .on_resume = kMustMatch,
                             .derived = true,
                             .must_match = optimizer_kinds}};
  optimizer::visit_options(
      [&](const optimizer::OptionInfo& option, auto& value) {
        out.push_back(
            {.setting = {.name = option.name, .value = &value, .help = option.help, .group = kOptimizer},
             .commands = option.name == "momentum" ? kServes : kManages,
             .on_resume = kSameJob,
             .derived = true});
      },
      c.optimizer);
  out.push_back({.setting = {.name = "lr-schedule",
                             .value = &c.optimizer.lr_schedule,
                             .help = "constant, step:EVERY:GAMMA (in updates) or cosine",
                             .group = kOptimizer},
                 .commands = kManages,
                 .on_resume = kSameJob});
  out.push_back({.setting = {.name = "warmup",
                             .value = &c.optimizer.warmup,
                             .help = "Linear warm-up of the learning rate, in updates",
                             .group = kOptimizer},
                 .commands = kManages,
                 .on_resume = kSameJob});
  return out;
}

std::vector<Field> run_fields(JobConfig& c) {
  return {
      {.setting = {.name = "transport",
                   .value = &c.transport,
                   .limits = Words{"auto", "local", "ucx"},
                   .help = "auto, local (shared memory, one host) or ucx (any host)",
                   .group = kConnection},
       .commands = kServes | kWork,
       .on_resume = kMayDiffer,
       .per_process = true},
      {.setting = {.name = "token-file",
                   .value = &c.token_file,
                   .help = "File (mode 0600) with the job's token; else $CAPSTAN_TOKEN",
                   .group = kConnection},
       .commands = kManages | kWork,
       .on_resume = kMayDiffer,
       .per_process = true},
      {.setting = {.name = "listen",
                   .value = &c.listen,
                   .help = "HOST:PORT to listen on; port 0 picks a free one",
                   .group = kConnection},
       .commands = kManages,
       .on_resume = kMayDiffer,
       .per_process = true},
      {.setting = {.name = "join-timeout",
                   .value = &c.join_timeout,
                   .limits = NumberRange{0.1, 1e6},
                   .help =
                       "Seconds to wait for workers; then the job starts without those that have not joined",
                   .group = kConnection},
       .commands = kManages,
       .on_resume = kMayDiffer,
       .per_process = true},
      {.setting = {.name = "checkpoint-every",
                   .value = &c.checkpoint_every,
                   .help = "Updates (500) or time (90s, 5m, 2h) between checkpoints; one more is written at "
                           "the end; never: none at all",
                   .group = kCheckpoints},
       .commands = kManages,
       .on_resume = kMayDiffer},
      {.setting = {.name = "eval-freq",
                   .value = Action{[&c](const std::string& n) { c.checkpoint_every = n; }},
                   .limits = WholeRange{1, 1'000'000'000'000},
                   .help = "N: the same as --checkpoint-every N, in updates",
                   .group = kCheckpoints},
       .commands = kManages,
       .sets = "checkpoint-every"},
      {.setting = {.name = "keep",
                   .value = &c.keep,
                   .limits = WholeRange{1, 1'000'000},
                   .help = "Number of newest checkpoints to keep",
                   .group = kCheckpoints},
       .commands = kManages,
       .on_resume = kMayDiffer},
      {.setting =
           {.name = "resume",
            .value = &c.resume,
            .help = "Resume from a checkpoint: its folder, a run's folder (newest valid checkpoint), or auto",
            .group = kCheckpoints,
            .hint = "auto|PATH"},
       .commands = kManages},
      {.setting = {.name = "evaluator",
                   .value = &c.evaluator,
                   .help =
                       "Run the command eval beside the job: it evaluates each checkpoint and links the best",
                   .group = kCheckpoints},
       .commands = kTrain,
       .on_resume = kMayDiffer,
       .per_process = true},
      {.setting = {.name = "train-dir",
                   .value = &c.train_dir,
                   .help = "Run folder (default: runs/<time>-<network>-<dataset>)",
                   .group = kOutput},
       .commands = kManages},
      {.setting = {.name = "log-interval",
                   .value = &c.log_interval,
                   .limits = NumberRange{0, 1e6},
                   .help = "Seconds between progress lines (0: 0.2 on a terminal, else 2)",
                   .group = kOutput},
       .commands = kTrain,
       .on_resume = kMayDiffer,
       .per_process = true},
  };
}

}  // namespace

std::vector<Field> fields(JobConfig& config) {
  auto all = model_fields(config);
  for (auto* more : {job_fields, optimizer_fields, run_fields}) {
    auto list = more(config);
    all.insert(all.end(), std::make_move_iterator(list.begin()), std::make_move_iterator(list.end()));
  }
  return all;
}

bool is_for_networks(const Field& field) {
  constexpr std::string_view kNames[] = {"task",    "program",   "network", "image-size",
                                         "augment", "normalize", "strict",  "num-classes"};
  return std::ranges::find(kNames, field.name()) != std::end(kNames);
}

bool is_unset(const Field& field) {
  return field.derived && std::visit(
                              []<class P>(const P& place) {
                                if constexpr (std::is_same_v<P, Action>)
                                  return false;
                                else
                                  return *place == std::remove_pointer_t<P>{};
                              },
                              field.setting.value);
}

}  // namespace capstan::config
