#include "capstan/cli/bench_ps.h"

#include <array>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "capstan/base/text.h"
#include "capstan/cli/command_line.h"
#include "capstan/cli/output_file.h"
#include "capstan/cli/signals.h"
#include "capstan/cli/status_line.h"
#include "capstan/lab/builtin.h"
#include "capstan/lab/experiment.h"
#include "capstan/lab/lab.h"
#include "capstan/lab/server_process.h"
#include "capstan/lab/trainer_process.h"
#include "capstan/launch/child.h"
#include "capstan/launch/compute_environment.h"
#include "capstan/report/lab_csv.h"
#include "capstan/report/lab_page.h"
#include "capstan/report/lab_text.h"
#include "capstan/user_error.h"

namespace capstan::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDescription =
    "Measures ways to train: any data, any model, any trainer, any server, each in a\n"
    "process of its own. Shows throughput, where the time of a step goes, and metrics\n"
    "of every process. The method and the names are those of PyTorch's RPC benchmark\n"
    "of parameter servers: a warm-up run, then measured runs from the same weights.\n\n"
    "  {0}                                  2 trainers, 1 server\n"
    "  {0} --ddp-hook allreduce_hook        without a server\n"
    "  {0} --trainer ssp:3 --ntrainer 4     a strategy\n"
    "  {0} --model resnet18 --data cifar10  a network, a dataset\n"
    "  {0} --experiment list                what is prepared\n"
    "  {0} --experiment scaling --html scaling.html\n"
    "  {0} --experiment all --quick         four steps of each\n\n"
    "Options on the command line override those of an experiment. capstan report\n"
    "shows and compares results that --save or --json has written\n"
    "(docs/benchmarking.md).\n";

struct Flags {
  lab::Choices choices;
  std::string experiment;
  bool quick = false, json = false;
  std::optional<std::uint32_t> repeat;
  fs::path csv, html, plan;
  std::optional<std::uint32_t> as_trainer, as_server;
};

void add_flags(CommandLine& line, Flags& flags) {
  line.flag("experiment", &flags.experiment, "An experiment's name, the path of a .toml file, all, or list",
            {}, "NAME");
  line.flag("quick", &flags.quick, "One epoch of at most four steps, and two runs, unless given otherwise");
  line.flag("repeat", &flags.repeat,
            "Measured runs, after a warm-up (default: 5; fewer understate the noise)",
            config::WholeRange{1, 1000});
  line.flag("json", &flags.json, "Print the result as one JSON object");
  line.flag("csv", &flags.csv, "Write a row for every configuration, run, rank and metric", {}, "FILE");
  line.flag("html", &flags.html, "Write a page with plots and all tables", {}, "FILE");
  line.add(lab::settings(flags.choices));
  line.flag("as-trainer", &flags.as_trainer, "").hidden = true;
  line.flag("as-server", &flags.as_server, "").hidden = true;
  line.flag("plan", &flags.plan, "").hidden = true;
}

int run_as_process(const Flags& flags, const lab::Registry& registry) {
  std::ifstream in(flags.plan);
  if (!in) throw UserError(fmt::format("--plan {}: cannot be read", flags.plan.string()));
  const auto plan = lab::Plan::parse({std::istreambuf_iterator<char>(in), {}});
  if (flags.as_trainer)
    lab::run_trainer_process(plan, registry, *flags.as_trainer);
  else
    lab::run_server_process(plan, registry, *flags.as_server);
  return kSuccess;
}

lab::LabRequest request_of(const Flags& flags, const CommandLine& line) {
  lab::LabRequest out{{}, flags.experiment, flags.quick, flags.repeat};
  lab::Choices choices;
  const auto options = lab::settings(choices);
  for (const auto& [name, text, place] : line.given())
    if (lab::find_setting(options, name)) out.given.push_back({name, text, place});
  return out;
}

std::string text_of(const report::LabResult& result) {
  return report::lab_summary(result) + "\n" + report::lab_metrics(result);
}

