#pragma once

#include <array>
#include <cstdio>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "support/temporary_folder.h"

// Shows pages in a real browser without a window.
namespace capstan::testing {

inline std::string output_of(const std::string& command) {
  std::string out;
  auto* pipe = ::popen(command.c_str(), "r");
  if (!pipe) return out;
  std::array<char, 4096> buffer;
  while (const auto count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    out.append(buffer.data(), count);
  ::pclose(pipe);
  return out;
}

inline bool has_browser() {
  return !output_of("command -v chromium 2>/dev/null").empty();
}

// What a browser makes of a page in a frame of this width: {"problems": [errors of scripts and blocked
// loads], "overflow": pixels that do not fit the width, "scrolling": pixels that do not fit a panel,
// "charts": [{"id", "width", "sets", "painted": pixels, "tooltip": that of the first value}]}. The frame is
// necessary because a window cannot be as narrow as a telephone. No value if the browser fails.
inline std::optional<nlohmann::json> shown_in_browser(std::string html, int width) {
  constexpr const char* kFirst = R"(<script>
const problems = [];
addEventListener('error', e => problems.push(e.message));
document.addEventListener('securitypolicyviolation', e => problems.push('blocked: ' + e.blockedURI));
</script>
)";
  constexpr const char* kLast = R"(<script>
addEventListener('load', () => setTimeout(() => {
  const painted = canvas => {
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    let count = 0;
    for (let i = 3; i < pixels.length; i += 4) count += pixels[i] > 0;
    return count;
  };
  const tooltip = chart => {
    chart.tooltip.setActiveElements([{datasetIndex: 0, index: 0}], {x: 0, y: 0});
    chart.update();
    return [...chart.tooltip.title, ...chart.tooltip.body.flatMap(b => b.lines)].join(';');
  };
  parent.postMessage(JSON.stringify({
    problems, overflow: document.documentElement.scrollWidth - innerWidth,
    scrolling: Math.max(...[...document.querySelectorAll('.wide')].map(e => e.scrollWidth - e.clientWidth)),
    charts: charts.map(c => ({id: c.canvas.id, width: c.width, sets: c.data.datasets.length, painted: painted(c.canvas),
                              tooltip: tooltip(c)})),
  }), '*');
}, 0));
</script>
)";
  constexpr const char* kFrame = R"(<!doctype html><body><pre></pre><script>
addEventListener('message', e => document.querySelector('pre').textContent = e.data);
</script><iframe src="page.html" style="border:0;width:{}px;height:2000px"></iframe></body>)";
  const TemporaryFolder folder;
  html.insert(html.find("<head>\n") + 7, kFirst);
  html.insert(html.rfind("</body>"), kLast);
  write_file(folder / "page.html", html);
  auto frame = std::string(kFrame);
  frame.replace(frame.find("{}"), 2, std::to_string(width));
  write_file(folder / "frame.html", frame);
  const auto dom = output_of(fmt::format(
      "timeout 60 chromium --headless --no-sandbox --user-data-dir={0}/profile --virtual-time-budget=5000 "
      "--window-size=1400,2100 --dump-dom file://{0}/frame.html 2>/dev/null",
      folder.path().string()));
  const auto begin = dom.find("<pre>"), end = dom.find("</pre>");
  if (begin == std::string::npos || end == std::string::npos) return {};
  auto found = nlohmann::json::parse(dom.substr(begin + 5, end - begin - 5), nullptr, false);
  if (!found.is_object()) return {};
  return found;
}

}  // namespace capstan::testing
