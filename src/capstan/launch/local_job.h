#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "capstan/cluster/token.h"
#include "capstan/launch/processes.h"

namespace capstan::launch {

// The servers and workers of one job as processes of this machine. Whatever happens to this object, they
// end with it. Not thread-safe.
class LocalJob final : public Processes {
 public:
  struct Options {
    std::uint32_t servers = 1;
    std::vector<std::string> serve;       // arguments of `capstan serve`, listen address left out
    std::string listen = "127.0.0.1:0";   // of the first server; the others take free ports of that host
    std::optional<cluster::Token> token;  // none: a fresh one
    std::filesystem::path log_folder;     // takes each process's standard error
    std::function<void()> look = {};      // called now and then while a server starts; throws to give up
  };

  // Starts the servers, and waits until each listens or has ended: one that resumes reads its checkpoint
  // first. Throws UserError where one does not start.
  explicit LocalJob(const Options& options);

  const cluster::Token& token() const { return token_; }
  const std::vector<std::string>& addresses() const { return addresses_; }  // of the servers; the first leads
  std::string address_list() const;                                         // with commas

  // Starts one worker: the program and its arguments; it finds the token in its environment.
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
