#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capstan::data {

struct CsvCell {
  std::uint64_t line = 0;
  std::string text;
};

// A column of a CSV file: numbers, or texts.
struct CsvColumn {
  std::string name;
  bool is_text = false;
  // Of a column of texts: the different ones in the order of their first appearance, and its line.
  std::vector<std::string> texts = {};
  std::vector<std::uint64_t> lines = {};
  std::optional<CsvCell> late_text = {};  // the first text after numbers

  // The cell that makes a column with numbers a column of texts: the first one that is no number.
  std::optional<CsvCell> odd_cell() const;
};

struct CsvTable {
  std::string file;  // for messages
  std::vector<CsvColumn> columns;
  std::vector<double> cells;  // by row; of a column of texts the index of the text

  std::size_t rows() const { return cells.size() / columns.size(); }
  double cell(std::size_t row, std::size_t column) const { return cells[row * columns.size() + column]; }
};

// What a column must be.
struct CsvExpected {
  enum class Kind {
    kAny,     // numbers if all its cells are numbers, otherwise texts
    kNumber,  // every other cell is an error
    kText,
  };
  Kind kind = Kind::kAny;
  std::size_t most_texts = 0;  // more different texts are an error
  const char* needed = "";     // of kNumber, for messages: "not a number as" in training, an image needs …
};

// Returns what each column of a header must be; throws UserError for a wrong header.
using CsvHeader = std::function<std::vector<CsvExpected>(const std::vector<std::string>& names)>;

// Reads a CSV file with a header. Throws UserError with the line and the column's name for an empty cell, a
// number that is not finite, a wrong number of cells, and bytes that are not CSV or UTF-8.
CsvTable read_csv(const std::filesystem::path& path, char separator, const CsvHeader& expected);

// A text of a file for a message: in quotes, on one line, and shortened if it is long.
std::string in_quotes(std::string_view text);

}  // namespace capstan::data
