#include <fmt/format.h>

#include "capstan/base/json.h"
#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/cli/output_file.h"
#include "capstan/report/lab_csv.h"
#include "capstan/report/lab_page.h"
#include "capstan/report/lab_text.h"
#include "capstan/report/result_file.h"
#include "capstan/user_error.h"

namespace capstan::cli {
namespace {

using report::LabComparison;
using report::LabFile;

std::string json_of(const std::vector<LabFile>& files, const LabComparison& comparison) {
  Json out{{"ok", true}, {"results", Json::array()}};
  for (const auto& [path, result] : files) {
    Json entry{{"path", path}};
    entry["result"] = report::lab_json(result);
    out["results"].push_back(std::move(entry));
  }
  out["comparison"] = report::json_of(comparison);
  return json_line(out) + "\n";
}

// One result is shown with all its metrics; of several, what can be compared.
std::string text_of(const std::vector<LabFile>& files, const LabComparison& comparison) {
  if (files.size() == 1)
    return report::lab_summary(files[0].result) + "\n" + report::lab_metrics(files[0].result);
  std::string out;
  for (const auto& [path, result] : files) out += fmt::format("{}\n{}\n", path, report::lab_summary(result));
  return out + report::lab_differences(comparison, files[0].path);
}

}  // namespace

int run_report(const Arguments& arguments) {
  Arguments paths;
  std::filesystem::path csv, html;
  bool force = false, json = false;
  CommandLine line("report",
                   "Shows results of capstan bench ps, and compares several: is a configuration of a\n"
                   "later result faster than in the first one, or is the difference noise?\n\n"
                   "  capstan report lab.json                       tables of throughput, of where\n"
                   "                                                a step's time goes, and of\n"
                   "                                                every rank's metrics\n"
                   "  capstan report before after                   two folders with a lab.json:\n"
                   "                                                configurations of the same\n"
                   "                                                name, side by side\n"
                   "  capstan report before after --html page.html  the same with plots, in one\n"
                   "                                                file that works offline\n\n"
                   "The verdict is faster or slower if the 95 % interval of the ratio of mean\n"
                   "samples/s excludes 1. The interval is a bootstrap over the repeated runs (bench\n"
                   "ps --repeat N). Each side needs two runs; take five or more, because fewer\n"
                   "understate the noise (docs/benchmarking.md). Results of another machine or\n"
                   "version are refused, unless --force is given.\n");
  line.positionals("PATH", &paths,
                   "Result files, or folders with a lab.json; the first is what others are compared with");
  line.flag("csv", &csv, "Write a row for every configuration, run, rank and metric", {}, "FILE");
  line.flag("html", &html, "Write a page with plots and all tables", {}, "FILE");
  line.flag("force", &force, "Compare results of other machines or versions");
  line.flag("json", &json, "Print the results and their differences as one JSON object");
  if (!line.parse(arguments)) return kSuccess;

  std::vector<LabFile> files;
  for (const auto& path : paths) files.push_back(report::read_result(path));
  const auto comparison = report::compare(files, force);
  Arguments inputs = paths;
  for (const auto& path : paths) inputs.push_back(path + "/lab.json");
  OutputFile rows("csv", csv, {}, inputs);
  const OutputFile* const others[] = {&rows};
  OutputFile page("html", html, others, inputs);
  if (rows.is_wanted()) rows.write(report::lab_csv(files));
  if (page.is_wanted()) page.write(report::lab_page(files, comparison));
  fmt::print("{}", json ? json_of(files, comparison) : text_of(files, comparison));
  return kSuccess;
}

}  // namespace capstan::cli
