#include "capstan/report/chart_js.h"

// Included as in data/digits_bytes.cpp: pages need no network and no other file.
asm(R"(
  .pushsection .rodata
capstan_chart_js_begin:
  .incbin "chart.min.js"
capstan_chart_js_end:
  .popsection
  .global capstan_chart_js_begin
  .global capstan_chart_js_end
)");

extern "C" {
[[gnu::visibility("hidden")]] extern const char capstan_chart_js_begin[];
[[gnu::visibility("hidden")]] extern const char capstan_chart_js_end[];
}

namespace capstan::report {

std::string_view chart_js() {
  return {capstan_chart_js_begin, capstan_chart_js_end};
}

}  // namespace capstan::report
