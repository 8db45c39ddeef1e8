#pragma once

#include <filesystem>
#include <fstream>

#include "capstan/lab/plan.h"

namespace capstan::testing {

// A plan with small data and models: configuration files in `folder` with the entries Data, Sparse and Dense.
inline lab::Plan small_plan(const std::filesystem::path& folder) {
  std::ofstream(folder / "data.json") << R"({"Data": {"data_class": "DummyData", "configurations":
    {"max_val": 20, "sample_count": 52, "sample_length": 6, "sparsity_percentage": 20}}})";
  std::ofstream models(folder / "models.json");
  const auto model = [](const char* name, const char* sparse) {
    return std::string("\"") + name +
           R"(": {"model_class": "DummyModel", "configurations": {"num_embeddings": 20, "embedding_dim": 20,
       "dense_input_size": 20, "dense_output_size": 20, "dense_layers_count": 3, "sparse": )" +
           sparse + "}}";
  };
  models << "{" << model("Sparse", "true") << ", " << model("Dense", "false") << "}";
  lab::Plan plan;
  plan.data = "Data";
  plan.model = "Sparse";
  plan.data_config = folder / "data.json";
  plan.model_config = folder / "models.json";
  plan.batch_size = 4;
  plan.epochs = 2;
  plan.lr = 0.5;
  return plan;
}

}  // namespace capstan::testing
