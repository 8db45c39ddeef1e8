#pragma once

#include <functional>
#include <string>

#include "capstan/data/csv_table.h"
#include "capstan/data/encoding.h"
#include "capstan/data/split.h"

namespace capstan::data {

inline constexpr std::size_t kMostCategories = 4096;  // of a column of inputs

// Whether a row belongs to a part.
using RowFilter = std::function<bool(std::size_t row)>;

// The encoding that the rows of the training part determine: categories and classes in sorted order, classes
// that are numbers by their value. A target of texts is classes. `place` names the file in messages. Throws
// UserError.
Encoding fit_encoding(const CsvTable& table, const RowFilter& train, const std::vector<std::string>& targets,
                      const std::string& place);

// The samples of a part, raw; as doubles if they will be normalised and floats do not hold them exactly. The
// columns may be in another order. Throws UserError with line and column for a text that the encoding does
// not know.
Split encode(const CsvTable& table, const RowFilter& rows, const Encoding& encoding, bool normalised,
             const std::string& place);

// What a file with this encoding must have as columns; throws UserError if its header has others.
std::vector<CsvExpected> expected_columns(const Encoding& encoding, const std::vector<std::string>& header,
                                          const std::string& place);

}  // namespace capstan::data
