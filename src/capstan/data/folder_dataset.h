#pragma once

#include "capstan/data/dataset.h"

namespace capstan::data {

// The datasets of image folders: train/ and val/ (or test/), or one of them or class folders alone, of which
// every fifth image is for testing.
Dataset open_image_folder(const DatasetOptions& options);
Dataset open_imagenette(const DatasetOptions& options);

}  // namespace capstan::data
