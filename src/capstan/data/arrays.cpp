#include "capstan/data/arrays.h"

#include <algorithm>
#include <span>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capstan/base/text.h"
#include "capstan/data/array_file.h"
#include "capstan/data/array_numbers.h"
#include "capstan/data/dataset_spec.h"
#include "capstan/data/held_out.h"
#include "capstan/data/image_order.h"
#include "capstan/data/in_memory.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

namespace fs = std::filesystem;

constexpr SpecOption kOptions[] = {{"test"}, {"input"}, {"target"}, {"numbers", false}, {"shape"}};
constexpr std::string_view kInputs[] = {"x", "inputs", "images", "data"};
constexpr std::string_view kTargets[] = {"y", "targets", "labels", "target"};

[[noreturn]] void fail(const std::string& place, const std::string& what) {
  throw UserError(fmt::format("{}: {}", place, what));
}

// The index of the array with the given name, or with one of the usual names if none is given.
std::size_t find_array(const ArrayFile& file, const std::string& path, std::string_view option,
                       const std::string& given, std::span<const std::string_view> usual) {
  const auto& names = file.names();
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (given.empty() ? std::ranges::count(usual, names[i]) > 0 : names[i] == given) found.push_back(i);
  if (found.size() == 1) return found[0];
  const auto wanted = given.empty() ? fmt::format("{}", fmt::join(usual, ", ")) : given;
  fail(path, fmt::format("{} named {} for the {}; it has {}: give :{}=NAME",
                         found.empty() ? "no array is" : "several arrays are", wanted, option,
                         names.empty() ? "no arrays" : fmt::format("{}", fmt::join(names, ", ")), option));
}

// The arrays of one part.
struct Part {
  std::string place;  // for messages about both
  Array input;
  Array target;
};

// `file` is one file, or INPUT.npy with the target in another .npy file.
Part read_part(const DatasetSpec& spec, const fs::path& file, const fs::path& target_file) {
  const auto input = open_array_file(file);
  if (is_npy(file)) return {file.string(), input->read(0), open_array_file(target_file)->read(0)};
  const auto x = find_array(*input, file.string(), "input", spec.value("input"), kInputs);
  const auto y = find_array(*input, file.string(), "target", spec.value("target"), kTargets);
  return {file.string(), input->read(x), input->read(y)};
}

Part read_train(const DatasetSpec& spec) {
  if (!is_npy(spec.file())) return read_part(spec, spec.file(), {});
  if (!spec.value("target").ends_with(".npy"))
    spec.fail("a .npy file has one array: give the other as :target=FILE.npy");
  return read_part(spec, spec.file(), spec.locate(spec.value("target")));
}

Part read_test(const DatasetSpec& spec) {
  const auto test = spec.value("test");
  const auto comma = test.find(',');
  const auto input = spec.locate(test.substr(0, comma));
  if (is_npy(input) && comma == std::string::npos)
    spec.fail("a .npy file has one array: give both as :test=INPUT.npy,TARGET.npy");
  return read_part(spec, input,
                   comma == std::string::npos ? fs::path() : spec.locate(test.substr(comma + 1)));
}

std::string shape_text(std::span<const std::int64_t> dims) {
  return dims.empty() ? "()" : fmt::format("{}", fmt::join(dims, "x"));
}

std::int64_t samples_of(const Array& array) {
  if (array.dims.empty()) fail(array.place, "is a single number; its first dimension must be the samples");
  if (array.bytes.empty())
    fail(array.place, fmt::format("is empty (its shape is {})", shape_text(array.dims)));
  return array.dims[0];
}

std::vector<std::int64_t> sample_dims(const Array& array) {
  if (array.dims.size() == 1) return {1};
  return {array.dims.begin() + 1, array.dims.end()};
}

void read_labels(const Array& target, Split& split) {
  split.labels.resize(static_cast<std::size_t>(target.dims[0]));
  to_integers(target.type, target.bytes, split.labels);
  const auto bad = std::ranges::find_if(split.labels, [](auto c) { return c < 0 || c >= kMostClasses; });
  if (bad != split.labels.end()) {
    fail(target.place,
         fmt::format("the class at [{}] is {}; classes are 0 to {} (:numbers makes the target numbers)",
                     bad - split.labels.begin(), *bad, kMostClasses - 1));
  }
  split.shape.classes = *std::ranges::max_element(split.labels) + 1;
}

