#pragma once

#include "capstan/cxx20.h"

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "capstan/lab/configuration.h"
#include "capstan/lab/data.h"
#include "capstan/lab/model.h"
#include "capstan/lab/server.h"
#include "capstan/lab/trainer.h"

namespace capstan::lab {

// The loss of a batch: a scalar.
using Criterion = std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target)>;

// Plug-ins by the name of their class. Functions that make one read their values from the configuration; a
// value that is not read is an error of the user. They throw UserError for wrong values.
struct Registry {
  template <class Plugin, class... Arguments>
  using Table = std::map<std::string, std::function<Plugin(const Configuration&, Arguments...)>>;

  Table<std::unique_ptr<Data>, std::uint64_t> data;  // with the seed
  Table<std::shared_ptr<Model>> models;              // libtorch's generator is seeded
  Table<std::unique_ptr<Trainer>, const TrainerContext&> trainers;
  Table<std::unique_ptr<Server>> servers;
  std::map<std::string, Criterion> criteria;
};

}  // namespace capstan::lab
