#pragma once

#include <string>

#include "capstan/base/json.h"
#include "capstan/report/comparison.h"

// Common parts of the HTML pages: one file without network access, Chart.js plots, light and dark mode.
namespace capstan::report {

std::string escaped(const std::string& text);
// The colour of the n-th strategy, in plots and tables.
const char* colour(std::size_t index);
// A table; on a narrow screen each row becomes a list. `colours`, if any, mark the rows.
std::string table_element(const Table& table, const std::vector<std::string>& colours = {});
// A panel with a title and a list of names and values.
std::string list_element(const std::string& title, const Settings& settings);

// The begin of a page, up to its title.
std::string html_begin(const std::string& title);
// The end of a page: the data as `data`, Chart.js, and `script`, which adds its plots to `charts`.
std::string html_end(const Json& data, const char* script);

}  // namespace capstan::report
