#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capstan/base/data_segment.h"
#include "capstan/base/ids.h"
#include "capstan/layout.h"
#include "capstan/wire/messages.h"

namespace capstan::server {

// The settings that all servers and workers of a job share, beside the model. The leader sets them; followers
// and workers receive them when they join.
struct JobTerms {
  std::string strategy = "sync";  // strategy/strategy_spec.h
  std::uint32_t workers = 1;
  std::uint32_t servers = 1;
  ServerId index;                     // of this server
  bool in_place = false;              // workers read the weights in the servers' memory
  Version start;                      // version at the start of the job: 0, or the checkpoint's
  std::vector<DataSegment> segments;  // data trained on before the start
  std::string checkpoint;             // folder to resume from; empty for none
  wire::LocalOptimizer local;         // of workers that make local steps
  std::string job;                    // description of the job for workers; empty: unknown
};

// The same as a message: for a member that has joined, and as a follower reads it.
wire::Joined to_joined(const JobTerms& terms, const wire::Member& member, Range range);
JobTerms terms_of(const wire::Joined& joined);

}  // namespace capstan::server
