#include "capstan/data/csv.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "capstan/base/spelling.h"
#include "capstan/base/text.h"
#include "capstan/data/csv_encoder.h"
#include "capstan/data/dataset_spec.h"
#include "capstan/data/held_out.h"
#include "capstan/data/image_order.h"
#include "capstan/data/in_memory.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

namespace fs = std::filesystem;

constexpr SpecOption kOptions[] = {{"target"}, {"test"}, {"classes", false}, {"shape"}, {"separator"}};

bool any_row(std::size_t) {
  return true;
}
bool is_kept(std::size_t row) {
  return !is_held_out(row);
}

std::vector<std::string> target_columns(const DatasetSpec& spec) {
  std::vector<std::string> out;
  const auto text = spec.value("target");
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(',', at), text.size());
    out.push_back(text.substr(at, end - at));
    if (std::ranges::count(out, out.back()) > 1)
      spec.fail(fmt::format("column '{}' is given twice", out.back()));
    at = end + 1;
  }
  if (text.empty()) spec.fail("it needs the target's column");
  if (out.size() > 1 && spec.has("classes")) spec.fail("classes are one column, not several");
  return out;
}

char separator_of(const DatasetSpec& spec) {
  const auto text = spec.value("separator");
  if (text.empty()) return ',';
  if (text == "tab") return '\t';
  if (text.size() != 1 || text == "\"" || text == "\n" || text == "\r")
    spec.fail(fmt::format("separator={}: must be one character other than a quote, or tab", text));
  return text[0];
}

// All names, or the first ones of many.
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 20;
  if (names.size() <= kMost) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} … ({} in all)", fmt::join(std::span(names).first(kMost), ", "), names.size());
}

// What may be wrong if a header has one column.
std::string separator_hint(const std::vector<std::string>& header) {
  if (header.size() > 1) return "";
  for (const char separator : {';', '\t', '|'})
    if (header[0].find(separator) != std::string::npos)
      return fmt::format("; if its cells are separated by {0}, give :separator={0}",
                         separator == '\t' ? "tab" : std::string(1, separator));
  return "";
}

// The columns of a file whose training part is not known yet.
std::vector<CsvExpected> new_columns(const std::vector<std::string>& header, const DatasetSpec& spec,
                                     const std::vector<std::string>& targets) {
  using Kind = CsvExpected::Kind;
  const CsvExpected input{spec.has("shape") ? Kind::kNumber : Kind::kAny, kMostCategories, "an image needs"};
  const auto kind = targets.size() > 1 ? Kind::kNumber : spec.has("classes") ? Kind::kText : Kind::kAny;
  const CsvExpected target{kind, kMostClasses, "a target of several columns needs"};
  std::vector<CsvExpected> out(header.size(), input);
  for (const auto& name : targets) {
    const auto found = std::ranges::find(header, name);
    if (found == header.end()) {
      const auto near = nearest(name, std::vector<std::string_view>(header.begin(), header.end()));
      throw UserError(fmt::format("{}: there is no column '{}'{}; the columns are {}{}", spec.file().string(),
                                  name, near.empty() ? "" : fmt::format(" (did you mean {}?)", near),
                                  listed(header), separator_hint(header)));
    }
    out[static_cast<std::size_t>(found - header.begin())] = target;
  }
  return out;
}

// A target of numbers and texts may be classes, or numbers with a wrong cell.
void check_target(const OddCells& odd, const std::string& target, const std::string& file) {
  const auto found = odd.find(target);
  if (found == odd.end()) return;
  throw UserError(fmt::format(
      "{}: line {}: column {} is {}, and other cells of the target are numbers: correct it, or give :classes",
      file, found->second.line, in_quotes(target), in_quotes(found->second.text)));
}

// Reads the files of one dataset. Not thread-safe.
class Reader {
 public:
  Reader(const DatasetSpec& spec, bool normalised)
      : spec_(spec),
        targets_(target_columns(spec)),
        separator_(separator_of(spec)),
        normalised_(normalised) {}

  // Reads both parts, or only the test part with an encoding that is known.
  Splits read(Encoding& encoding, bool known, bool with_train) const {
    if (spec_.has("test")) return read_two(encoding, known, with_train);
    const auto table = known ? read_known(spec_.file(), encoding) : read_new();
    check_enough(table.rows(), table.file);
    const auto odd = odd_cells(table);
    if (!known) encoding = fit(table, is_kept, odd);
    return {with_train ? encode(table, is_kept, encoding, odd, normalised_) : Split(),
            encode(table, is_held_out, encoding, odd, normalised_)};
  }

  const std::vector<std::string>& targets() const { return targets_; }

 private:
  Splits read_two(Encoding& encoding, bool known, bool with_train) const {
    Splits out;
    OddCells odd;
    if (with_train) {
      const auto table = known ? read_known(spec_.file(), encoding) : read_new();
      odd = odd_cells(table);
      if (!known) encoding = fit(table, any_row, odd);
      out.train = encode(table, any_row, encoding, odd, normalised_);
    }
    const auto test = read_known(spec_.locate(spec_.value("test")), encoding);
    out.test = encode(test, any_row, encoding, odd, normalised_);
    return out;
  }

  Encoding fit(const CsvTable& table, const RowFilter& train, const OddCells& odd) const {
    if (!spec_.has("classes")) check_target(odd, targets_[0], table.file);
    return fit_encoding(table, train, targets_);
  }

  CsvTable read_new() const {
    return read_csv(spec_.file(), separator_,
                    [&](const auto& header) { return new_columns(header, spec_, targets_); });
  }
  CsvTable read_known(const fs::path& file, const Encoding& encoding) const {
    return read_csv(file, separator_,
                    [&](const auto& header) { return expected_columns(encoding, header, file.string()); });
  }

  const DatasetSpec& spec_;
  const std::vector<std::string> targets_;
  const char separator_;
  const bool normalised_;
};

// Columns are in the order channel, height, width.
void make_images(const DatasetSpec& spec, const Encoding& encoding, Split& split) {
  const auto shape = spec.shape();
  if (shape.empty() || split.shape.input.empty()) return;
  for (const auto& column : encoding.columns) {
    if (!column.categories.empty())
      spec.fail(fmt::format("shape={}: column '{}' is text, and the columns of an image are numbers",
                            spec.value("shape"), column.name));
  }
  const auto elements = split.shape.elements();
  split.shape.input = shape;
  if (split.shape.elements() != elements)
    spec.fail(fmt::format("shape={} needs {}, and there are {} besides the target", spec.value("shape"),
                          counted(split.shape.elements(), "column"), elements));
  to_channels_last(shape, split.values);
  to_channels_last(shape, split.doubles);
}

}  // namespace

Dataset open_csv(const DatasetOptions& options) {
  const DatasetSpec spec(options.name, kOptions, kCsvForm, options.data_dir);
  const Reader reader(spec, options.normalize != Normalize::kNone);
  const bool known = options.encoding && !options.encoding->columns.empty();
  auto encoding = known ? *options.encoding : Encoding();
  if (known && encoding.targets != reader.targets())
    spec.fail(fmt::format("the run was trained with target={}", fmt::join(encoding.targets, ",")));
  const bool with_train = !known || needs_train(options, {});
  auto splits = reader.read(encoding, known, with_train);
  for (auto* split : {&splits.train, &splits.test}) make_images(spec, encoding, *split);
  return in_memory(options, std::move(splits), {}, std::move(encoding));
}

}  // namespace capstan::data
