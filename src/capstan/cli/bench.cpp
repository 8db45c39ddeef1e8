#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "capstan/base/text.h"
#include "capstan/bench/data.h"
#include "capstan/bench/result_text.h"
#include "capstan/bench/wire.h"
#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/signals.h"
#include "capstan/client/connector.h"
#include "capstan/job/dataset_options.h"
#include "capstan/user_error.h"

namespace capstan::cli {
namespace {

int bench_wire(const Arguments& arguments) {
  bench::WireOptions options;
  bench::WireWorkerOptions worker;
  std::string servers;
  bool json = false, as_worker = false;
  CommandLine line("bench wire",
                   "Measures push and pull of a model's tensors between real processes, without\n"
                   "computation, and compares it with the time of the unavoidable memory traffic. At\n"
                   "the end every worker verifies every weight.\n\n"
                   "  capstan bench wire --model resnet50 --workers 4\n");
  options.job.workers = 1;
  line.flag("model", &options.model, "A network (capstan models lists all) or bytes:N").also = "--network";
  line.flag("iterations", &options.iterations, "Timed iterations (0: about two seconds)",
            config::WholeRange{0, 100'000'000});
  line.flag("warmup", &options.warmup, "Iterations before the timed ones",
            config::WholeRange{0, 100'000'000});
  line.flag("json", &json, "Print one JSON object");
  line.add(options.job, config::kBenchWire);
  line.describe("strategy", "sync, async or batch:K");
  line.describe("optimizer", "sgd (default), adam, adamw, adagrad, rmsprop, or none (adds the sum)");
  line.flag("as-worker", &as_worker, "").hidden = true;
  line.flag("rank", &worker.rank, "").hidden = true;
  line.flag("server", &servers, "").hidden = true;
  if (!line.parse(arguments)) return kSuccess;

  if (as_worker) {
    worker.model = options.model;
    worker.transport = options.job.transport;
    worker.iterations = options.iterations;
    worker.warmup = options.warmup;
    worker.servers = client::split_addresses(servers);
    fmt::print("{}\n", bench::run_wire_worker(worker).dump());
    return kSuccess;
  }
  options.job.optimizer.lr = 0.01;
  if (!options.job.has_servers())
    throw UserError(fmt::format("bench wire measures servers: --strategy {} has none", options.job.strategy));
  options.job.validate();
  Interrupts interrupts;
  const auto result = bench::run_wire(options, say, [&] { return interrupts.requests() > 0; });
  fmt::print("{}", json ? json_line(result) + "\n" : bench::wire_text(result));
  if (result.at("ok").get<bool>()) return kSuccess;
  say("capstan: " + result.at("error").get<std::string>());
  return kFailed;
}

int bench_data(const Arguments& arguments) {
  config::JobConfig job;
  bench::DataOptions options;
  bool json = false;
  CommandLine line("bench data",
                   "Measures how fast a dataset's training images are decoded and augmented, as a\n"
                   "worker does it, without training.\n\n"
                   "  capstan bench data --dataset imagefolder --data-dir photos --threads 1\n");
  line.add(job, config::kBenchData);
  line.describe("seed", "Seed of the order and the augmentation");
  line.flag("threads", &options.threads, "Threads that decode and augment", config::WholeRange{1, 1024});
  line.flag("batch-size", &options.batch, "Images per batch", config::WholeRange{1, 1u << 20});
  line.flag("epochs", &options.epochs, "Passes over the images (0: about three seconds)",
            config::WholeRange{0, 1u << 20});
  line.flag("json", &json, "Print one JSON object");
  if (!line.parse(arguments)) return kSuccess;
  options.dataset = job::dataset_options(job);
  Interrupts interrupts;
  const auto result = bench::run_data(options, [&] { return interrupts.requests() > 0; });
  fmt::print("{}", json ? json_line(result) + "\n" : bench::data_text(result));
  return kSuccess;
}

}  // namespace

int run_bench(const Arguments& arguments) {
  if (!arguments.empty() && (arguments[0] == "wire" || arguments[0] == "data")) {
    const Arguments rest(arguments.begin() + 1, arguments.end());
    return arguments[0] == "wire" ? bench_wire(rest) : bench_data(rest);
  }
  if (!arguments.empty() && (arguments[0] == "--help" || arguments[0] == "-h")) {
    fmt::print(
        "Usage: capstan bench ps|wire|data [FLAGS]\n\n"
        "  ps    ways to train: any data, model, trainer and server\n"
        "  wire  push and pull of a model's tensors, without computation\n"
        "  data  decoding and augmenting of a dataset's images, without training\n");
    return kSuccess;
  }
  throw UserError("capstan bench needs the name of a benchmark: ps, wire or data");
}

}  // namespace capstan::cli
