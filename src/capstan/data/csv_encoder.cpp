#include "capstan/data/csv_encoder.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "capstan/base/check.h"
#include "capstan/data/csv_number.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

[[noreturn]] void fail(const std::string& place, const std::string& what) {
  throw UserError(fmt::format("{}: {}", place, what));
}

std::size_t index_of(const CsvTable& table, const std::string& name) {
  const auto found = std::ranges::find(table.columns, name, &CsvColumn::name);
  CAPSTAN_CHECK(found != table.columns.end(), "the header was checked");
  return static_cast<std::size_t>(found - table.columns.begin());
}

// The different texts of a column in a part.
std::set<std::string> texts_of(const CsvTable& table, std::size_t column, const RowFilter& part) {
  std::vector<bool> used(table.columns[column].texts.size());
  for (std::size_t row = 0; row < table.rows(); ++row)
    if (part(row)) used[static_cast<std::size_t>(table.cell(row, column))] = true;
  std::set<std::string> out;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (used[i]) out.insert(table.columns[column].texts[i]);
  return out;
}

// nan and inf are texts.
std::optional<long double> class_number(std::string_view text) {
  if (text.find_first_of("0123456789") == std::string_view::npos) return {};
  return parse_identifier(text);
}

bool are_numbers(const auto& texts) {
  return std::ranges::all_of(texts, [](const std::string& t) { return class_number(t).has_value(); });
}

// Of a column of numbers.
void check_finite(const CsvColumn& column, const std::string& file) {
  for (std::size_t i = 0; i < column.texts.size(); ++i)
    if (!std::isfinite(*parse_number(column.texts[i])))
      fail(file, fmt::format("line {}: column {} is {}, not a finite 64-bit float", column.lines[i],
                             in_quotes(column.name), in_quotes(column.texts[i])));
}

// Sorted by value if all are numbers, of which 1 and 1.0 are the same class.
std::vector<std::string> sorted_classes(const std::set<std::string>& texts) {
  if (!are_numbers(texts)) return {texts.begin(), texts.end()};
  std::map<long double, std::string> by_value;
  for (const auto& text : texts) by_value.try_emplace(*class_number(text), text);
  std::vector<std::string> out;
  for (auto& [value, text] : by_value) out.push_back(std::move(text));
  return out;
}

constexpr std::int64_t kUnknown = -1;

// For each text of a column its place among `known`, or kUnknown.
std::vector<std::int64_t> places_of(const CsvColumn& column, const std::vector<std::string>& known) {
  std::map<std::string, std::int64_t, std::less<>> by_text;
  for (const auto& text : known) by_text.emplace(text, static_cast<std::int64_t>(by_text.size()));
  std::vector<std::int64_t> out;
  for (const auto& text : column.texts) {
    const auto found = by_text.find(text);
    out.push_back(found == by_text.end() ? kUnknown : found->second);
  }
  return out;
}

std::vector<std::int64_t> class_places(const CsvColumn& column, const std::vector<std::string>& classes) {
  if (!are_numbers(classes)) return places_of(column, classes);
  std::map<long double, std::int64_t> by_value;
  for (const auto& text : classes)
    by_value.emplace(*class_number(text), static_cast<std::int64_t>(by_value.size()));
  std::vector<std::int64_t> out;
  for (const auto& text : column.texts) {
    const auto value = class_number(text);
    const auto found = value ? by_value.find(*value) : by_value.end();
    out.push_back(found == by_value.end() ? kUnknown : found->second);
  }
  return out;
}

// `text` is an index.
[[noreturn]] void fail_unknown(const CsvTable& table, const CsvColumn& column, std::size_t text,
                               const OddCells& odd) {
  const auto found = odd.find(column.name);
  const auto why = found == odd.end()
                       ? ""
                       : fmt::format("; the column is text because of {} in line {} of the training file",
                                     in_quotes(found->second.text), found->second.line);
  fail(table.file,
       fmt::format("line {}: column {} is {}, which the training part does not have{}", column.lines[text],
                   in_quotes(column.name), in_quotes(column.texts[text]), why));
}

// Writes one column of inputs for each row.
class ColumnWriter {
 public:
  ColumnWriter(const CsvTable& table, const InputColumn& input, const OddCells& odd)
      : table_(table), column_(index_of(table, input.name)), categories_(input.categories.size()), odd_(odd) {
    if (categories_ > 0) places_ = places_of(table.columns[column_], input.categories);
  }

  template <class T>
  T* write(std::size_t row, T* out) const {
    const auto cell = table_.cell(row, column_);
    if (categories_ == 0) {
      *out = static_cast<T>(cell);
      return out + 1;
    }
    const auto text = static_cast<std::size_t>(cell);
    if (places_[text] == kUnknown) fail_unknown(table_, table_.columns[column_], text, odd_);
    std::fill_n(out, categories_, T{0});
    out[places_[text]] = 1;
    return out + categories_;
  }
  std::size_t width() const { return std::max<std::size_t>(1, categories_); }
  // Whether floats hold the column exactly.
  bool fits_floats() const {
    for (std::size_t row = 0; row < table_.rows(); ++row)
      if (const auto cell = table_.cell(row, column_); static_cast<double>(static_cast<float>(cell)) != cell)
        return false;
    return true;
  }

