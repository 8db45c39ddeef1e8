#include "capstan/lab/strategy_optimizer.h"

namespace capstan::lab {

optimizer::Spec strategy_optimizer(const std::string& text, double learning_rate) {
  return optimizer::parse_spec(text, [&](optimizer::Kind kind) {
    auto options = optimizer::defaults(kind);
    options.lr = learning_rate;
    return options;
  });
}

}  // namespace capstan::lab
