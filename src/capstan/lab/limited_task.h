#pragma once

#include <memory>

#include "capstan/torch/task.h"

namespace capstan::lab {

// The same task with at most `samples` training samples: the first ones.
std::unique_ptr<Task> limited(std::unique_ptr<Task> task, std::uint64_t samples);

}  // namespace capstan::lab
