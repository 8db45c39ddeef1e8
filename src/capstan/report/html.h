#pragma once

#include <string>

#include "capstan/base/json.h"
#include "capstan/report/comparison.h"

// What our pages have in common: one file that needs no network, plots by Chart.js, light and dark.
namespace capstan::report {

std::string escaped(const std::string& text);
// The colour of the n-th strategy, in plots and tables.
const char* colour(std::size_t index);
// A panel with a title and a list of names and values.
std::string list_element(const std::string& title, const Settings& settings);

// Up to the title on the page.
std::string html_begin(const std::string& title);
// The data as `data`, Chart.js, and `script`, which pushes what it draws to `charts`.
std::string html_end(const Json& data, const char* script);

}  // namespace capstan::report
