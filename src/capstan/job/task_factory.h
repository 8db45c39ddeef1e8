#pragma once

#include <memory>
#include <string>

#include "capstan/base/flat_layout.h"
#include "capstan/config/job_config.h"
#include "capstan/data/dataset.h"
#include "capstan/models/model.h"
#include "capstan/training/network.h"

namespace capstan::job {

// What a configuration trains: its data, its network and the network's arrays. Not thread-safe.
struct Task {
  data::Dataset dataset;
  std::unique_ptr<models::Model> model;  // with the weights that training begins with
  FlatLayout layout;                     // of its parameters
  FlatLayout buffer_layout;
};

training::NetworkOptions network_options(const config::JobConfig& config);

// Throws UserError for data that cannot be read, and for a network that is unknown or does not fit them.
Task make_task(const config::JobConfig& config);
// The same without the training set.
Task make_test_task(const config::JobConfig& config);

// Throws UserError where this libtorch cannot compute there.
void check_device(const std::string& device);

}  // namespace capstan::job
