// The program for commands that need libtorch; `capstan` executes it.

#include <iostream>

#include "capstan/cli/bench_ps.h"
#include "capstan/cli/commands.h"
#include "capstan/lab/builtin.h"
#include "capstan/launch/child.h"
#include "capstan/user_error.h"

namespace capstan::cli {
namespace {

// Of the benchmarks, the one that needs libtorch.
int run_torch_bench(const Arguments& arguments) {
  if (arguments.empty() || arguments[0] != "ps") throw UserError("capstan-torch has the benchmark ps only");
  return run_bench_ps(Arguments(arguments.begin() + 1, arguments.end()), lab::builtin(),
                      {"capstan", "capstan bench ps", {launch::own_path().string(), "bench", "ps"}});
}

}  // namespace
}  // namespace capstan::cli

int main(int argc, char** argv) {
  using namespace capstan::cli;
  std::cout.rdbuf(std::cerr.rdbuf());  // TorchScript modules may print; standard output is for results
  const auto& program = capstan::job::capstan_program();
  return run_one_of({of(program, "train", run_train),
                     of(program, "work", run_work),
                     of(program, "eval", run_eval),
                     {"bench", run_torch_bench},
                     {"describe", run_describe}},  // for doctor
                    argc, argv);
}
