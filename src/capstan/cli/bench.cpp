#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "capstan/base/user_error.h"
#include "capstan/bench/data.h"
#include "capstan/bench/wire.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/flags.h"
#include "capstan/cli/job_dataset.h"
#include "capstan/cli/output.h"
#include "capstan/cli/signals.h"

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
  CLI::App app(
      "Push and pull of a model's tensors by real processes, without computation,\n"
      "compared with the memory traffic that cannot be avoided. At the end every worker\n"
      "checks every weight.\n\n"
      "  capstan bench wire --model resnet50 --workers 4\n",
      "bench wire");
  options.job.workers = 1;
  app.add_option("--model", options.model, "A network (capstan models lists all) or bytes:N")
      ->capture_default_str();
  app.add_option("--iterations", options.iterations, "Timed iterations (0: about two seconds' worth)")
      ->check(whole_number_in(0, 100'000'000))
      ->capture_default_str();
  app.add_option("--warmup", options.warmup, "Iterations before the clock starts")
      ->check(whole_number_in(0, 100'000'000))
      ->capture_default_str();
  app.add_flag("--json", json, "Print one JSON object");
  add_strategy_flags(app, options.job);
  for (const char* pointless : {"--max-steps", "--staleness-damping"})
    app.remove_option(app.get_option(pointless));
  app.get_option("--strategy")->description("sync, async or batch:K");
  app.add_option("--optimizer", options.job.optimizer.name,
                 "sgd, adam, adamw, adagrad, rmsprop, or none (only adds)")
      ->capture_default_str();
  app.add_option("--momentum", options.job.optimizer.momentum, "sgd (default 0.9), rmsprop (default 0)");
  app.add_option("--transport", options.job.transport, "auto, local or ucx")
      ->check(one_of({"auto", "local", "ucx"}))
      ->capture_default_str();
  app.add_flag("--as-worker", as_worker)->group("");
  app.add_option("--rank", worker.rank)->group("");
  app.add_option("--server", servers)->group("");
  if (!parse_flags(app, arguments)) return kSuccess;

  if (as_worker) {
    worker.model = options.model;
    worker.transport = options.job.transport;
    worker.iterations = options.iterations;
    worker.warmup = options.warmup;
    worker.servers = CLI::detail::split(servers, ',');
    fmt::print("{}\n", bench::run_wire_worker(worker).dump());
    return kSuccess;
  }
  options.job.optimizer.lr = 0.01;
  if (!options.job.has_servers())
    throw UserError(fmt::format("bench wire measures servers: --strategy {} has none", options.job.strategy));
  options.job.validate();
  Interrupts interrupts;
  const auto result = bench::run_wire(options, say, [&] { return interrupts.count() > 0; });
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
  CLI::App app(
      "Decodes and augments a dataset's training images as a worker does, without training.\n\n"
      "  capstan bench data --dataset imagefolder --data-dir photos --threads 1\n",
      "bench data");
  add_data_flags(app, job);
  app.remove_option(app.get_option("--loader-threads"));
  app.add_option("--threads", options.threads, "Threads that decode and augment")
      ->check(whole_number_in(1, 1024))
      ->capture_default_str();
  app.add_option("--batch-size", options.batch, "Images handed over at a time")
      ->check(whole_number_in(1, 1u << 20))
      ->capture_default_str();
  app.add_option("--epochs", options.epochs, "Passes over the images (0: about three seconds' worth)")
      ->check(whole_number_in(0, 1u << 20))
      ->capture_default_str();
  app.add_option("--seed", job.seed, "Fixes order and augmentation")
      ->check(whole_number_in(0, kMostWhole))
      ->capture_default_str();
  app.add_flag("--json", json, "Print one JSON object");
  if (!parse_flags(app, arguments)) return kSuccess;
  options.dataset = dataset_options(job);
  Interrupts interrupts;
  const auto r = bench::run_data(options, [&] { return interrupts.count() > 0; });
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
