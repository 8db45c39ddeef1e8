#include "capstan/launch/local_job.h"

#include <fmt/format.h>
#include <signal.h>

#include "capstan/user_error.h"

namespace capstan::launch {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(100);
constexpr std::string_view kReady = "listening on ";

}  // namespace

LocalJob::LocalJob(const Options& options)
    : options_(options), token_(options.token ? *options.token : cluster::Token::generate()) {
  for (std::size_t i = 0; i < options_.servers; ++i) addresses_.push_back(start_server(i));
}

std::string LocalJob::start_server(std::size_t index) {
  std::vector<std::string> arguments = {options_.program, "serve"};
  arguments.insert(arguments.end(), options_.serve.begin(), options_.serve.end());
  if (index == 0) {
    arguments.push_back("--listen=" + options_.listen);
  } else {
    const auto host = options_.listen.substr(0, options_.listen.rfind(':'));
    arguments.insert(arguments.end(), {"--listen=" + host + ":0", "--leader=" + addresses_[0]});
  }
  servers_.emplace_back(Child::Options{
      arguments, {fmt::format("{}={}", cluster::kTokenVariable, token_.text())}, log_of_server(index), true});
  server_reaped_.push_back(false);
  return await_address(index);
}

std::string LocalJob::await_address(std::size_t index) {
  auto& server = servers_[index];
  std::optional<std::string> line;
  while (!line && !server.poll()) {
    line = server.read_line(SteadyClock::now() + kPollInterval);
    if (!line && options_.on_wait) options_.on_wait();
  }
  if (!line) line = server.read_line(SteadyClock::now() + kPollInterval);
  if (line && line->starts_with(kReady)) return line->substr(kReady.size());
  server.wait(SteadyClock::now() + std::chrono::milliseconds(200));
  const auto words = last_line(log_of_server(index));
  throw UserError(fmt::format("server {} did not start{}", index, words.empty() ? "" : ": " + words));
}

std::string LocalJob::address_list() const {
  return fmt::format("{}", fmt::join(addresses_, ","));
}

void LocalJob::start_worker(const std::vector<std::string>& arguments, bool read_output) {
  workers_.emplace_back(Child::Options{arguments,
                                       {fmt::format("{}={}", cluster::kTokenVariable, token_.text())},
                                       log_of_worker(workers_.size()),
                                       read_output});
  worker_reaped_.push_back(false);
}

std::vector<Processes::Ended> LocalJob::reap() {
  std::vector<Ended> ended;
  const auto collect = [&](bool is_server, std::vector<Child>& children, std::vector<bool>& reaped) {
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (reaped[i]) continue;
      const auto exit = children[i].poll();
      if (!exit) continue;
      reaped[i] = true;
      ended.push_back({is_server, i, *exit, last_line(is_server ? log_of_server(i) : log_of_worker(i))});
    }
  };
  collect(true, servers_, server_reaped_);
  collect(false, workers_, worker_reaped_);
  return ended;
}

std::filesystem::path LocalJob::log_of_server(std::size_t index) const {
  return options_.log_folder / fmt::format("server-{}.log", index);
}

std::filesystem::path LocalJob::log_of_worker(std::size_t rank) const {
  return options_.log_folder / fmt::format("worker-{}.log", rank);
}

void LocalJob::kill_worker(std::size_t rank) {
  if (rank < workers_.size()) workers_[rank].signal(SIGKILL);
}

void LocalJob::wait(TimePoint deadline) {
  for (auto* children : {&workers_, &servers_}) {
    for (auto& child : *children) {
      if (!child.wait(deadline)) child.signal(SIGKILL);
      child.wait(SteadyClock::now() + std::chrono::seconds(2));
    }
  }
}

}  // namespace capstan::launch
