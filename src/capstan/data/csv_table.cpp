#include "capstan/data/csv_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include <csv.h>
#include <fmt/format.h>

#include "capstan/base/check.h"
#include "capstan/base/random_access_file.h"
#include "capstan/base/text.h"
#include "capstan/data/csv_number.h"
#include "capstan/user_error.h"

namespace capstan::data {
namespace {

constexpr std::size_t kPiece = 1 << 20;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

struct Hash : std::hash<std::string_view> {
  using is_transparent = void;
};
using TextIndex = std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>>;

using LateTexts = std::map<std::size_t, CsvCell>;  // by column

// One pass over a file. libcsv is C code, so its callbacks keep the first error instead of throwing. A column
// whose first cells are numbers may turn out to be text: then its earlier texts are lost, and late_texts()
// has it for another pass. Not thread-safe.
class Pass {
 public:
  using Kind = CsvExpected::Kind;

  Pass(const std::filesystem::path& path, char separator, const CsvHeader& expected, const LateTexts& texts)
      : file_(path), expected_of_(expected), known_texts_(texts) {
    table_.file = file_.name();
    CAPSTAN_CHECK(csv_init(&parser_, CSV_STRICT | CSV_STRICT_FINI) == 0, "libcsv initializes");
    csv_set_delim(&parser_, static_cast<unsigned char>(separator));
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
  ~Pass() { csv_free(&parser_); }

  CsvTable run() {
    std::vector<char> piece(kPiece);
    for (std::uint64_t at = 0; at < file_.size();) {
      const auto size = std::min<std::uint64_t>(kPiece, file_.size() - at);
      file_.read(at, std::as_writable_bytes(std::span(piece).first(size)));
      std::string_view text(piece.data(), size);
      if (at == 0 && text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
      parse(text);
      at += size;
    }
    if (csv_fini(&parser_, on_cell, on_row, this) != 0) error_ = at_line("a quoted cell does not end");
    finish();
    return std::move(table_);
  }

  const LateTexts& late_texts() const { return late_texts_; }

 private:
  // Line by line, so that the number of the line is known.
  void parse(std::string_view text) {
    while (!text.empty()) {
      const auto size = line_size(text);
      if (csv_parse(&parser_, text.data(), size, on_cell, on_row, this) != size && error_.empty())
        error_ = at_line("a quote is inside of a cell: quote the whole cell, and double the quotes in it");
      if (!error_.empty()) throw UserError(error_);
      const bool is_rest = ended_by_return_ && text.starts_with('\n');  // of a CR LF in two pieces
      const char last = text[size - 1];
      if ((last == '\n' && !is_rest) || last == '\r') ++line_;
      ended_by_return_ = last == '\r';
      text.remove_prefix(size);
    }
  }

  // The bytes up to the end of the line, which is LF, CR LF or CR.
  static std::size_t line_size(std::string_view text) {
    const auto end = std::ranges::find_if(text, [](char c) { return c == '\n' || c == '\r'; });
    if (end == text.end()) return text.size();
    const auto size = static_cast<std::size_t>(end - text.begin()) + 1;
    return text.substr(size - 1).starts_with("\r\n") ? size + 1 : size;
  }

  void finish() {
    if (!error_.empty()) throw UserError(error_);
    if (table_.columns.empty())
      throw UserError(fmt::format("{}: is empty; it needs a header line", file_.name()));
    if (table_.cells.empty()) throw UserError(fmt::format("{}: has a header and no rows", file_.name()));
    for (std::size_t c = 0; c < table_.columns.size(); ++c)
      if (!table_.columns[c].is_text && !late_texts_.contains(c) && !not_finite_[c].empty())
        throw UserError(not_finite_[c]);
  }

  static void on_cell(void* cell, std::size_t size, void* self) {
    static_cast<Pass*>(self)->cell({static_cast<const char*>(cell), size});
  }
  static void on_row(int, void* self) { static_cast<Pass*>(self)->row(); }

  void cell(std::string_view text) {
    if (!error_.empty()) return;
    if (table_.columns.empty())
      header_.emplace_back(text);
    else if (column_ < table_.columns.size())
      take(text);
    ++column_;
  }

  void row() {
    const auto cells = column_;
    column_ = 0;
    if (!error_.empty()) return;
    if (table_.columns.empty()) {
      take_header();
    } else if (cells != table_.columns.size()) {
      error_ =
          at_line(fmt::format("{}, but the header has {}", counted(cells, "cell"), table_.columns.size()));
    } else {
      ++rows_;
    }
  }

  void take_header() {
    const auto is_number = [](const std::string& name) { return parse_number(name).has_value(); };
    if (std::ranges::all_of(header_, is_number)) {
      error_ = at_line("the first line has numbers only; it must be a header with the columns' names");
      return;
    }
    for (std::size_t c = 0; c < header_.size(); ++c) {
      const auto& name = header_[c];
      if (name.empty())
        error_ = at_line(
            fmt::format("column {} has no name (pandas writes its index so: use index=False)", c + 1));
      else if (!is_utf8(name))
        error_ = at_line(fmt::format("the name of column {} is not UTF-8", c + 1));
      else if (std::find(header_.begin(), header_.begin() + static_cast<std::ptrdiff_t>(c), name) !=
               header_.begin() + static_cast<std::ptrdiff_t>(c))
        error_ = at_line(fmt::format("two columns are named {}", in_quotes(name)));
      if (!error_.empty()) return;
    }
    try {
      expected_ = expected_of_(header_);
    } catch (const UserError& error) {
      error_ = error.what();
      return;
    }
    for (std::size_t c = 0; c < header_.size(); ++c) {
      auto& column = table_.columns.emplace_back(CsvColumn{header_[c], expected_[c].kind == Kind::kText});
      if (const auto late = known_texts_.find(c); late != known_texts_.end()) {
        column.is_text = true;
        column.late_text = late->second;
      }
    }
    indices_.resize(header_.size());
    not_finite_.resize(header_.size());
  }

  void take(std::string_view text) {
    if (text.empty()) {
      error_ = at_cell("is empty");
      return;
    }
    auto& column = table_.columns[column_];
    if (!column.is_text) {
      const auto number = parse_number(text);
      if (number) {
        if (!std::isfinite(static_cast<float>(*number))) note_not_finite(text);
        table_.cells.push_back(*number);
        return;
      }
      if (expected_[column_].kind == Kind::kNumber) {
        error_ =
            at_cell(fmt::format("is {}, not a number as {}", in_quotes(text), expected_[column_].needed));
        return;
      }
      if (rows_ > 0) {
        late_texts_.try_emplace(column_, CsvCell{line_, std::string(text)});
        table_.cells.push_back(0);
        return;
      }
      column.is_text = true;
    }
    table_.cells.push_back(static_cast<double>(index_of(text)));
  }

  // An error only if the column turns out to have numbers.
  void note_not_finite(std::string_view text) {
    auto& first = not_finite_[column_];
    if (first.empty()) first = at_cell(fmt::format("is {}, not a finite 32-bit float", in_quotes(text)));
    if (expected_[column_].kind == Kind::kNumber) error_ = first;
  }

  std::size_t index_of(std::string_view text) {
    auto& index = indices_[column_];
    if (const auto found = index.find(text); found != index.end()) return found->second;
    auto& column = table_.columns[column_];
    const auto most = expected_[column_].most_texts;
    if (!is_utf8(text)) {
      error_ = at_cell("is not UTF-8");
    } else if (index.size() == most) {
      const auto odd = column.odd_cell();
      error_ = at_cell(fmt::format("has more than {} different texts{}", most,
                                   odd ? fmt::format("; its first cell that is no number is {} in line {}",
                                                     in_quotes(odd->text), odd->line)
                                       : ""));
    } else {
      column.texts.emplace_back(text);
      column.lines.push_back(line_);
      index.emplace(text, index.size());
    }
    return index.size() - 1;
  }

  std::string at_line(const std::string& what) const {
    return fmt::format("{}: line {}: {}", file_.name(), line_, what);
  }
  std::string at_cell(const std::string& what) const {
    return at_line(fmt::format("column {} {}", in_quotes(table_.columns[column_].name), what));
  }

  const RandomAccessFile file_;
  const CsvHeader& expected_of_;
  const LateTexts& known_texts_;
  csv_parser parser_{};
  std::uint64_t line_ = 1;
  bool ended_by_return_ = false;  // the last line that was parsed
  std::size_t column_ = 0;
  std::size_t rows_ = 0;
  std::vector<std::string> header_;
  std::vector<CsvExpected> expected_;
  CsvTable table_;
  std::vector<TextIndex> indices_;       // of texts, by column
  std::vector<std::string> not_finite_;  // first such error of each column
  LateTexts late_texts_;
  std::string error_;  // the first one
};

}  // namespace

std::optional<CsvCell> CsvColumn::odd_cell() const {
  const auto is_number = [](const std::string& text) {
    const auto number = parse_number(text);
    return number && std::isfinite(*number);
  };
  if (std::ranges::none_of(texts, is_number)) return {};
  if (late_text) return late_text;
  const auto odd = std::ranges::find_if(texts, [](const auto& text) { return !parse_number(text); });
  if (odd == texts.end()) return {};
  return CsvCell{lines[static_cast<std::size_t>(odd - texts.begin())], *odd};
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMost = 60;
  auto size = std::min(text.size(), kMost);
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
  while (size > 0 && size < text.size() && continues(text[size])) --size;
  std::string out(text.substr(0, size));
  std::ranges::replace_if(
      out, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return fmt::format("'{}{}'", out, size < text.size() ? "…" : "");
}

CsvTable read_csv(const std::filesystem::path& path, char separator, const CsvHeader& expected) {
  LateTexts texts;
  for (;;) {
    Pass pass(path, separator, expected, texts);
    auto table = pass.run();
    if (pass.late_texts().empty()) return table;
    texts.insert(pass.late_texts().begin(), pass.late_texts().end());
  }
}

}  // namespace capstan::data
