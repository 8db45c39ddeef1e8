#include "capstan/workloads/registry.h"

#include "capstan/workloads/char_language_model.h"

namespace capstan::workloads {
namespace {

std::unique_ptr<Task> make_char_language_model(const TaskOptions& options) {
  CharLanguageModel::Options model;
  model.init_seed = options.init_seed;
  const auto least = static_cast<std::size_t>(model.window) + 1;
  return std::make_unique<CharLanguageModel>(load_text(options.dataset.name, least), model);
}

constexpr Entry kTable[] = {
    {"char-lm", make_char_language_model},
};

}  // namespace

std::span<const Entry> table() {
  return kTable;
}

}  // namespace capstan::workloads
