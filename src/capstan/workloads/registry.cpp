#include "capstan/workloads/registry.h"

#include "capstan/user_error.h"
#include "capstan/workloads/char_language_model.h"
#include "capstan/workloads/gan.h"

namespace capstan::workloads {
namespace {

std::unique_ptr<Task> make_char_language_model(const TaskOptions& options) {
  CharLanguageModel::Options model;
  model.init_seed = options.init_seed;
  const auto least = static_cast<std::size_t>(model.window) + 1;
  return std::make_unique<CharLanguageModel>(load_text(options.dataset.name, least), model);
}

std::unique_ptr<Task> make_gan(const TaskOptions& options) {
  Gan::Options model;
  model.init_seed = options.init_seed;
  auto dataset = options.dataset;
  if (dataset.normalize == data::Normalize::kTrain)
    throw UserError("--normalize train: task gan takes levels from 0 to 1, as --normalize none gives them");
  dataset.normalize = data::Normalize::kNone;
  return std::make_unique<Gan>(data::load(dataset), model);
}

constexpr Entry kTable[] = {
    {"char-lm", make_char_language_model},
    {"gan", make_gan},
};

}  // namespace

std::span<const Entry> table() {
  return kTable;
}

}  // namespace capstan::workloads