 private:
  const CsvTable& table_;
  std::size_t column_;
  std::size_t categories_;
  const OddCells& odd_;
  std::vector<std::int64_t> places_;
};

template <class T>
std::vector<T> inputs_of(const CsvTable& table, const RowFilter& rows,
                         const std::vector<ColumnWriter>& writers, std::size_t numbers) {
  std::vector<T> inputs(numbers);
  auto* out = inputs.data();
  for (std::size_t row = 0; row < table.rows(); ++row)
    if (rows(row))
      for (const auto& writer : writers) out = writer.write(row, out);
  return inputs;
}

void write_labels(const CsvTable& table, const RowFilter& rows, const Encoding& encoding, const OddCells& odd,
                  Split& split) {
  const auto column = index_of(table, encoding.targets[0]);
  const auto places = class_places(table.columns[column], encoding.class_names);
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (!rows(row)) continue;
    const auto text = static_cast<std::size_t>(table.cell(row, column));
    if (places[text] == kUnknown) fail_unknown(table, table.columns[column], text, odd);
    split.labels.push_back(places[text]);
  }
  split.shape.classes = encoding.classes;
}

void write_targets(const CsvTable& table, const RowFilter& rows, const Encoding& encoding, Split& split) {
  std::vector<std::size_t> columns;
  for (const auto& name : encoding.targets) columns.push_back(index_of(table, name));
  for (std::size_t row = 0; row < table.rows(); ++row)
    if (rows(row))
      for (const auto column : columns) split.targets.push_back(static_cast<float>(table.cell(row, column)));
  split.shape.target = {static_cast<std::int64_t>(columns.size())};
}

}  // namespace

Encoding fit_encoding(const CsvTable& table, const RowFilter& train,
                      const std::vector<std::string>& targets) {
  Encoding out;
  out.targets = targets;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const auto& column = table.columns[c];
    const bool is_target = std::ranges::count(targets, column.name) > 0;
    const auto texts = column.is_text ? texts_of(table, c, train) : std::set<std::string>();
    if (!is_target) {
      out.columns.push_back({column.name, {texts.begin(), texts.end()}});
    } else if (column.is_text) {
      CAPSTAN_CHECK(targets.size() == 1, "several targets were read as numbers");
      if (are_numbers(column.texts)) check_finite(column, table.file);
      out.class_names = sorted_classes(texts);
      out.classes = static_cast<std::int64_t>(out.class_names.size());
    }
  }
  if (out.columns.empty()) fail(table.file, "has no column besides the target");
  return out;
}

OddCells odd_cells(const CsvTable& table) {
  OddCells out;
  for (const auto& column : table.columns)
    if (auto odd = column.odd_cell()) out.emplace(column.name, std::move(*odd));
  return out;
}

Split encode(const CsvTable& table, const RowFilter& rows, const Encoding& encoding, const OddCells& odd,
             bool normalised) {
  std::vector<ColumnWriter> writers;
  std::size_t width = 0, count = 0;
  for (const auto& input : encoding.columns) width += writers.emplace_back(table, input, odd).width();
  for (std::size_t row = 0; row < table.rows(); ++row) count += rows(row);
  Split split;
  split.shape.input = {static_cast<std::int64_t>(width)};
  if (normalised && !std::ranges::all_of(writers, &ColumnWriter::fits_floats))
    split.doubles = inputs_of<double>(table, rows, writers, count * width);
  else
    split.values = inputs_of<float>(table, rows, writers, count * width);
  if (encoding.classes > 0)
    write_labels(table, rows, encoding, odd, split);
  else
    write_targets(table, rows, encoding, split);
  return split;
}

std::vector<CsvExpected> expected_columns(const Encoding& encoding, const std::vector<std::string>& header,
                                          const std::string& place) {
  using Kind = CsvExpected::Kind;
  constexpr const char* kAsInTraining = "in training";
  std::map<std::string, CsvExpected> known;
  for (const auto& column : encoding.columns)
    known[column.name] = {column.categories.empty() ? Kind::kNumber : Kind::kText, kMostCategories,
                          kAsInTraining};
  for (const auto& name : encoding.targets)
    known[name] = {encoding.classes > 0 ? Kind::kText : Kind::kNumber, kMostClasses, kAsInTraining};
  std::vector<CsvExpected> out;
  for (const auto& name : header) {
    if (!known.contains(name)) fail(place, fmt::format("column '{}' is not one of the training part", name));
    out.push_back(known[name]);
  }
  for (const auto& [name, expected] : known)
    if (std::ranges::count(header, name) == 0)
      fail(place, fmt::format("column '{}' of the training part is missing", name));
  return out;
}

}  // namespace capstan::data
