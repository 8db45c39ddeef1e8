#pragma once

#include "capstan/cli/command.h"

namespace capstan::job {
struct WorkOptions;
}

namespace capstan::cli {

// One function per command; each is a file of the same name.

int run_serve(const Arguments& arguments);
int run_models(const Arguments& arguments);
int run_bench(const Arguments& arguments);
int run_compare(const Arguments& arguments);
int run_simulate(const Arguments& arguments);
int run_data(const Arguments& arguments);
int run_inspect(const Arguments& arguments);
int run_doctor(const Arguments& arguments);
int run_train(const Arguments& arguments);
int run_eval(const Arguments& arguments);
int run_work(const Arguments& arguments);
int run_describe(const Arguments& arguments);

// Runs one worker to its end, handles signals, and prints the result. Returns the exit code. The token comes
// from the configuration's token file or the environment.
int run_worker(job::WorkOptions options, bool json);

}  // namespace capstan::cli