// The raw numbers of an input: only numbers that are normalised need more precision than floats have.
void read_numbers(const Array& input, bool normalised, Split& split) {
  if (normalised && !fits_floats(input.type)) {
    split.doubles = doubles_of(input);
  } else {
    split.values = floats_of(input);
    if (input.type == DType::kU8)
      for (auto& v : split.values) v = static_cast<float>(static_cast<double>(v) / 255.0);
  }
  if (!split.shape.is_image()) return;
  to_channels_last(split.shape.input, split.values);
  to_channels_last(split.shape.input, split.doubles);
}

void read_input(const Array& input, const std::vector<std::int64_t>& shape, bool normalised, Split& split) {
  split.shape.input = sample_dims(input);
  if (!shape.empty()) {
    const auto elements = split.shape.elements();
    split.shape.input = shape;
    if (split.shape.elements() != elements) {
      fail(input.place, fmt::format("a sample has {}, but shape={} has {}", counted(elements, "number"),
                                    shape_text(shape), split.shape.elements()));
    }
  }
  if (input.type == DType::kU8 && split.shape.is_image()) {
    const auto* const levels = reinterpret_cast<const std::uint8_t*>(input.bytes.data());
    split.pixels.assign(levels, levels + input.bytes.size());
    to_channels_last(split.shape.input, split.pixels);
    return;
  }
  read_numbers(input, normalised, split);
}

Split split_of(Part part, const DatasetSpec& spec, bool normalised) {
  const auto inputs = samples_of(part.input), targets = samples_of(part.target);
  if (inputs != targets)
    fail(part.place, fmt::format("{} but {}", counted(static_cast<std::uint64_t>(inputs), "input"),
                                 counted(static_cast<std::uint64_t>(targets), "target")));
  Split split;
  if (is_integer(part.target.type) && part.target.dims.size() == 1 && !spec.has("numbers")) {
    read_labels(part.target, split);
  } else {
    split.shape.target = sample_dims(part.target);
    split.targets = floats_of(part.target);
  }
  read_input(part.input, spec.shape(), normalised, split);
  return split;
}

std::string target_text(const SampleShape& shape) {
  return shape.has_classes() ? "classes" : fmt::format("{} numbers", shape_text(shape.target));
}

void check_alike(const std::string& place, const SampleShape& test, const SampleShape& train) {
  if (test.input != train.input)
    fail(place, fmt::format("its samples are {}, those for training {}", shape_text(test.input),
                            shape_text(train.input)));
  if (test.has_classes() != train.has_classes() || test.target != train.target)
    fail(place, fmt::format("its target is {}, that for training {}", target_text(test), target_text(train)));
}

Splits load_splits(const DatasetSpec& spec, bool with_train, bool normalised) {
  if (!spec.has("test")) return hold_out(split_of(read_train(spec), spec, normalised), spec.file().string());
  Splits out;
  auto test = read_test(spec);
  const auto place = test.place;
  out.test = split_of(std::move(test), spec, normalised);
  if (!with_train) return out;
  out.train = split_of(read_train(spec), spec, normalised);
  check_alike(place, out.test.shape, out.train.shape);
  return out;
}

}  // namespace

Dataset open_arrays(const DatasetOptions& options) {
  const DatasetSpec spec(options.name, kOptions, kArraysForm, options.data_dir);
  // Without the run's encoding, only the training part tells the number of classes.
  const bool with_train = !options.encoding || needs_train(options, {});
  auto splits = load_splits(spec, with_train, options.normalize != Normalize::kNone);
  const auto known = options.encoding ? options.encoding->classes : 0;
  if (splits.test.shape.has_classes()) {
    const auto classes = std::max({splits.train.shape.classes, splits.test.shape.classes, known});
    splits.train.shape.classes = splits.test.shape.classes = classes;
  }
  return in_memory(options, std::move(splits), {}, {});
}

}  // namespace capstan::data
