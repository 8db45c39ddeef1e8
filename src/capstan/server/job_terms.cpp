#include "capstan/server/job_terms.h"

namespace capstan::server {

wire::Joined to_joined(const JobTerms& terms, const wire::Member& member, Range range) {
  wire::Joined joined;
  joined.member = member;
  joined.server = terms.index;
  joined.servers = terms.servers;
  joined.workers = terms.workers;
  joined.begin = range.begin;
  joined.end = range.end;
  joined.strategy = terms.strategy;
  joined.in_place = terms.in_place;
  joined.start = terms.start;
  for (const auto& segment : terms.segments) joined.segments.push_back({segment.batch, segment.steps});
  joined.checkpoint = terms.checkpoint;
  joined.local = terms.local;
  joined.job = terms.job;
  return joined;
}

JobTerms terms_of(const wire::Joined& joined) {
  JobTerms terms;
  terms.strategy = joined.strategy;
  terms.workers = joined.workers;
  terms.servers = joined.servers;
  terms.index = {joined.member.index};
  terms.in_place = joined.in_place;
  terms.start = joined.start;
  for (const auto& segment : joined.segments) terms.segments.push_back({segment.batch, segment.steps});
  terms.checkpoint = joined.checkpoint;
  terms.local = joined.local;
  terms.job = joined.job;
  return terms;
}

}  // namespace capstan::server
