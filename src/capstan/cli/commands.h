#pragma once

#include "capstan/cli/command.h"
#include "capstan/job/program.h"

namespace capstan::job {
struct WorkOptions;
}

namespace capstan::cli {

// One function per command; each is a file of the same name.

// Programs with a task of their own have these, too.
int run_train(const Arguments& arguments, const job::Program& program);
int run_work(const Arguments& arguments, const job::Program& program);
int run_eval(const Arguments& arguments, const job::Program& program);
int run_serve(const Arguments& arguments, const job::Program& program);

int run_models(const Arguments& arguments);
int run_bench(const Arguments& arguments);
int run_compare(const Arguments& arguments);
int run_simulate(const Arguments& arguments);
int run_data(const Arguments& arguments);
int run_inspect(const Arguments& arguments);
int run_report(const Arguments& arguments);
int run_doctor(const Arguments& arguments);
int run_describe(const Arguments& arguments);

// Runs one worker to its end, handles signals, and prints the result. Returns the exit code. The token comes
// from the configuration's token file or the environment.
int run_worker(job::WorkOptions options, bool json, const job::Program& program);

// A command of a program.
inline Command of(const job::Program& program, const char* name,
                  int (*run)(const Arguments&, const job::Program&)) {
  return {name, [&program, run](const Arguments& arguments) { return run(arguments, program); }};
}

}  // namespace capstan::cli
