#include "capstan/report/lab_csv.h"

#include <optional>

#include <fmt/format.h>

namespace capstan::report {
namespace {

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : "";
}

// A row of the run as a whole, then one for each metric.
void add_rows(std::string& out, const std::string& place, const LabRun& run) {
  const auto& step = run.step;
  const auto start = fmt::format("{},{},{},{},", place, run.seconds, run.steps, run.samples_per_second);
  out += fmt::format("{}run,,,,,,,,,,,,{},{},{},{},{},{},{},{},{},{}\n", start, run.samples, number(run.loss),
                     number(run.hidden_communication), run.bytes.pushed, run.bytes.pulled, step.data,
                     step.forward, step.backward, step.communication, step.optimizer);
  for (const auto& m : run.metrics) {
    const auto& s = m.statistics;
    out += fmt::format("{}{},{},{},{},{},{},{},{},{},{},{},{},,,,,,,,,,\n", start, quoted(m.rank),
                       quoted(m.name), quoted(m.unit), s.count, s.min, s.max, s.mean, number(s.variance),
                       number(s.stdev), s.p50, s.p95, s.p99);
  }
}

}  // namespace

std::string lab_csv(std::span<const LabFile> files) {
  std::string out =
      "result,experiment,configuration,run,seconds,steps,samples_per_second,rank,name,unit,count,min,max,"
      "mean,variance,stdev,p50,p95,p99,samples,loss,hidden_communication,bytes_pushed,bytes_pulled,data_ms,"
      "forward_ms,backward_ms,communication_ms,optimizer_ms\n";
  for (const auto& [path, result] : files)
    for (const auto& c : result.configurations)
      for (std::size_t run = 0; run < c.runs.size(); ++run)
        add_rows(out,
                 fmt::format("{},{},{},{}", quoted(path), quoted(result.experiment), quoted(c.name), run + 1),
                 c.runs[run]);
  return out;
}

}  // namespace capstan::report
