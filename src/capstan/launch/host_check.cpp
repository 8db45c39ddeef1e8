#include "capstan/launch/host_check.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "capstan/base/cores.h"
#include "capstan/launch/child.h"
#include "capstan/launch/compute_environment.h"
#include "capstan/transport/segment.h"
#include "capstan/transport/ucx/ucx.h"
#include "capstan/user_error.h"

namespace capstan::launch {
namespace {

constexpr double kLeastMemory = 1e9;    // bytes
constexpr double kLeastDevShm = 256e6;  // bytes
constexpr std::uint64_t kLeastOpenFiles = 1024;
constexpr auto kDescribeTimeout = std::chrono::seconds(20);

const char* word(Verdict verdict) {
  return verdict == Verdict::kGood ? "ok" : verdict == Verdict::kWarning ? "warning" : "missing";
}

Finding memory() {
  std::ifstream file("/proc/meminfo");
  return memory_finding(std::string(std::istreambuf_iterator<char>(file), {}));
}

Finding shared_memory() {
  const std::string remedy = "use --transport ucx, or Linux 5.1 or newer";
  try {
    auto segment = transport::Segment::create(1 << 20, transport::Segment::PeerMay::kRead);
    segment.floats()[0] = 1;
    if (auto again = segment.map_again(); !again || again->is_writable())
      return {"shared memory", Verdict::kMissing, "sealed segments cannot be shared", remedy};
  } catch (const UserError& error) {
    return {"shared memory", Verdict::kMissing, error.what(), remedy};
  }
  return {"shared memory", Verdict::kGood, "sealed segments work: --transport local", ""};
}

Finding dev_shm() {
  struct statvfs info {};
  if (::statvfs("/dev/shm", &info) != 0) return dev_shm_finding(std::nullopt);
  return dev_shm_finding(static_cast<double>(info.f_bavail) * static_cast<double>(info.f_frsize));
}

Finding ucx() {
  try {
    transport::EventLoop loop;
    auto context = transport::ucx::Context::open(loop);
    auto listener = context->listen("127.0.0.1:0", [](auto) {});
    return {"ucx", Verdict::kGood, fmt::format("listens on {}: --transport ucx", listener->address()), ""};
  } catch (const UserError& error) {
    return {"ucx", Verdict::kMissing, error.what(),
            "install libucx0, and check UCX_TLS and UCX_NET_DEVICES if they are set"};
  }
}

Finding open_files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur == RLIM_INFINITY) return open_files_finding(std::nullopt);
  return open_files_finding(limit.rlim_cur);
}

// Runs capstan-torch, so that this program need not link libtorch.
Finding libtorch() {
  prepare_compute_environment();
  const auto path = program("capstan-torch");
  if (::access(path.c_str(), X_OK) != 0) {
    return {"libtorch", Verdict::kMissing,
            "capstan-torch is not in this program's folder: train and work are unavailable",
            "build with -DCAPSTAN_TORCH=ON"};
  }
  Child child({{path, "describe"}, {}, "/dev/null", true});
  return libtorch_finding(child.read_line(SteadyClock::now() + kDescribeTimeout), path);
}

}  // namespace

Finding cores_finding(long usable, long online) {
  if (usable < online) {
    return {"cores", Verdict::kWarning, fmt::format("{} of {} cores may be used", usable, online),
            "start with a wider CPU set (taskset, cgroup)"};
  }
  return {"cores", Verdict::kGood, fmt::format("{} cores", usable), ""};
}

Finding memory_finding(std::string_view meminfo) {
  std::optional<double> total, available;
  std::istringstream lines{std::string(meminfo)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string key;
    double kibibytes = 0;
    if (!(words >> key >> kibibytes)) continue;
    if (key == "MemTotal:") total = kibibytes * 1024;
    if (key == "MemAvailable:") available = kibibytes * 1024;
  }
  if (!total || !available)
    return {"memory", Verdict::kWarning, "unknown: no figures in /proc/meminfo", "mount /proc"};
  const auto text = fmt::format("{:.1f} GB, {:.1f} GB available", *total / 1e9, *available / 1e9);
  if (*available < kLeastMemory)
    return {"memory", Verdict::kWarning, text, "close other programs, or train a smaller network"};
  return {"memory", Verdict::kGood, text, ""};
}

Finding dev_shm_finding(std::optional<double> free_bytes) {
  if (!free_bytes)
    return {"/dev/shm", Verdict::kWarning, "does not exist", "mount a tmpfs on /dev/shm: UCX uses it"};
  const auto text = fmt::format("{:.1f} GB free", *free_bytes / 1e9);
  if (*free_bytes < kLeastDevShm)
    return {"/dev/shm", Verdict::kWarning, text,
            "remount it larger: mount -o remount,size=2G /dev/shm (docker: --shm-size)"};
  return {"/dev/shm", Verdict::kGood, text, ""};
}

Finding open_files_finding(std::optional<std::uint64_t> limit) {
  const auto text = limit ? fmt::format("{}", *limit) : "unlimited";
  if (limit && *limit < kLeastOpenFiles)
    return {"open files", Verdict::kWarning, text, "raise it for many workers: ulimit -n 4096"};
  return {"open files", Verdict::kGood, text, ""};
}

Finding libtorch_finding(const std::optional<std::string>& line, const std::string& program) {
  if (!line)
    return {"libtorch", Verdict::kMissing, "capstan-torch does not start",
            "reinstall libtorch-dev; for the error, run " + program + " describe"};
  try {
    const auto facts = nlohmann::json::parse(*line);
    const auto text = fmt::format("libtorch {}, BLAS {}: {:.0f} GFLOP/s on one thread",
                                  facts.at("libtorch").get<std::string>(),
                                  facts.at("blas").get<std::string>(), facts.at("gflops").get<double>());
    if (facts.at("reference_blas").get<bool>()) {
      return {"libtorch", Verdict::kWarning, text,
              "this is the slow reference BLAS: apt-get install libopenblas0-openmp"};
    }
    if (!facts.at("obeys_threads").get<bool>()) {
      return {"libtorch", Verdict::kWarning, text,
              "this OpenBLAS ignores the thread count: apt-get install libopenblas0-openmp"};
    }
    return {"libtorch", Verdict::kGood, text, ""};
  } catch (const nlohmann::json::exception&) {
    return {"libtorch", Verdict::kMissing,
            fmt::format("{} describe prints \"{}\" instead of its JSON line", program, *line),
            "rebuild all programs: ./capstan build"};
  }
}

HostCheck check_host() {
  return {{cores_finding(usable_cores(), ::sysconf(_SC_NPROCESSORS_ONLN)), memory(), shared_memory(),
           dev_shm(), ucx(), open_files(), libtorch()}};
}

bool HostCheck::good() const {
  return std::ranges::none_of(findings, [](const Finding& f) { return f.verdict == Verdict::kMissing; });
}

std::string HostCheck::text() const {
  std::string text;
  for (const auto& f : findings) {
    text += fmt::format("{:<8} {:<14} {}\n", word(f.verdict), f.subject, f.what);
    if (!f.remedy.empty()) text += fmt::format("{:<8} {:<14} → {}\n", "", "", f.remedy);
  }
  return text;
}

Json HostCheck::json() const {
  auto list = Json::array();
  for (const auto& f : findings)
    list.push_back(
        {{"subject", f.subject}, {"verdict", word(f.verdict)}, {"what", f.what}, {"remedy", f.remedy}});
  return {{"ok", good()}, {"findings", list}};
}

}  // namespace capstan::launch
