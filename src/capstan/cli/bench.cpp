#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "capstan/base/user_error.h"
#include "capstan/bench/data.h"
#include "capstan/bench/wire.h"
#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/output.h"
#include "capstan/cli/signals.h"
#include "capstan/client/connector.h"
#include "capstan/job/dataset_options.h"

namespace capstan::cli {
namespace {

void print_table(const nlohmann::json& r) {
  const auto number = [&](const char* key) { return r.at(key).get<double>(); };
  fmt::print("{} ({:.1f} MB, {} tensors), {} workers, {} servers, {}, {}, {}\n",
             r.at("model").get<std::string>(), number("bytes") / 1e6, r.at("tensors").get<int>(),
             r.at("workers").get<int>(), r.at("servers").get<int>(), r.at("strategy").get<std::string>(),
             r.at("optimizer").get<std::string>(), r.at("transport").get<std::string>());
  fmt::print("  per iteration   {:.3f} ms   (p50 {:.0f} µs, p99 {:.0f} µs)\n",
             number("seconds_per_iteration") * 1e3, number("p50_us"), number("p99_us"));
  fmt::print("  throughput      {:.2f} GB/s pushed and pulled\n", number("gigabytes_per_second"));
  fmt::print("  memory floor    {:.3f} ms at memcpy's {:.1f} GB/s: {:.2f} × the floor\n",
             number("floor_seconds") * 1e3, number("memcpy_gigabytes_per_second"), number("floor_ratio"));
  fmt::print("  servers         {:.1f} MB, {:.2f} s CPU; workers {:.2f} s CPU\n",
             number("server_rss_bytes") / 1e6, number("server_cpu_seconds"), number("worker_cpu_seconds"));
  fmt::print("  weights         {}\n",
             r.at("ok").get<bool>() ? "exactly what plain arithmetic gives" : "WRONG");
}

int bench_wire(const Arguments& arguments) {
  bench::WireOptions options;
  bench::WireWorkerOptions worker;
  std::string servers;
  bool json = false, as_worker = false;
  CommandLine line("bench wire",
                   "Push and pull of a model's tensors by real processes, without computation,\n"
                   "compared with the memory traffic that cannot be avoided. At the end every worker\n"
                   "checks every weight.\n\n"
                   "  capstan bench wire --model resnet50 --workers 4\n");
  options.job.workers = 1;
  line.add(
      {.name = "model", .value = &options.model, .help = "A network (capstan models lists all) or bytes:N"});
  line.add({.name = "iterations",
            .value = &options.iterations,
            .limits = config::WholeRange{0, 100'000'000},
            .help = "Timed iterations (0: about two seconds' worth)"});
  line.add({.name = "warmup",
            .value = &options.warmup,
            .limits = config::WholeRange{0, 100'000'000},
            .help = "Iterations before the clock starts"});
  line.add({.name = "json", .value = &json, .help = "Print one JSON object"});
  line.add(options.job, config::kBenchWire);
  line.describe("strategy", "sync, async or batch:K");
  line.describe("optimizer", "sgd (default), adam, adamw, adagrad, rmsprop, or none (only adds)");
  line.add({.name = "as-worker", .value = &as_worker, .hidden = true});
  line.add({.name = "rank", .value = &worker.rank, .hidden = true});
  line.add({.name = "server", .value = &servers, .hidden = true});
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
  if (json) {
    fmt::print("{}\n", json_line(result));
  } else {
    print_table(result);
  }
  if (result.at("ok").get<bool>()) return kSuccess;
  say("capstan: " + result.at("error").get<std::string>());
  return kFailed;
}

int bench_data(const Arguments& arguments) {
  config::JobConfig job;
  bench::DataOptions options;
  bool json = false;
  CommandLine line("bench data",
                   "Decodes and augments a dataset's training images as a worker does, without training.\n\n"
                   "  capstan bench data --dataset imagefolder --data-dir photos --threads 1\n");
  line.add(job, config::kBenchData);
  line.describe("seed", "Fixes order and augmentation");
  line.add({.name = "threads",
            .value = &options.threads,
            .limits = config::WholeRange{1, 1024},
            .help = "Threads that decode and augment"});
  line.add({.name = "batch-size",
            .value = &options.batch,
            .limits = config::WholeRange{1, 1u << 20},
            .help = "Images handed over at a time"});
  line.add({.name = "epochs",
            .value = &options.epochs,
            .limits = config::WholeRange{0, 1u << 20},
            .help = "Passes over the images (0: about three seconds' worth)"});
  line.add({.name = "json", .value = &json, .help = "Print one JSON object"});
  if (!line.parse(arguments)) return kSuccess;
  options.dataset = job::dataset_options(job);
  Interrupts interrupts;
  const auto r = bench::run_data(options, [&] { return interrupts.requests() > 0; });
  if (json) {
    fmt::print("{}\n", json_line(r));
  } else {
    fmt::print("{}: {} images in {:.2f} s by {}\n  {:.0f} images/s, {:.0f} per core; {} unreadable\n",
               job.dataset, r.at("images").get<std::uint64_t>(), r.at("seconds").get<double>(),
               counted(options.threads, "thread"), r.at("images_per_second").get<double>(),
               r.at("images_per_second_per_core").get<double>(), r.at("unreadable").get<std::uint64_t>());
  }
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
        "Usage: capstan bench wire|data [FLAGS]\n\n"
        "  wire  push and pull of a model's tensors, without computation\n"
        "  data  a dataset's images, decoded and augmented, without training\n");
    return kSuccess;
  }
  throw UserError("capstan bench needs the name of a benchmark: wire or data");
}

}  // namespace capstan::cli
