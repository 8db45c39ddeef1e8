#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include "capstan/base/cores.h"
#include "capstan/base/unique_fd.h"
#include "capstan/base/user_error.h"
#include "capstan/checkpoint/checkpoint.h"
#include "capstan/checkpoint/run_checkpoints.h"
#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/device.h"
#include "capstan/cli/folder_watch.h"
#include "capstan/cli/job_dataset.h"
#include "capstan/cli/network.h"
#include "capstan/cli/output.h"
#include "capstan/cli/signals.h"
#include "capstan/models/arena.h"
#include "capstan/models/buffers.h"
#include "capstan/training/evaluate.h"
#include "capstan/training/threads.h"

namespace capstan::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kRecord = "evaluations.jsonl";

struct EvalOptions {
  config::JobConfig job;
  std::uint64_t eval_freq = 0;
  std::uint64_t batch = 0;
  double poll_interval = 1;
  bool once = false;
  bool json = false;
};

// Evaluates the checkpoints of one run as they come.
class Evaluator {
 public:
  Evaluator(const EvalOptions& options, Interrupts& interrupts)
      : options_(options),
        run_(options.job.train_dir),
        interrupts_(interrupts),
        dataset_(load_test(options.job)),
        model_(training::make_network(network_options(options.job), dataset_.test->shape(), kAnyBatch)),
        layout_(models::layout_of(*model_)),
        buffer_layout_(models::buffer_layout_of(*model_)),
        weights_(layout_.size()) {
    lock_record();
    read_record();
    record_.open(run_ / kRecord, std::ios::app);
    if (!record_) throw UserError(fmt::format("cannot write {}", (run_ / kRecord).string()));
    models::bind_parameters(*model_, layout_, weights_.data());
  }

  int run() {
    FolderWatch watch({run_, run_ / "checkpoints"});
    while (interrupts_.count() == 0) {
      const bool finished = checkpoint::is_finished(run_);  // before the look: what came earlier is seen
      const bool any = evaluate_new();
      if (options_.once && !any && evaluated_.empty())
        throw UserError(fmt::format("{} has no checkpoint yet", run_.string()));
      if (options_.once || (finished && !any)) break;
      if (!any) watch.wait(interrupts_.fd(), from_seconds(options_.poll_interval));
    }
    report();
    return interrupts_.count() > 0 ? kInterrupted : kSuccess;
  }

 private:
  static constexpr std::uint64_t kAnyBatch = 2;  // nothing is trained here

  static data::Dataset load_test(const config::JobConfig& job) {
    auto options = dataset_options(job);
    options.test_only = true;
    return data::load(options);
  }

