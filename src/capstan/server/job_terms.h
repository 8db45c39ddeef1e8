#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capstan/base/data_segment.h"
#include "capstan/base/flat_layout.h"
#include "capstan/base/ids.h"
#include "capstan/wire/messages.h"

namespace capstan::server {

// What all servers and workers of a job agree on, beside the model. The leader decides it; followers and
// workers learn it when they join.
struct JobTerms {
  std::string strategy = "sync";  // strategy/strategy_spec.h
  std::uint32_t workers = 1;
  std::uint32_t servers = 1;
  ServerId index;                     // of this server
  bool in_place = false;              // workers read the weights where the servers keep them
  Version start;                      // with which the job began: 0, or a checkpoint's
  std::vector<DataSegment> segments;  // of the data, trained on before that
  std::string checkpoint;             // folder to begin from; empty for none
  wire::LocalOptimizer local;         // of workers that take local steps
  std::string job;                    // what workers train, in a text that only they read; empty: not known
};

// As a server tells a member that has joined, and as a follower reads it.
wire::Joined to_joined(const JobTerms& terms, const wire::Member& member, Range range);
JobTerms terms_of(const wire::Joined& joined);

}  // namespace capstan::server
