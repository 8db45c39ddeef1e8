#pragma once

#include "capstan/data/dataset.h"
#include "capstan/data/split.h"

namespace capstan::data {

// What is particular to a dataset in memory.
struct InMemory {
  Augment augment = Augment::kNone;  // for --augment auto
  Statistics constants = {};         // for --normalize auto; empty: those of the training part
};

// Whether a reader needs to read the training part: for training, or to normalise by it.
bool needs_train(const DatasetOptions& options, const Statistics& constants);

// Normalises and augments the raw samples of both parts; `encoding` describes them except their statistics.
// Throws UserError for options that do not fit.
Dataset in_memory(const DatasetOptions& options, Splits splits, const InMemory& kind, Encoding encoding);

}  // namespace capstan::data
