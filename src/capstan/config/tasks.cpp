#include "capstan/config/tasks.h"

#include <vector>

#include <fmt/format.h>

#include "capstan/base/spelling.h"
#include "capstan/user_error.h"

namespace capstan::config {
namespace {

constexpr TaskEntry kTasks[] = {
    {"char-lm", "gru", "language model of characters: GRU with carried hidden state, on text",
     "dataset = 'text'\n"
     "optimizer = 'adam'\n"
     "lr = 0.005\n"
     "batch-size = 8\n"
     "epochs = 4\n"},
    {"gan", "gan", "generative adversarial network on images: two phases per step, an optimizer for each",
     "optimizer = 'default=adam,discriminator.*=adam:lr=0.0005'\n"
     "lr = 0.002\n"
     "beta1 = 0.5\n"},
};

}  // namespace

std::span<const TaskEntry> tasks() {
  return kTasks;
}

const TaskEntry& find_task(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto& task : kTasks) {
    if (task.name == name) return task;
    names.push_back(task.name);
  }
  const auto near = nearest(name, names);
  throw UserError(fmt::format("--task {}: unknown{}; known: {}", name,
                              near.empty() ? "" : fmt::format(" (did you mean {}?)", near),
                              fmt::join(names, ", ")));
}

}  // namespace capstan::config
