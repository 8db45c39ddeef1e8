#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "capstan/data/split.h"
#include "capstan/data/statistics.h"

namespace capstan::data {

// All throw UserError with the file's name and its error. With `test_only` the training split stays empty and
// its files are not read.

// 1,797 handwritten digits of 8x8, scaled to 28x28; held out by the rule of held_out.h.
Splits load_digits();

// The four IDX files of MNIST and similar datasets, plain or .gz, in `folder`: 28x28, ten classes.
Splits load_idx(const std::filesystem::path& folder, bool test_only = false);

// The binary versions. CIFAR-10: data_batch_1.bin … data_batch_5.bin and test_batch.bin. CIFAR-100: train.bin
// and test.bin, with the fine labels.
Splits load_cifar10(const std::filesystem::path& folder, bool test_only = false);
Splits load_cifar100(const std::filesystem::path& folder, bool test_only = false);

// `name` is synthetic:CxHxW:classes[:N]: N (default 2048) training images and a quarter as many test images.
Splits make_synthetic(const std::string& name, std::uint64_t seed);
// Of one channel of its images.
Statistics synthetic_statistics();

}  // namespace capstan::data
