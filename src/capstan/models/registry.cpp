#include "capstan/models/registry.h"

#include <ATen/Context.h>

#include "capstan/base/check.h"
#include "capstan/layouts/networks.h"
#include "capstan/models/families.h"

namespace capstan::models {

std::unique_ptr<Model> make(const std::string& name, const ModelOptions& options) {
  using enum layouts::Family;
  const auto& network = layouts::find_network(name);
  layouts::check_input(network, {options.channels, options.height, options.width});
  at::manual_seed(options.init_seed);
  const std::string known(network.name);
  switch (network.family) {
    case kAlexNet:
      return make_alexnet(known, options);
    case kDenseNet:
      return make_densenet(known, options);
    case kGoogLeNet:
      return make_googlenet(known, options);
    case kInception:
      return make_inception(known, options);
    case kLeNet:
      return make_lenet(known, options);
    case kMlp:
      return make_mlp(known, options);
    case kMobileNet:
      return make_mobilenet(known, options);
    case kResNet:
      return make_resnet(known, options);
    case kVgg:
      return make_vgg(known, options);
  }
  CAPSTAN_CHECK(false, "every family has a case");
  return nullptr;
}

}  // namespace capstan::models
