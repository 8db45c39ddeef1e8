#include "capstan/job/dataset_options.h"

namespace capstan::job {

data::DatasetOptions dataset_options(const config::JobConfig& config) {
  data::DatasetOptions options;
  options.name = config.dataset;
  options.data_dir = config.data_dir.string();
  options.seed = config.seed;
  options.augment = data::parse_augment(config.augment);
  options.normalize = data::parse_normalize(config.normalize);
  options.strict = config.strict;
  options.image_size = config.image_size;
  return options;
}

}  // namespace capstan::job
