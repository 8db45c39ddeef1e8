#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capstan/lab/metrics_logger.h"

// How the launcher controls trainers and servers: one JSON object per line, commands on a process's standard
// input, answers on its standard output. A process that fails writes one line to standard error and exits;
// at the end of its input it exits with 0.
//
//   1. process → {"started": true, "group": "127.0.0.1:4711"}    the group's address: trainer 0 only, if the
//                                                                plan needs a group
//   2. {"do": "prepare", "run": 0, "group": "…", "servers": ["…"]} → {"ready": true, "address": "…"}
//        first servers, one after the other, each with the addresses of those before it; then all trainers
//        with those of all servers. The address: servers only. Run 0 is the warm-up.
//   3. {"do": "run"} → {"step": 3, "of": 16} …, then {"done": {…}}    trainers only
//   4. {"do": "report"} → {"done": {…}}                               servers only, when all trainers are
//   done Then from 2 again, for the next run.
namespace capstan::lab {

struct Command {
  enum class Kind { kPrepare, kRun, kReport };
  Kind kind = Kind::kRun;
  std::uint32_t run = 0;
  std::string group;
  std::vector<std::string> servers;

  std::string line() const;
  static Command parse(const std::string& line);  // throws std::runtime_error
};

// What one process reports of one run. A server has only series.
struct ProcessReport {
  std::int64_t begin_ns = 0, end_ns = 0;  // of training, on the clock that all processes of a host share
  std::uint64_t steps = 0, samples = 0;
  double loss = 0;
  std::uint64_t bytes_pushed = 0, bytes_pulled = 0;
  std::optional<double> hidden;  // the part of communication behind backward, 0 … 1; none if there was none
  std::vector<Series> series;
};

// One line from a process. Exactly one of its members is set.
struct Answer {
  bool started = false, ready = false;
  std::string address;  // of a server that is ready, or of the group
  struct Progress {
    std::uint64_t step = 0, of = 0;
  };
  std::optional<Progress> progress;
  std::optional<ProcessReport> done;

  std::string line() const;
  static Answer parse(const std::string& line);  // throws std::runtime_error
};

}  // namespace capstan::lab
