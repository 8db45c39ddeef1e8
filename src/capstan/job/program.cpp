#include "capstan/job/program.h"

#include "capstan/launch/child.h"

namespace capstan::job {

const Program& capstan_program() {
  static const Program program{
      .name = "capstan", .path = launch::program("capstan"), .trainer = launch::program("capstan-torch")};
  return program;
}

}  // namespace capstan::job
