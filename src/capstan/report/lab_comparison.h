#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "capstan/report/bootstrap.h"
#include "capstan/report/lab.h"

// Lab results side by side: is a configuration of a later result faster than in the first one?
namespace capstan::report {

enum class LabVerdict { kFaster, kSlower, kWithinNoise, kTooFewRepeats };
const char* text_of(LabVerdict verdict);

// One configuration that two results have.
struct LabDifference {
  std::string configuration;
  std::string title;                 // its short name
  std::string path;                  // of the later result
  double first = 0, later = 0;       // mean samples per second
  double ratio = 0;                  // later ÷ first
  std::optional<Interval> interval;  // of the ratio, 95 %; none with fewer than two runs on a side
  LabVerdict verdict = LabVerdict::kTooFewRepeats;
};

struct LabComparison {
  std::vector<LabDifference> differences;
  std::vector<std::string> notes;  // one line each: what cannot be compared, and other options
};

// What differs between machines and versions: "cpu Xeon instead of EPYC". Empty if they are the same.
std::vector<std::string> environment_differences(const LabResult& result, const LabResult& first);

// Compares each later result with the first. Throws UserError if machines or versions differ, unless `force`;
// then a note says so.
LabComparison compare(std::span<const LabFile> files, bool force);

Json json_of(const LabComparison& comparison);

}  // namespace capstan::report
