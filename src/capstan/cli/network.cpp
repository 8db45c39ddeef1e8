#include "capstan/cli/network.h"

namespace capstan::cli {

training::NetworkOptions network_options(const config::JobConfig& config) {
  return {config.network, config.num_classes, config.init_seed.value_or(config.seed), config.weights};
}

}  // namespace capstan::cli
