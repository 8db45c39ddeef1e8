#include "capstan/bench/result_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "capstan/base/text.h"

namespace capstan::bench {
namespace {

// The members of a result by name.
struct Members {
  const nlohmann::json& result;

  double number(const char* key) const { return result.at(key).get<double>(); }
  std::string text(const char* key) const { return result.at(key).get<std::string>(); }
  std::uint64_t count(const char* key) const { return result.at(key).get<std::uint64_t>(); }
};

}  // namespace

std::string wire_text(const nlohmann::json& result) {
  const Members r{result};
  auto text = fmt::format("{} ({:.1f} MB, {}), {}, {}, {}, {}, {}\n", r.text("model"),
                          r.number("bytes") / 1e6, counted(r.count("tensors"), "tensor"),
                          counted(r.count("workers"), "worker"), counted(r.count("servers"), "server"),
                          r.text("strategy"), r.text("optimizer"), r.text("transport"));
  text += fmt::format("  per iteration   {:.3f} ms   (p50 {:.0f} µs, p99 {:.0f} µs)\n",
                      r.number("seconds_per_iteration") * 1e3, r.number("p50_us"), r.number("p99_us"));
  text += fmt::format("  throughput      {:.2f} GB/s pushed and pulled\n", r.number("gigabytes_per_second"));
  text += fmt::format("  memory floor    {:.3f} ms at memcpy's {:.1f} GB/s: {:.2f} × the floor\n",
                      r.number("floor_seconds") * 1e3, r.number("memcpy_gigabytes_per_second"),
                      r.number("floor_ratio"));
  text += fmt::format("  servers         {:.1f} MB, {:.2f} s CPU; workers {:.2f} s CPU\n",
                      r.number("server_rss_bytes") / 1e6, r.number("server_cpu_seconds"),
                      r.number("worker_cpu_seconds"));
  return text + fmt::format("  weights         {}\n",
                            result.at("ok").get<bool>() ? "equal to the reference" : "WRONG");
}

std::string data_text(const nlohmann::json& result) {
  const Members r{result};
  return fmt::format("{}: {} samples in {:.2f} s by {}\n  {:.0f} samples/s, {:.0f} per core; {} unreadable\n",
                     r.text("dataset"), r.count("images"), r.number("seconds"),
                     counted(r.count("threads"), "thread"), r.number("images_per_second"),
                     r.number("images_per_second_per_core"), r.count("unreadable"));
}

}  // namespace capstan::bench
