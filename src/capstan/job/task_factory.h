#pragma once

#include <memory>
#include <string>

#include "capstan/base/flat_layout.h"
#include "capstan/config/job_config.h"
#include "capstan/data/dataset.h"
#include "capstan/models/model.h"
#include "capstan/training/network.h"

namespace capstan::job {

// The data and the network of a configuration. Not thread-safe.
struct Task {
  data::Dataset dataset;
  std::unique_ptr<models::Model> model;  // with its initial weights
  FlatLayout layout;                     // of the parameters
  FlatLayout buffer_layout;
};

training::NetworkOptions network_options(const config::JobConfig& config);

// Throws UserError for unreadable data, and for a network that is unknown or does not match the data.
Task make_task(const config::JobConfig& config);
// The same without the training set.
Task make_test_task(const config::JobConfig& config);

// Throws UserError if this libtorch does not support the device.
void check_device(const std::string& device);

}  // namespace capstan::job