  // Two evaluators of one run would do everything twice. A file system without locks has to do without.
  void lock_record() {
    lock_.reset(::open((run_ / kRecord).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!lock_)
      throw UserError(fmt::format("cannot write {}: {}", (run_ / kRecord).string(), std::strerror(errno)));
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      throw UserError(fmt::format("{} is being evaluated by another process", run_.string()));
  }

  // What was evaluated before this process is not done again.
  void read_record() {
    std::ifstream in(run_ / kRecord);
    for (std::string line; std::getline(in, line);) {
      const auto json = Json::parse(line, nullptr, false);
      if (!json.is_object() || !json.value("step", Json()).is_number_unsigned() ||
          !json.value("test_accuracy", Json()).is_number() || !json.value("id", Json()).is_string())
        continue;
      evaluated_.insert(json["id"].get<std::string>());
      results_.push_back(json);
    }
    best_ = best();
  }

  // Of those evaluated that are still there: a run that went back has left some of them.
  Json best() const {
    Json result;
    for (const auto& line : results_) {
      if (!result.is_null() && accuracy(line) <= accuracy(result)) continue;
      const auto folder = checkpoint::folder_of(run_, {line["step"].get<std::uint64_t>()});
      if (checkpoint::identity(folder) == line["id"].get<std::string>()) result = line;
    }
    return result;
  }

  static double accuracy(const Json& line) { return line["test_accuracy"].get<double>(); }

  // True where there was something to do.
  bool evaluate_new() {
    bool any = false;
    for (const auto& entry : checkpoint::list(run_)) {
      if (interrupts_.count() > 0) break;
      if (options_.eval_freq > 0 && entry.version.value % options_.eval_freq != 0) continue;
      const auto id = checkpoint::identity(entry.folder);
      if (id.empty() || !evaluated_.insert(id).second) continue;
      any = true;
      try {
        evaluate(entry, id);
      } catch (const UserError& error) {
        if (options_.once) throw;
        // It may have been removed to make room while it was read: then there is nothing to say.
        if (fs::exists(entry.folder / checkpoint::kManifestFile))
          say(fmt::format("capstan: {}", error.what()));
      }
    }
    return any;
  }

  void evaluate(const checkpoint::Entry& entry, const std::string& id) {
    const auto manifest = checkpoint::read_manifest(entry.folder);
    if (const auto difference = layout_.difference(FlatLayout(manifest.parameters)); !difference.empty())
      throw Failure(kWrongUsage, fmt::format("{} is of another network than {}: {}", entry.folder.string(),
                                             options_.job.network, difference));
    const checkpoint::NamedArray array[] = {{"weights", weights_}};
    checkpoint::load(entry.folder, manifest, {0, layout_.size()}, array);
    if (manifest.buffers == buffer_layout_.tensors())
      models::copy_buffers_in(*model_, checkpoint::load_buffers(entry.folder, manifest));
    const auto start = SteadyClock::now();
    const auto test =
        training::evaluate(*model_, *dataset_.test, options_.job.threads_per_loader(), options_.batch);
    const double epoch = manifest.samples > 0 ? static_cast<double>(manifest.trained_samples) /
                                                    static_cast<double>(manifest.samples)
                                              : 0;
    const Json line = {{"step", entry.version.value},
                       {"epoch", epoch},
                       {"test_loss", test.loss},
                       {"test_accuracy", test.accuracy},
                       {"test_top5", test.top5},
                       {"samples", test.samples},
                       {"seconds", seconds(SteadyClock::now() - start)},
                       {"checkpoint", entry.folder.filename().string()},
                       {"id", id}};
    record_ << json_line(line) << std::endl;
    if (!record_)
      throw Failure(kFailed, fmt::format("cannot write {}: is the disk full?", (run_ / kRecord).string()));
    results_.push_back(line);
    best_ = best();
    if (!best_.is_null()) checkpoint::link_best(run_, {best_["step"].get<std::uint64_t>()});
    const bool better = best_ == line;
    say(fmt::format("step {}  epoch {:.2f}  test accuracy {:.2f} %  top-5 {:.2f} %  test loss {:.4f}{}",
                    entry.version.value, epoch, 100 * test.accuracy, 100 * test.top5, test.loss,
                    better ? "  best" : ""));
  }

  void report() {
    if (options_.json) {
      fmt::print("{}\n", json_line(Json{{"ok", true},
                                        {"train_dir", run_.string()},
                                        {"evaluations", evaluated_.size()},
                                        {"best", best_}}));
    } else if (!best_.is_null()) {
      fmt::print("best: step {} with {:.2f} % ({})\n", best_["step"].get<std::uint64_t>(),
                 100 * accuracy(best_), (run_ / "checkpoints" / "best").string());
    }
  }

  const EvalOptions& options_;
  const fs::path run_;
  Interrupts& interrupts_;
  const data::Dataset dataset_;
  const std::unique_ptr<models::Model> model_;
  const FlatLayout layout_, buffer_layout_;
  std::vector<float> weights_;
  std::set<std::string> evaluated_;  // by their identities
  std::vector<Json> results_;
  Json best_;
  UniqueFd lock_;
  std::ofstream record_;
};

// The job's own configuration, which train left in the run folder.
fs::path configuration_of(const std::string& run) {
  const auto file = fs::path(run) / "config.toml";
  return fs::exists(file) ? file : fs::path();
}

}  // namespace

int run_eval(const Arguments& arguments) {
  EvalOptions options;
  CommandLine line("eval",
                   "Watches the checkpoints of a run and evaluates each on the test set, until the\n"
                   "run is finished. Writes evaluations.jsonl into the run folder, and keeps the\n"
                   "link checkpoints/best. Network and dataset are those of the run.\n\n"
                   "  capstan eval --train-dir runs/NAME\n"
                   "  capstan eval --train-dir runs/NAME --once        what is there, then ends\n"
                   "  capstan eval --model-dir DIR --network lenet --dataset mnist --eval-freq 50\n");
  line.add(options.job, config::kEval);
  line.add({.name = "train-dir",
            .also = "--model-dir",
            .value = &options.job.train_dir,
            .help = "The run's folder",
            .required = true});
  line.read_file_of("train-dir", configuration_of);
  line.add({.name = "eval-batch-size",
            .value = &options.batch,
            .limits = config::WholeRange{0, 1u << 20},
            .help = "Samples at once (0: as many as suit)"});
  line.add({.name = "eval-freq",
            .value = &options.eval_freq,
            .help = "Only checkpoints at multiples of so many updates (0: all)"});
  line.add({.name = "poll-interval",
            .value = &options.poll_interval,
            .limits = config::NumberRange{0.01, 3600},
            .help = "Seconds after which to look where the file system tells of no change"});
  line.add({.name = "once", .value = &options.once, .help = "Evaluate what is there, then end"});
  line.add({.name = "json", .value = &options.json, .help = "Print the result as one JSON object"});
  if (!line.parse(arguments)) return kSuccess;
  check_device(options.job.device);
  if (!fs::is_directory(options.job.train_dir))
    throw UserError(fmt::format("--train-dir {}: there is no such folder", options.job.train_dir.string()));
  options.job.weights.clear();

  Interrupts interrupts;
  training::configure_torch(static_cast<int>(options.job.worker_threads()));
  return Evaluator(options, interrupts).run();
}

}  // namespace capstan::cli
