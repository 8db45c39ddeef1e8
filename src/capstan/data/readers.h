#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "capstan/data/split.h"

namespace capstan::data {

// All throw UserError that names the file and what is wrong with it. With `test_only` the training split
// stays empty, and its files are not looked at.

// 1,797 real digits of 8x8, scaled to 28x28; every fifth is held out for the test.
Splits load_digits();

// The four IDX files of MNIST and its like, plain or with .gz, in `folder`: 28x28, ten classes.
Splits load_idx(const std::filesystem::path& folder, const Levels& levels, bool test_only = false);

// The binary versions: data_batch_1.bin … data_batch_5.bin and test_batch.bin; train.bin and test.bin, of
// whose two labels the fine one counts.
Splits load_cifar10(const std::filesystem::path& folder, const std::vector<Levels>& levels,
                    bool test_only = false);
Splits load_cifar100(const std::filesystem::path& folder, const std::vector<Levels>& levels,
                     bool test_only = false);

// `name` is synthetic:CxHxW:classes[:N]: N (2048) training images and a quarter as many for the test.
Splits make_synthetic(const std::string& name, std::uint64_t seed);

}  // namespace capstan::data
