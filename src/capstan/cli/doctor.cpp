#include <fstream>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "capstan/base/cores.h"
#include "capstan/base/user_error.h"
#include "capstan/cli/command_line.h"
#include "capstan/cli/commands.h"
#include "capstan/launch/child.h"
#include "capstan/launch/compute_environment.h"
#include "capstan/transport/segment.h"
#include "capstan/transport/ucx/ucx.h"

namespace capstan::cli {
namespace {

enum class Verdict { kGood, kWarning, kBad };

struct Finding {
  std::string subject;
  Verdict verdict = Verdict::kGood;
  std::string what;
  std::string remedy;  // for what is not good
};

Finding cores() {
  const long usable = usable_cores();
  const auto online = ::sysconf(_SC_NPROCESSORS_ONLN);
  if (usable < online) {
    return {"cores", Verdict::kWarning, fmt::format("{} of {} cores may be used", usable, online),
            "start with a wider CPU set (taskset, cgroup)"};
  }
  return {"cores", Verdict::kGood, fmt::format("{} cores", usable), ""};
}

Finding memory() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  double total = 0, available = 0, value = 0;
  while (file >> key >> value >> unit) {
    if (key == "MemTotal:") total = value * 1024;
    if (key == "MemAvailable:") available = value * 1024;
  }
  const auto text = fmt::format("{:.1f} GB, {:.1f} GB available", total / 1e9, available / 1e9);
  if (available < 1e9)
    return {"memory", Verdict::kWarning, text, "end other programs, or train a smaller network"};
  return {"memory", Verdict::kGood, text, ""};
}

Finding shared_memory() {
  try {
    auto segment = transport::Segment::create(1 << 20, transport::Segment::PeerMay::kRead);
    segment.floats()[0] = 1;
    if (auto again = segment.map_again(); !again || again->is_writable()) {
      return {"shared memory", Verdict::kBad, "sealed segments cannot be shared",
              "use --transport ucx, or a kernel of 5.1 or newer"};
    }
  } catch (const UserError& error) {
    return {"shared memory", Verdict::kBad, error.what(), "use --transport ucx, or a kernel of 5.1 or newer"};
  }
  return {"shared memory", Verdict::kGood, "sealed segments work: --transport local", ""};
}

Finding dev_shm() {
  struct statvfs info {};
  if (::statvfs("/dev/shm", &info) != 0)
    return {"/dev/shm", Verdict::kWarning, "is not there", "mount a tmpfs on /dev/shm: UCX uses it"};
  const double free = static_cast<double>(info.f_bavail) * static_cast<double>(info.f_frsize);
  const auto text = fmt::format("{:.1f} GB free", free / 1e9);
  if (free < 256e6)
    return {"/dev/shm", Verdict::kWarning, text,
            "remount it larger: mount -o remount,size=2G /dev/shm (docker: --shm-size)"};
  return {"/dev/shm", Verdict::kGood, text, ""};
}

Finding ucx() {
  try {
    transport::EventLoop loop;
    auto context = transport::ucx::Context::open(loop);
    auto listener = context->listen("127.0.0.1:0", [](auto) {});
    return {"ucx", Verdict::kGood, fmt::format("listens on {}: --transport ucx", listener->address()), ""};
  } catch (const UserError& error) {
    return {"ucx", Verdict::kBad, error.what(),
            "install libucx0, and look at UCX_TLS and UCX_NET_DEVICES if they are set"};
  }
}

Finding open_files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto text =
      limit.rlim_cur == RLIM_INFINITY ? std::string("unlimited") : fmt::format("{}", limit.rlim_cur);
  if (limit.rlim_cur < 1024)
    return {"open files", Verdict::kWarning, text, "raise it for many workers: ulimit -n 4096"};
  return {"open files", Verdict::kGood, text, ""};
}

// Asks the program that is linked with libtorch, so that this one need not be.
Finding libtorch() {
  launch::prepare_compute_environment();
  const auto program = launch::program("capstan-torch");
  if (::access(program.c_str(), X_OK) != 0) {
    return {"libtorch", Verdict::kBad,
            "capstan-torch is not beside this program: train and work are not there",
            "build with -DCAPSTAN_TORCH=ON"};
  }
  launch::Child child({{program, "describe"}, {}, "/dev/null", true});
  const auto line = child.read_line(SteadyClock::now() + std::chrono::seconds(20));
  if (!line)
    return {"libtorch", Verdict::kBad, "capstan-torch does not start",
            "install libtorch-dev again, or see what " + program + " describe says"};
  const auto facts = nlohmann::json::parse(*line);
  const double rate = facts.at("gflops").get<double>();
  const auto text =
      fmt::format("libtorch {}, BLAS {}: {:.0f} GFLOP/s on one thread",
                  facts.at("libtorch").get<std::string>(), facts.at("blas").get<std::string>(), rate);
  if (facts.at("reference_blas").get<bool>()) {
    return {"libtorch", Verdict::kWarning, text,
            "this is the slow reference BLAS: apt-get install libopenblas0-openmp"};
  }
  if (!facts.at("obeys_threads").get<bool>()) {
    return {"libtorch", Verdict::kWarning, text,
            "this OpenBLAS ignores the thread count: apt-get install libopenblas0-openmp"};
  }
  return {"libtorch", Verdict::kGood, text, ""};
}

const char* word(Verdict verdict) {
  return verdict == Verdict::kGood ? "ok" : verdict == Verdict::kWarning ? "warning" : "missing";
}

}  // namespace

int run_doctor(const Arguments& arguments) {
  bool json = false;
  CommandLine line("doctor", "What this machine offers for training, what is missing, and how to mend it.");
  line.add({.name = "json", .value = &json, .help = "Print one JSON object"});
  if (!line.parse(arguments)) return kSuccess;

  const Finding findings[] = {cores(), memory(), shared_memory(), dev_shm(), ucx(), open_files(), libtorch()};
  bool good = true;
  nlohmann::ordered_json list;
  for (const auto& f : findings) {
    good = good && f.verdict != Verdict::kBad;
    list.push_back(
        {{"subject", f.subject}, {"verdict", word(f.verdict)}, {"what", f.what}, {"remedy", f.remedy}});
    if (json) continue;
    fmt::print("{:<8} {:<14} {}\n", word(f.verdict), f.subject, f.what);
    if (!f.remedy.empty()) fmt::print("{:<8} {:<14} → {}\n", "", "", f.remedy);
  }
  if (json) fmt::print("{}\n", nlohmann::ordered_json{{"ok", good}, {"findings", list}}.dump());
  return good ? kSuccess : kFailed;
}

}  // namespace capstan::cli
