// Two workers minimise the sum of their functions ½‖w − target‖² without knowing each other's target: each
// pushes its own gradient, and the servers update w. The minimum is the mean of the targets.

#include <cstdio>
#include <vector>

#include <capstan/user_error.h>
#include <capstan/worker.h>

namespace {

// ½‖w − target‖²; worker r's target is (r, r + 1, r + 2 …). Writes the gradient, returns the value.
float loss_and_gradient(std::uint32_t rank, std::span<const float> w, std::span<float> gradient) {
  float loss = 0;
  for (std::size_t i = 0; i < w.size(); ++i) {
    gradient[i] = w[i] - static_cast<float>(rank + i);
    loss += gradient[i] * gradient[i] / 2;
  }
  return loss;
}

int run(const capstan::JoinOptions& options) {
  const capstan::FlatLayout layout({{"w", {4}}});
  const std::vector<float> initial(layout.size());  // zeros
  auto worker = capstan::Worker::join(options, layout, initial);
  if (!worker) return std::fprintf(stderr, "push_pull: %s\n", worker.status().message().c_str()), 3;

  auto update = worker->pull();  // waits until every worker has joined
  while (update && !update->stop) {
    const auto loss = loss_and_gradient(worker->rank(), worker->weights("w"), worker->gradients("w"));
    update = worker->push_pull({.samples = 1, .loss = loss});
  }
  if (!update) return std::fprintf(stderr, "push_pull: %s\n", update.status().message().c_str()), 3;

  std::printf("worker %u of %u, version %llu: w =", worker->rank(), worker->workers(),
              static_cast<unsigned long long>(update->version));
  for (const float value : worker->weights("w")) std::printf(" %.4f", value);
  std::printf("\n");
  worker->leave();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: push_pull HOST:PORT TOKEN_FILE\n"), 2;
  try {
    return run({.servers = {argv[1]}, .token_file = argv[2]});
  } catch (const capstan::UserError& error) {
    return std::fprintf(stderr, "push_pull: %s\n", error.what()), 2;
  }
}
