#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "capstan/cluster/token.h"
#include "capstan/launch/child.h"

namespace capstan::launch {

// The servers and workers of one job as processes of this machine. Whatever happens to this object, they
// end with it. Not thread-safe.
class LocalJob {
 public:
  struct Options {
    std::uint32_t servers = 1;
    std::vector<std::string> serve;       // arguments of `capstan serve`, listen address left out
    std::string listen = "127.0.0.1:0";   // of the first server; the others take free ports of that host
    std::optional<cluster::Token> token;  // none: a fresh one
    std::filesystem::path log_folder;     // takes each process's standard error
  };

  explicit LocalJob(const Options& options);

  const cluster::Token& token() const { return token_; }
  const std::vector<std::string>& addresses() const { return addresses_; }  // of the servers; the first leads
  std::string address_list() const;                                         // with commas

  // Starts one worker: the program and its arguments; it finds the token in its environment.
  void start_worker(const std::vector<std::string>& arguments, bool read_output = false);
  Child& worker(std::size_t rank) { return workers_[rank]; }
  std::size_t workers() const { return workers_.size(); }

  struct Ended {
    bool is_server = false;
    std::size_t index = 0;
    Exit exit;
    std::string last_words;  // the last line of its log
  };
  // Processes that have ended since the last call.
  std::vector<Ended> reap();

  std::filesystem::path log_of_server(std::size_t index) const;
  std::filesystem::path log_of_worker(std::size_t rank) const;

  // Waits for all to end by themselves; kills those that have not by the deadline.
  void wait(TimePoint deadline);

 private:
  std::string start_server(std::size_t index);

  const Options options_;
  const cluster::Token token_;
  std::vector<std::string> addresses_;
  std::vector<Child> servers_, workers_;
  std::vector<bool> server_reaped_, worker_reaped_;
};

}  // namespace capstan::launch
