#include "capstan/job/checkpoint_evaluator.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include "capstan/base/json.h"
#include "capstan/base/text.h"
#include "capstan/checkpoint/checkpoint.h"
#include "capstan/job/folder_watch.h"
#include "capstan/job/stop_watch.h"
#include "capstan/user_error.h"

namespace capstan::job {
namespace {

namespace fs = std::filesystem;
using Parsed = nlohmann::ordered_json;

constexpr const char* kRecord = "evaluations.jsonl";

}  // namespace

Json CheckpointEvaluation::json() const {
  Json json{{"step", step}, {"epoch", epoch}};
  test.add_to(json);
  json["samples"] = test.samples;
  json["seconds"] = seconds;
  json["checkpoint"] = checkpoint;
  json["id"] = id;
  return json;
}

std::optional<CheckpointEvaluation> CheckpointEvaluation::parse(const std::string& line,
                                                                const std::vector<Metric>& metrics) {
  const auto json = Parsed::parse(line, nullptr, false);
  if (!json.is_object() || !json.value("step", Parsed()).is_number_unsigned() ||
      !json.value(metrics::key_of(metrics.front()), Parsed()).is_number() ||
      !json.value("id", Parsed()).is_string())
    return {};
  const auto number = [&](const std::string& key, double otherwise) {
    const auto found = json.find(key);
    return found != json.end() && found->is_number() ? found->get<double>() : otherwise;
  };
  auto test = metrics::Evaluation::unknown(metrics);
  for (std::size_t i = 0; i < metrics.size(); ++i)
    test.values[i] = number(metrics::key_of(metrics[i]), test.values[i]);
  test.samples = static_cast<std::uint64_t>(number("samples", 0));
  const auto name = json.value("checkpoint", Parsed());
  return CheckpointEvaluation{json["step"].get<std::uint64_t>(),
                              number("epoch", 0),
                              std::move(test),
                              number("seconds", 0),
                              name.is_string() ? name.get<std::string>() : "",
                              json["id"].get<std::string>()};
}

CheckpointEvaluator::CheckpointEvaluator(Options options, Evaluate evaluate, Environment environment)
    : options_(std::move(options)),
      evaluate_(std::move(evaluate)),
      environment_(environment),
      weights_(options_.layout.size()) {
  lock_record();
  read_record();
  record_.open(options_.run / kRecord, std::ios::app);
  if (!record_) throw UserError(fmt::format("cannot write {}", (options_.run / kRecord).string()));
}

// Two evaluators of one run would duplicate all work. On a file system without locks this is not detected.
void CheckpointEvaluator::lock_record() {
  const auto file = options_.run / kRecord;
  lock_.reset(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!lock_) throw UserError(fmt::format("cannot write {}: {}", file.string(), std::strerror(errno)));
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw UserError(fmt::format("{} is being evaluated by another process", options_.run.string()));
}

// Checkpoints that an earlier process has evaluated are skipped.
void CheckpointEvaluator::read_record() {
  std::ifstream in(options_.run / kRecord);
  for (std::string line; std::getline(in, line);) {
    if (auto parsed = CheckpointEvaluation::parse(line, options_.metrics)) {
      evaluated_.insert(parsed->id);
      results_.push_back(std::move(*parsed));
    }
  }
  best_ = find_best();
}

std::string CheckpointEvaluator::text() const {
  if (!best_) return "";
  return fmt::format("best: step {} with {} ({})\n", best_->step, best_->test.text("", 1),
                     (options_.run / "checkpoints" / "best").string());
}

Json CheckpointEvaluator::json() const {
  Json json{{"ok", exit_code() == kSuccess},
            {"train_dir", options_.run.string()},
            {"evaluations", results_.size()},
            {"best", best_ ? best_->json() : Json()}};
  if (exit_code() != kSuccess) json["error"] = interrupted_ ? "interrupted" : problem();
  return json;
}

ExitCode CheckpointEvaluator::exit_code() const {
  return interrupted_ ? kInterrupted : unreadable_ > 0 ? kFailed : kSuccess;
}

std::string CheckpointEvaluator::problem() const {
  return fmt::format("{} could not be read", counted(unreadable_, "checkpoint"));
}

// Among checkpoints that still exist: a run resumed from an older checkpoint discards the newer ones.
std::optional<CheckpointEvaluation> CheckpointEvaluator::find_best() const {
  std::optional<CheckpointEvaluation> best;
  for (const auto& line : results_) {
    const auto value = line.test.values.front();
    if (best && !metrics::is_better(options_.metrics.front(), value, best->test.values.front())) continue;
    if (checkpoint::identity(checkpoint::folder_of(options_.run, {line.step})) == line.id) best = line;
  }
  return best;
}

void CheckpointEvaluator::run() {
  watch();
  interrupted_ = environment_.stop.requests() > 0;
  if (unreadable_ > 0)
    environment_.events.message(fmt::format("{}: {}", environment_.program.name, problem()));
}

void CheckpointEvaluator::watch() {
  // A checkpoint is complete once its manifest is in its folder.
  FolderWatch watch([this] {
    std::vector<fs::path> folders = {options_.run, options_.run / "checkpoints"};
    std::error_code error;
    for (fs::directory_iterator it(folders[1], error), end; !error && it != end; it.increment(error))
      if (it->is_directory(error)) folders.push_back(it->path());
    return folders;
  });
  while (environment_.stop.requests() == 0) {
    // Read first: every checkpoint written before the end of the run is then found below.
    const bool finished = checkpoint::is_finished(options_.run);
    const bool any = evaluate_new();
    if (options_.once && !any && evaluated_.empty()) fail_without_checkpoint();
    if (options_.once || (finished && !any)) return;
    if (!any) watch.wait(environment_.stop.fd(), from_seconds(options_.poll_interval));
  }
}

void CheckpointEvaluator::fail_without_checkpoint() const {
  const auto run = options_.run.string();
  const auto existing = checkpoint::list(options_.run).size();
  if (existing == 0) throw UserError(fmt::format("{} has no checkpoint yet", run));
  throw UserError(
      fmt::format("--eval-freq {0}: none of the checkpoints of {1} ({2}) is at a multiple of {0} updates",
                  options_.every, run, existing));
}

// True if there was a new checkpoint.
bool CheckpointEvaluator::evaluate_new() {
  bool any = false;
  for (const auto& entry : checkpoint::list(options_.run)) {
    if (environment_.stop.requests() > 0) break;
    if (options_.every > 0 && entry.version.value % options_.every != 0) continue;
    const auto id = checkpoint::identity(entry.folder);
    if (!evaluated_.insert(id.empty() ? entry.folder.string() : id).second) continue;
    any = true;
    try {
      evaluate(entry, id);
    } catch (const UserError& error) {
      // Not counted if the run has removed it meanwhile.
      std::error_code ignored;
      if (!fs::exists(entry.folder / checkpoint::kManifestFile, ignored)) continue;
      ++unreadable_;
      environment_.events.message(fmt::format("{}: {}", environment_.program.name, error.what()));
    }
  }
  return any;
}

void CheckpointEvaluator::evaluate(const checkpoint::Entry& entry, const std::string& id) {
  const auto manifest = checkpoint::read_manifest(entry.folder);
  if (const auto difference = options_.layout.difference(FlatLayout(manifest.parameters));
      !difference.empty())
    throw Failure(kWrongUsage, fmt::format("{} does not match network {}: {}", entry.folder.string(),
                                           options_.network, difference));
  const checkpoint::NamedArray array[] = {{"weights", weights_}};
  checkpoint::load(entry.folder, manifest, {0, options_.layout.size()}, array);
  std::vector<float> buffers;
  if (manifest.buffers == options_.buffer_layout.tensors())
    buffers = checkpoint::load_buffers(entry.folder, manifest);
  const auto start = environment_.now();
  const StopWatch watch(environment_, 0, 1);
  const auto test = evaluate_(weights_, buffers);
  const double epoch = manifest.samples > 0 ? static_cast<double>(manifest.trained_samples) /
                                                  static_cast<double>(manifest.samples)
                                            : 0;
  note({entry.version.value, epoch, test, seconds(environment_.now() - start),
        entry.folder.filename().string(), id});
}

void CheckpointEvaluator::note(const CheckpointEvaluation& line) {
  record_ << json_line(line.json()) << std::endl;
  if (!record_)
    throw Failure(kFailed,
                  fmt::format("cannot write {}: is the disk full?", (options_.run / kRecord).string()));
  results_.push_back(line);
  best_ = find_best();
  if (best_) checkpoint::link_best(options_.run, {best_->step});
  environment_.events.message(fmt::format("step {}  epoch {:.2f}  {}{}", line.step, line.epoch,
                                          line.test.text("  ", line.test.values.size()),
                                          best_ && best_->id == line.id ? "  best" : ""));
}

}  // namespace capstan::job
