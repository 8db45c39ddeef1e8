#include "capstan/lab/strategy_server.h"

#include <algorithm>
#include <atomic>
#include <fstream>
#include <future>
#include <thread>

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "capstan/base/failure.h"
#include "capstan/base/unique_fd.h"
#include "capstan/job/serve.h"
#include "capstan/lab/strategy_optimizer.h"
#include "capstan/user_error.h"

namespace capstan::lab {
namespace {

using server::UpdateRecord;

// Ends a server at once.
class Stop final : public job::StopToken {
 public:
  Stop() : fd_(::eventfd(0, EFD_CLOEXEC)) {}
  void request() {
    requests_ = 2;
    const std::uint64_t one = 1;
    (void)!::write(fd_.get(), &one, sizeof(one));
  }
  int requests() override { return requests_; }
  int fd() const override { return fd_.get(); }

 private:
  const UniqueFd fd_;
  std::atomic<int> requests_ = 0;
};

class NoEvents final : public job::Events {
  void message(const std::string&) override {}
  void progress(const job::Progress&) override {}
  void evaluated(const job::EvaluationRecord&) override {}
};

// Measures updates, and keeps their records if they are to be saved. Used by the server's thread.
class Measurements final : public server::UpdateObserver {
 public:
  Measurements(MetricsLogger& metrics, bool keeps) : metrics_(metrics), keeps_(keeps) {}

  void on_update(const UpdateRecord& record) override {
    const MetricKey key{record.version.value, record.group};
    metrics_.record("parameter_server_straggler_metric", key, "param_index_straggler", record.first(),
                    record.last());
    metrics_.record("parameter_server_batch_metric", key, "param_index_batch", record.first(),
                    record.answered);
    metrics_.record("method_metric", key, "average computation", record.applied - record.applying,
                    record.applied);
    metrics_.record_value("queue_metric", "queue_depth", "ops", static_cast<double>(record.queue_depth));
    metrics_.record_value("bytes_metric", "received", "bytes", static_cast<double>(record.bytes_in));
    if (record.bytes_out > 0)
      metrics_.record_value("bytes_metric", "sent", "bytes", static_cast<double>(record.bytes_out));
    if (keeps_) records_.push_back(record);
  }

  const std::vector<UpdateRecord>& records() const { return records_; }

 private:
  MetricsLogger& metrics_;
  const bool keeps_;
  std::vector<UpdateRecord> records_;
};

double ms(Duration duration) {
  return 1e3 * seconds(duration);
}

Json to_json(const UpdateRecord& record) {
  auto contributions = Json::array();
  for (const auto& c : record.contributions)
    contributions.push_back(Json{{"worker", c.worker.value},
                                 {"push", c.push.value},
                                 {"steps", c.steps.value},
                                 {"samples", c.samples},
                                 {"base", c.base.value}});
  return Json{{"group", record.group},
              {"version", record.version.value},
              {"contributions", std::move(contributions)},
              {"straggler_ms", ms(record.last() - record.first())},
              {"batch_ms", ms(record.answered - record.first())},
              {"applying_ms", ms(record.applying)},
              {"queue_depth", record.queue_depth},
              {"bytes_received", record.bytes_in},
              {"bytes_sent", record.bytes_out}};
}

server::ServerOptions server_options(const Plan& plan, const cluster::Token& token) {
  server::ServerOptions options;
  options.job.strategy = plan.trainer;
  options.job.workers = plan.trainers;
  options.job.servers = plan.servers;
  options.optimizer = strategy_optimizer(plan.optimizer, plan.lr);
  options.threads = plan.threads;
  options.members.token = token;
  options.join_timeout = from_seconds(plan.rpc_timeout);
  return options;
}

}  // namespace

class StrategyServer::Run {
 public:
  Run(const Plan& plan, std::uint32_t index, std::uint32_t number, const std::vector<std::string>& earlier,
      const cluster::Token& token, MetricsLogger& metrics)
      : strategy_(plan.trainer), measurements_(metrics, index == 0 && !plan.save.empty()) {
    if (index == 0 && !plan.save.empty())
      record_file_ = plan.save / fmt::format("run-{}", number) / "updates.json";
    auto options = server_options(plan, token);
    if (metrics.enabled() || !record_file_.empty()) options.observer = &measurements_;
    const job::ServerPlace place{plan.master_addr + ":0", client::TransportChoice::kLocal,
                                 earlier.empty() ? "" : earlier.front()};
    std::promise<std::string> listening;
    auto address = listening.get_future();
    thread_ = std::thread([this, options, place, listening = std::move(listening)]() mutable {
      serve(options, place, listening);
    });
    try {
      address_ = address.get();
    } catch (...) {
      thread_.join();
      throw;
    }
  }
  ~Run() {
    if (!thread_.joinable()) return;
    stop_.request();
    thread_.join();
  }

  const std::string& address() const { return address_; }

  void finish() {
    if (thread_.joinable()) thread_.join();
    if (failure_) std::rethrow_exception(failure_);
    const auto& trainers = result_.status.workers;
    for (std::size_t rank = 0; rank < trainers.size(); ++rank)
      if (trainers[rank].state == wire::WorkerState::kLost)
        throw Failure(kLost, fmt::format("trainer {} is lost", rank));
    if (!record_file_.empty()) save();
  }

 private:
  // On the server's thread. A failure is that of the constructor or that of finish().
  void serve(const server::ServerOptions& options, const job::ServerPlace& place,
             std::promise<std::string>& listening) {
    bool listens = false;
    try {
      result_ = job::run_server(options, place, {events_, stop_}, log_, [&](const std::string& address) {
        listens = true;
        listening.set_value(address);
      });
    } catch (...) {
      failure_ = std::current_exception();
      if (!listens) listening.set_exception(failure_);
    }
  }

  void save() const {
    auto records = measurements_.records();
    std::ranges::stable_sort(records, {}, &UpdateRecord::applied);
    auto updates = Json::array();
    for (const auto& record : records) updates.push_back(to_json(record));
    std::filesystem::create_directories(record_file_.parent_path());
    std::ofstream file(record_file_);
    file << Json{{"strategy", strategy_}, {"updates", updates}}.dump(1) << "\n";
    if (!file.flush()) throw UserError(fmt::format("cannot write {}", record_file_.string()));
  }

  const std::string strategy_;
  Measurements measurements_;
  std::filesystem::path record_file_;  // empty: none
  std::string address_;
  NoEvents events_;
  Stop stop_;
  const std::shared_ptr<spdlog::logger> log_ =
      std::make_shared<spdlog::logger>("server", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  // Of the server's thread, until it has ended:
  job::ServeResult result_;
  std::exception_ptr failure_;
  std::thread thread_;
};

StrategyServer::StrategyServer(const Plan& plan, std::uint32_t index, std::uint32_t run,
                               const std::vector<std::string>& earlier, const cluster::Token& token,
                               MetricsLogger& metrics)
    : run_(std::make_unique<Run>(plan, index, run, earlier, token, metrics)) {}

StrategyServer::~StrategyServer() = default;

const std::string& StrategyServer::address() const {
  return run_->address();
}

void StrategyServer::finish() {
  run_->finish();
}

}  // namespace capstan::lab
