// The same for files that use libtorch. ATen/ATen.h would cost each of them more than it saves.
#include "precompiled.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/max_pool2d.h>