// The files of the result.
class Outputs {
 public:
  explicit Outputs(const Flags& flags)
      : saved_("save", flags.choices.plan.save.empty() ? fs::path() : flags.choices.plan.save / "lab.json"),
        csv_("csv", flags.csv, std::array<const OutputFile*, 1>{&saved_}),
        html_("html", flags.html, std::array<const OutputFile*, 2>{&saved_, &csv_}) {}

  // Writes all that can be written; returns a line for each of the others.
  std::vector<std::string> write(const report::LabResult& result, const std::string& program) {
    const std::vector<report::LabFile> files = {{program, result}};
    std::vector<std::string> failures;
    const auto write_one = [&](OutputFile& file, auto text) {
      try {
        if (file.is_wanted()) file.write(text());
      } catch (const UserError& failed) {
        failures.emplace_back(failed.what());
      }
    };
    write_one(saved_, [&] { return json_line(report::lab_json(result)) + "\n"; });
    write_one(csv_, [&] { return report::lab_csv(files); });
    write_one(html_, [&] { return report::lab_page(files, {}); });
    return failures;
  }

 private:
  OutputFile saved_, csv_, html_;
};

int measure(const Flags& flags, const CommandLine& line, const lab::Registry& registry,
            const LabProgram& program) {
  const auto plan = lab::plan_lab(request_of(flags, line), registry);
  Outputs outputs(flags);
  lab::LabStart start{{launch::own_path().string()}, program.name};
  start.command.insert(start.command.end(), program.command.begin(), program.command.end());

  Interrupts interrupts;
  StatusLine status;
  const auto say_line = [&](const std::string& text) { status.say(program.name + ": " + text); };
  for (const auto& skipped : plan.skipped) say_line(skipped);
  const auto [result, code] =
      lab::run_lab(plan, start, interrupts, {[&](const auto& text) { status.show(text); }, say_line});
  status.erase();
  if (code == kInterrupted && result.configurations.empty()) throw Failure(kInterrupted, "interrupted");

  // A closed pipe is reported at the end: the files should not be lost with it.
  const auto text = flags.json ? json_line(report::lab_json(result)) + "\n" : text_of(result);
  std::fputs(text.c_str(), stdout);
  const auto failures = outputs.write(result, program.name);
  for (const auto& failure : failures) say_line(failure);
  if (code == kInterrupted) say_line("interrupted; the result has what was measured before");
  return code == kSuccess && !failures.empty() ? kFailed : code;
}

}  // namespace

int run_lab(const Arguments& arguments, const lab::Registry& registry, const LabProgram& program) {
  Flags flags;
  const job::Program self{.name = program.name};
  const auto command = fmt::format("{}", fmt::join(program.command, " "));
  const auto whole = command.empty() ? program.name : program.name + " " + command;
  CommandLine line(command, fmt::format(fmt::runtime(kDescription), whole), self);
  add_flags(line, flags);
  if (!line.parse(arguments)) return kSuccess;
  if (flags.as_trainer || flags.as_server) return run_as_process(flags, registry);
  if (flags.experiment == "list") {
    fmt::print("{}", lab::experiments_text());
    return kSuccess;
  }
  return measure(flags, line, registry, program);
}

int run_bench_ps(const Arguments& arguments) {
  if (arguments.empty() || arguments[0] != "ps")
    throw UserError("capstan bench needs the name of a benchmark: ps, wire or data");
  return run_lab({arguments.begin() + 1, arguments.end()}, lab::builtin(), {"capstan", {"bench", "ps"}});
}

int run_lab_program(int argc, char** argv, const lab::Registry& own) {
  open_standard_files();
  const auto path = launch::own_path();
  const auto name = path.filename().string();
  // OpenBLAS and OpenMP have read the environment before main(): the program starts again with other
  // variables. If that fails, it computes more slowly.
  if (launch::prepare_compute_environment()) {
    keep_hangup_ignored();
    ::execv(path.c_str(), argv);
  }
  const auto run = [&](const Arguments& arguments) {
    return run_lab(arguments, lab::with_builtin(own), {name, {}});
  };
  return run_command({"lab", run}, Arguments(argv + 1, argv + argc), name);
}

}  // namespace capstan::cli
