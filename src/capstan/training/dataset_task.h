#pragma once

#include "capstan/data/dataset.h"
#include "capstan/torch/task.h"

namespace capstan::training {

// A task on the samples of a dataset. Not thread-safe.
class DatasetTask : public Task {
 public:
  SplitInfo split(Split split) const final;
  Batch batch(Split split, const BatchRequest& request) final;
  std::unique_ptr<BatchStream> stream(Split split, BatchSequence sequence, unsigned threads) final;
  std::uint64_t evaluation_batch() const final;
  std::vector<std::string> warnings(Split split) const final;

 protected:
  // The training split may be absent: then only the test split can be used.
  explicit DatasetTask(data::Dataset dataset);

  const data::SampleShape& shape() const { return dataset_.test->shape(); }
  const data::SampleSource& source(Split split) const;

 private:
  const data::Dataset dataset_;
};

}  // namespace capstan::training
