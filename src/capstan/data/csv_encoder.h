#pragma once

#include <functional>
#include <map>
#include <string>

#include "capstan/data/csv_table.h"
#include "capstan/data/encoding.h"
#include "capstan/data/split.h"

namespace capstan::data {

inline constexpr std::size_t kMostCategories = 4096;  // of a column of inputs

// Whether a row belongs to a part.
using RowFilter = std::function<bool(std::size_t row)>;

// The encoding that the rows of the training part determine: categories and classes in sorted order, classes
// that are numbers by their value. A single target of texts is classes, several must be numbers. Throws
// UserError.
Encoding fit_encoding(const CsvTable& table, const RowFilter& train, const std::vector<std::string>& targets);

// Of the training file, by column: CsvColumn::odd_cell().
using OddCells = std::map<std::string, CsvCell>;
OddCells odd_cells(const CsvTable& table);

// The samples of a part, raw; as doubles if they will be normalised and floats do not hold them exactly. The
// columns may be in another order. Throws UserError with line and column for a text that the encoding does
// not know, and with the odd cell of that column.
Split encode(const CsvTable& table, const RowFilter& rows, const Encoding& encoding, const OddCells& odd,
             bool normalised);

// What a file with this encoding must have as columns; throws UserError if its header has others.
std::vector<CsvExpected> expected_columns(const Encoding& encoding, const std::vector<std::string>& header,
                                          const std::string& place);

}  // namespace capstan::data
