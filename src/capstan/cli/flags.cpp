#include "capstan/cli/flags.h"

#include <fmt/format.h>

#include "capstan/base/user_error.h"

namespace capstan::cli {

void add_model_flags(CLI::App& app, config::JobConfig& c) {
  app.add_option("--network", c.network,
                 "Which network to train: lenet, resnet18-cifar, vgg16-bn … (capstan models lists all)")
      ->capture_default_str()
      ->group("Model and data");
  add_data_flags(app, c);
  app.add_option("--num-classes", c.num_classes, "Classes of the network (0: the dataset's)")
      ->check(whole_number_in(0, 1u << 20))
      ->capture_default_str()
      ->group("Model and data");
  app.add_option("--weights", c.weights,
                 "Weights to begin with: a PyTorch state dict of the same network (safetensors)")
      ->type_name("FILE")
      ->group("Model and data");
  app.add_option("--batch-size", c.batch_size, "Samples per worker and step")
      ->check(whole_number_in(1, 1u << 20))
      ->capture_default_str()
      ->group("Model and data");
  app.add_option("--epochs", c.epochs, "Passes over the training set")
      ->check(whole_number_in(1, 1u << 20))
      ->capture_default_str()
      ->group("Model and data");
  app.add_option("--seed", c.seed, "Fixes initial weights and the order of samples")
      ->check(whole_number_in(0, kMostWhole))
      ->capture_default_str()
      ->group("Model and data");
  app.add_option("--init-seed", c.init_seed, "Fixes initial weights instead of --seed")
      ->check(whole_number_in(0, kMostWhole))
      ->group("Model and data");
  app.add_option("--device", c.device, "cpu or cuda")
      ->check(one_of({"cpu", "cuda"}))
      ->capture_default_str()
      ->group("Model and data");
  app.add_flag_callback(
         "--enable-gpu", [&c] { c.device = "cuda"; }, "The same as --device cuda")
      ->group("Model and data");
  app.add_option("--threads", c.threads, "Compute threads per worker (0: cores ÷ workers)")
      ->check(whole_number_in(0, 1024))
      ->capture_default_str()
      ->group("Model and data");
}

void add_data_flags(CLI::App& app, config::JobConfig& c) {
  app.add_option("--dataset", c.dataset,
                 "digits (built in), mnist, fashion-mnist, cifar10, cifar100, imagenette,\n"
                 "imagefolder (train/ and val/ with a folder of JPEGs or PNGs per class),\n"
                 "synthetic:CxHxW:classes[:samples]")
      ->capture_default_str()
      ->group("Model and data");
  app.add_option("--data-dir", c.data_dir,
                 "Folder of the dataset's files, or of a folder of the dataset's name (default: data)")
      ->group("Model and data");
  app.add_option("--image-size", c.image_size,
                 "Height and width of images, 8 to 1024, where the data can be scaled (0: the dataset's)")
      ->check(whole_number_in(0, 1024))
      ->capture_default_str()
      ->group("Model and data");
  app.add_option("--augment", c.augment,
                 "What happens to training images: auto (what is usual for the dataset), none,\n"
                 "crop-flip (moved by up to 4 pixels, mirrored), resized-crop (parts, mirrored)")
      ->check(one_of({"auto", "none", "crop-flip", "resized-crop"}))
      ->capture_default_str()
      ->group("Model and data");
  app.add_option("--loader-threads", c.loader_threads,
                 "Threads per worker that decode and augment images (0: cores ÷ workers)")
      ->check(whole_number_in(0, 1024))
      ->capture_default_str()
      ->group("Model and data");
  app.add_flag("--strict", c.strict, "End at an image that cannot be read, instead of replacing it")
      ->group("Model and data");
}

void add_strategy_flags(CLI::App& app, config::JobConfig& c) {
  app.add_option("--workers", c.workers, "Workers of the job")
      ->check(whole_number_in(1, 4096))
      ->capture_default_str()
      ->group("Job");
  app.add_option("--servers", c.servers, "Servers that share the weights")
      ->check(whole_number_in(1, 256))
      ->capture_default_str()
      ->group("Job");
  app.add_option("--strategy", c.strategy, "How workers and servers keep in step; help lists them")
      ->capture_default_str()
      ->group("Job");
  app.add_option("--switch", c.switches, "Strategies that take over on the way, such as 500=async,900=ssp:3")
      ->option_text("STEP=STRATEGY,...")
      ->group("Job");
  app.add_option_function<std::uint32_t>(
         "--num-aggregate", [&c](std::uint32_t k) { c.strategy = fmt::format("batch:{}", k); },
         "K: the same as --strategy batch:K")
      ->check(whole_number_in(1, 4096))
      ->option_text("K")
      ->group("Job");
  app.add_flag_callback(
         "--staleness-damping",
         [&c] {
           if (c.strategy != "async" && c.strategy != "async:damped")
             throw UserError(fmt::format("--staleness-damping needs --strategy async, not {}", c.strategy));
           c.strategy = "async:damped";
         },
         "With async: the learning rate of a gradient that is t updates old is divided by 1 + t")
      ->group("Job");
  app.add_option("--max-steps", c.max_steps, "End after so many updates (0: no limit)")
      ->check(whole_number_in(0, kMostWhole))
      ->capture_default_str()
      ->group("Job");
  app.add_option("--server-threads", c.server_threads, "Threads per server (0: cores ÷ servers)")
      ->check(whole_number_in(0, 1024))
      ->capture_default_str()
      ->group("Job");
}

void add_optimizer_flags(CLI::App& app, config::OptimizerConfig& c) {
  const auto option = [&](const char* name, auto& variable, const char* help) {
    return app.add_option(name, variable, help)->group("Optimizer");
  };
  option("--optimizer", c.name,
         "sgd (default; adamw with diloco), adam, adamw, adagrad, rmsprop, or none (only adds)");
  option("--lr", c.lr,
         "Learning rate (default: sgd 0.02, adam and adamw 0.001, adagrad and rmsprop 0.01;\n"
         "times K ÷ workers where an update is of K workers' gradients, as with async)");
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
  option("--warmup", c.warmup, "Updates of linear warm-up")
      ->check(whole_number_in(0, kMostWhole))
      ->capture_default_str();
}

void add_transport_flags(CLI::App& app, config::JobConfig& c) {
  app.add_option("--transport", c.transport, "auto, local (shared memory, one host) or ucx (any host)")
      ->check(one_of({"auto", "local", "ucx"}))
      ->capture_default_str()
      ->group("Connection");
  app.add_option("--token-file", c.token_file, "File (mode 0600) with the job's token; else $CAPSTAN_TOKEN")
      ->group("Connection");
}

void add_checkpoint_flags(CLI::App& app, config::JobConfig& c) {
  app.add_option(
         "--checkpoint-every", c.checkpoint_every,
         "Updates (500) or time (90s, 5m, 2h) between checkpoints, or never; one more is written at the end")
      ->capture_default_str()
      ->group("Checkpoints");
  app.add_option_function<std::uint64_t>(
         "--eval-freq", [&c](std::uint64_t steps) { c.checkpoint_every = fmt::format("{}", steps); },
         "N: the same as --checkpoint-every N, in updates")
      ->check(whole_number_in(1, 1'000'000'000'000))
      ->option_text("N")
      ->group("Checkpoints");
  app.add_option("--keep", c.keep, "How many of them to keep")
      ->check(whole_number_in(1, 1'000'000))
      ->capture_default_str()
      ->group("Checkpoints");
  app.add_option("--resume", c.resume,
                 "Go on from a checkpoint: its folder, a run's folder (its newest good one), or auto")
      ->option_text("auto|PATH")
      ->group("Checkpoints");
}

void add_listen_flags(CLI::App& app, config::JobConfig& c) {
  app.add_option("--listen", c.listen, "HOST:PORT to listen on; port 0 picks a free one")
      ->capture_default_str()
      ->group("Connection");
  app.add_option("--join-timeout", c.join_timeout,
                 "Seconds after which workers that have not come are left out")
      ->check(number_in(0.1, 1e6))
      ->capture_default_str()
      ->group("Connection");
}

}  // namespace capstan::cli
