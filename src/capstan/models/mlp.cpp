#include "capstan/models/families.h"
#include "capstan/models/network.h"

namespace capstan::models {
namespace {

class Mlp final : public Network {
 public:
  Mlp(std::int64_t inputs, std::int64_t classes)
      : fc1_(linear("fc1", inputs, 128, {})), fc2_(linear("fc2", 128, classes, {})) {}

  at::Tensor forward(const at::Tensor& images) override { return fc2_(rectified(fc1_(images.flatten(1)))); }

 private:
  Linear fc1_, fc2_;
};

}  // namespace

std::unique_ptr<Model> make_mlp(const std::string&, const ModelOptions& options) {
  return std::make_unique<Mlp>(options.channels * options.height * options.width, options.classes);
}

}  // namespace capstan::models
