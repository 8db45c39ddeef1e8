#include "capstan/cli/bench_ps.h"

#include <deque>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <unistd.h>

#include "capstan/base/json.h"
#include "capstan/cli/command_line.h"
#include "capstan/cli/signals.h"
#include "capstan/cli/status_line.h"
#include "capstan/lab/builtin.h"
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

constexpr auto kDescription =
    "Measures where the time of a training step goes: any data, any model, any trainer\n"
    "and any server, as processes on this machine. A warm-up, then measured runs.\n\n"
    "  {0}                                          2 trainers, 1 server\n"
    "  {0} --ddp-hook allreduce_hook                the same without a server\n"
    "  {0} --trainer ssp:3 --ntrainer 4             a strategy of capstan train\n"
    "  {0} --model lenet --data mnist               a network and a dataset\n"
    "  {0} --experiment list                        what is prepared\n"
    "  {0} --experiment scaling --html scaling.html\n";

// The flags of a command, and what was given.
struct Flags {
  lab::LabJob job;
  std::filesystem::path csv, html, plan;
  bool json = false;
  std::optional<std::uint32_t> as_trainer, as_server;
};

// Options are collected as they are given: resolve.h tells a default from a value.
bool parse(const Arguments& arguments, const LabProgram& program, Flags& flags) {
  static const job::Program no_task = [] {
    auto own = job::capstan_program();
    return own;
  }();
  CommandLine line("bench ps", fmt::format(kDescription, program.usage), no_task);
  line.group("Experiments");
  line.flag("experiment", &flags.job.experiment, "A prepared experiment, a .toml file, all, or list");
  line.flag("quick", &flags.job.quick, "Few steps and runs: does it work?");
  line.flag("repeat", &flags.job.repeat, "Measured runs (0: 5, with --quick 2)", config::WholeRange{0, 1000});
  line.group("Results");
  line.flag("json", &flags.json, "Print one JSON object");
  line.flag("csv", &flags.csv, "Write all metrics to this file");
  line.flag("html", &flags.html, "Write a page of plots to this file");
  line.flag("plan", &flags.plan, "").hidden = true;
  line.flag("as-trainer", &flags.as_trainer, "").hidden = true;
  line.flag("as-server", &flags.as_server, "").hidden = true;
  static lab::Choices defaults;
  static std::deque<std::string> texts;
  for (const auto& setting : lab::settings(defaults)) {
    const auto standard = setting.shows_default ? config::text_of(setting.value) : "";
    texts.push_back(standard.empty() || config::is_switch(setting)
                        ? std::string(setting.help)
                        : fmt::format("{} (default {})", setting.help, standard));
    const auto take = [&given = flags.job.given, name = std::string(setting.name)](const std::string& text) {
      given.push_back({name, text, ""});
    };
    line.group(setting.group);
    auto& added = line.flag(setting.name, config::Action{take, config::is_switch(setting)}, texts.back(),
                            setting.limits, setting.hint);
    added.also = setting.also;
    added.hidden = setting.hidden;
  }
  return line.parse(arguments);
}

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw UserError(fmt::format("--plan {}: no such file", file.string()));
  return {std::istreambuf_iterator<char>(in), {}};
}

// Before the runs: what they have measured must not be lost at the end.
void check_writable(const char* flag, const std::filesystem::path& file) {
  if (file.empty()) return;
  const bool existed = std::filesystem::exists(file);
  const bool writable = std::ofstream(file, std::ios::app).good();
  if (!writable) throw UserError(fmt::format("--{} {}: cannot be written", flag, file.string()));
  if (!existed) std::filesystem::remove(file);
}

void write(const char* flag, const std::filesystem::path& file, const std::string& text) {
  if (file.empty()) return;
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw UserError(fmt::format("--{} {}: cannot be written", flag, file.string()));
  say(fmt::format("wrote {}", file.string()));
}

int measure(Flags& flags, const lab::Registry& registry, const LabProgram& program) {
  check_writable("csv", flags.csv);
  check_writable("html", flags.html);
  flags.job.command = program.command;
  flags.job.program = program.name;
  Interrupts interrupts;
  report::LabFile file;
  int exit_code = kSuccess;
  {
    StatusLine status;
    const lab::LabEvents events{[&](const std::string& text) { status.say(text); },
                                [&](const std::string& text) { status.show(text); }};
    file.result = lab::run_lab(flags.job, registry, interrupts, events, exit_code);
  }
  file.path = file.result.experiment;
  if (flags.json) {
    fmt::print("{}\n", json_line(report::lab_json(file.result)));
  } else {
    fmt::print("{}", report::lab_summary(file.result));
    if (file.result.configurations.size() == 1) fmt::print("\n{}", report::lab_metrics(file.result));
  }
  const std::vector<report::LabFile> files = {std::move(file)};
  write("csv", flags.csv, report::lab_csv(files));
  write("html", flags.html, report::lab_page(files, {}));
  return exit_code;
}

}  // namespace

int run_bench_ps(const Arguments& arguments, const lab::Registry& registry, const LabProgram& program) {
  Flags flags;
  if (!parse(arguments, program, flags)) return kSuccess;
  if (flags.as_trainer || flags.as_server) {
    const auto plan = lab::Plan::parse(contents(flags.plan));
    if (flags.as_trainer)
      lab::run_trainer_process(plan, registry, *flags.as_trainer);
    else
      lab::run_server_process(plan, registry, *flags.as_server);
    return kSuccess;
  }
  if (flags.job.experiment == "list") {
    fmt::print("{}", lab::experiments_text());
    return kSuccess;
  }
  return measure(flags, registry, program);
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
  return run_command({"bench ps",
                      [&](const Arguments& arguments) {
                        return run_bench_ps(arguments, lab::with_builtin(own), {name, name, {path.string()}});
                      }},
                     Arguments(argv + 1, argv + argc), name);
}

}  // namespace capstan::cli
