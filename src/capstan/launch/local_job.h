#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capstan/cluster/token.h"
#include "capstan/launch/processes.h"

namespace capstan::launch {

// The servers and workers of one job as processes on this machine. They end with this object. Not
// thread-safe.
class LocalJob final : public Processes {
 public:
  struct Options {
    std::string program;  // path of the servers' program, which has the command serve
    std::uint32_t servers = 1;
    std::vector<std::string> serve;       // arguments of serve without --listen
    std::string listen = "127.0.0.1:0";   // of the leader; followers use free ports of the same host
    std::optional<cluster::Token> token;  // none: a random one
    std::filesystem::path log_folder;     // for the standard error of each process
    std::function<void()> on_wait = {};   // called every 100 ms while a server starts; may throw to give up
  };

  // Starts the servers and waits until each listens or has ended; there is no timeout, because a resuming
  // server first reads its checkpoint. Throws UserError if a server does not start.
  explicit LocalJob(const Options& options);

  const cluster::Token& token() const { return token_; }
  const std::vector<std::string>& addresses() const { return addresses_; }  // of the servers; the first leads
  std::string address_list() const;                                         // separated by commas

  // Starts one worker: the program and its arguments. The token is passed in the environment.
  void start_worker(const std::vector<std::string>& arguments, bool read_output = false);
  Child& worker(std::size_t rank) { return workers_[rank]; }
  std::size_t workers() const { return workers_.size(); }

  std::vector<Ended> reap() override;
  void kill_worker(std::size_t rank) override;
  void wait(TimePoint deadline) override;

  std::filesystem::path log_of_server(std::size_t index) const;
  std::filesystem::path log_of_worker(std::size_t rank) const;

 private:
  std::string start_server(std::size_t index);
  std::string await_address(std::size_t index);

  const Options options_;
  const cluster::Token token_;
  std::vector<std::string> addresses_;
  std::vector<Child> servers_, workers_;
  std::vector<bool> server_reaped_, worker_reaped_;
};

}  // namespace capstan::launch
