#include "capstan/lab/average_server.h"

#include <cstdlib>
#include <future>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "capstan/base/failure.h"

namespace capstan::lab {
namespace {

averaging::ServerOptions server_options(const Plan& plan, std::uint32_t index, const cluster::Token& token) {
  averaging::ServerOptions options;
  options.trainers = plan.trainers;
  options.servers = plan.servers;
  options.index = {index};
  options.threads = plan.threads;
  options.join_timeout = std::max<Duration>(from_seconds(plan.rpc_timeout), std::chrono::minutes(10));
  options.members.token = token;
  return options;
}

ExitCode exit_code(const Status& failure) {
  switch (failure.code()) {
    case StatusCode::kRefused:
      return kWrongUsage;
    case StatusCode::kUnavailable:
      return kFailed;
    default:
      return kLost;
  }
}

}  // namespace

AverageServer::AverageServer(const Plan& plan, std::uint32_t index, const cluster::Token& token,
                             std::unique_ptr<Server> rule, MetricsLogger& metrics)
    : metrics_(metrics) {
  rule->set_metrics(&metrics);
  std::promise<void> ready;
  thread_ = std::thread([&, rule = std::move(rule)]() mutable {
    try {
      transport::EventLoop loop;
      std::unique_ptr<transport::Listeners> listeners;  // outlives the server, which owns the connections
      averaging::AveragingServer server(loop, server_options(plan, index, token), std::move(rule), this,
                                        spdlog::default_logger());
      listeners = std::make_unique<transport::Listeners>(
          loop, transport::Listeners::Options{"127.0.0.1:0", true, false},
          [&](auto connection) { server.accept(std::move(connection)); });
      address_ = listeners->address();
      loop_ = &loop;
      server_ = &server;
      ready.set_value();
      while (!ending_ && server.failure().is_ok()) loop.run_once(TimePoint::max());
      if (!server.failure().is_ok()) {
        fmt::print(stderr, "{}\n", server.failure().message());
        std::_Exit(exit_code(server.failure()));
      }
    } catch (const std::exception& error) {
      if (!loop_) return ready.set_exception(std::current_exception());
      fmt::print(stderr, "{}\n", error.what());
      std::_Exit(kFailed);
    }
  });
  try {
    ready.get_future().get();
  } catch (...) {
    thread_.join();
    throw;
  }
}

AverageServer::~AverageServer() {
  loop_->post([this] { ending_ = true; });
  thread_.join();
}

void AverageServer::reset_state() {
  std::promise<void> done;
  loop_->post([&] {
    server_->reset_state();
    done.set_value();
  });
  done.get_future().wait();
}

void AverageServer::on_bucket(const averaging::BucketTimes& times) {
  const MetricKey key{times.batch, times.bucket};
  metrics_.record("parameter_server_straggler_metric", key, "param_index_straggler", times.first, times.last);
  metrics_.record("parameter_server_batch_metric", key, "param_index_batch", times.first, times.answered);
  metrics_.record("method_metric", key, "average computation", times.answered - times.averaging,
                  times.answered);
  metrics_.record_value("queue_metric", "queue_depth", "ops", static_cast<double>(times.queue_depth));
  metrics_.record_value("bytes_metric", "received", "bytes", static_cast<double>(times.bytes_in));
  metrics_.record_value("bytes_metric", "sent", "bytes", static_cast<double>(times.bytes_out));
}

}  // namespace capstan::lab
