#pragma once

#include <string_view>

namespace capstan::report {

// The text of Chart.js, minified, as Debian packages it.
std::string_view chart_js();

}  // namespace capstan::report
