#include "capstan/launch/host_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace capstan::launch {
namespace {

using ::testing::HasSubstr;

constexpr const char* kMeminfo =
    "MemTotal:       16000000 kB\n"
    "MemFree:         1000000 kB\n"
    "MemAvailable:    8000000 kB\n"
    "HugePages_Total:       0\n"
    "Hugepagesize:       2048 kB\n";

TEST(HostCheck, CoresThatMayNotBeUsedAreAWarning) {
  EXPECT_EQ(cores_finding(4, 4), (Finding{"cores", Verdict::kGood, "4 cores", ""}));
  const auto few = cores_finding(2, 8);
  EXPECT_EQ(few.verdict, Verdict::kWarning);
  EXPECT_EQ(few.what, "2 of 8 cores may be used");
  EXPECT_THAT(few.remedy, HasSubstr("taskset"));
}

// 16,000,000 KiB are 16.384 GB.
TEST(HostCheck, ReadsMeminfoInKibibytes) {
  EXPECT_EQ(memory_finding(kMeminfo), (Finding{"memory", Verdict::kGood, "16.4 GB, 8.2 GB available", ""}));
}

TEST(HostCheck, ReadsMeminfoInAnyOrder) {
  EXPECT_EQ(memory_finding("HugePages_Free:  0\nMemAvailable: 2000000 kB\nMemTotal: 2000000 kB").what,
            "2.0 GB, 2.0 GB available");
}

TEST(HostCheck, LittleMemoryIsAWarning) {
  const auto little = memory_finding("MemTotal: 2000000 kB\nMemAvailable: 976562 kB\n");  // 999,999,488 bytes
  EXPECT_EQ(little.verdict, Verdict::kWarning);
  EXPECT_EQ(little.what, "2.0 GB, 1.0 GB available");
  EXPECT_EQ(memory_finding("MemTotal: 2000000 kB\nMemAvailable: 976563 kB\n").verdict, Verdict::kGood);
}

TEST(HostCheck, MeminfoWithoutFiguresIsAWarning) {
  for (const char* text :
       {"", "MemTotal: 2000000 kB\n", "MemAvailable: 2000000 kB\n", "MemTotal: much\nMemAvailable: more\n"}) {
    const auto finding = memory_finding(text);
    EXPECT_EQ(finding.verdict, Verdict::kWarning) << text;
    EXPECT_THAT(finding.what, HasSubstr("unknown")) << text;
  }
}

TEST(HostCheck, ASmallOrMissingDevShmIsAWarning) {
  EXPECT_EQ(dev_shm_finding(256e6), (Finding{"/dev/shm", Verdict::kGood, "0.3 GB free", ""}));
  const auto small = dev_shm_finding(64e6);
  EXPECT_EQ(small.verdict, Verdict::kWarning);
  EXPECT_EQ(small.what, "0.1 GB free");
  EXPECT_THAT(small.remedy, HasSubstr("--shm-size"));
  EXPECT_EQ(dev_shm_finding(std::nullopt).verdict, Verdict::kWarning);
  EXPECT_THAT(dev_shm_finding(std::nullopt).remedy, HasSubstr("mount a tmpfs"));
}

TEST(HostCheck, ALowLimitOfOpenFilesIsAWarning) {
  EXPECT_EQ(open_files_finding(1024), (Finding{"open files", Verdict::kGood, "1024", ""}));
  EXPECT_EQ(open_files_finding(std::nullopt), (Finding{"open files", Verdict::kGood, "unlimited", ""}));
  const auto low = open_files_finding(1023);
  EXPECT_EQ(low.verdict, Verdict::kWarning);
  EXPECT_EQ(low.what, "1023");
  EXPECT_THAT(low.remedy, HasSubstr("ulimit -n"));
}

std::string description(bool reference_blas, bool obeys_threads) {
  return std::string(R"({"libtorch":"1.13.0","blas":"OpenBLAS 0.3.21 for SkylakeX","reference_blas":)") +
         (reference_blas ? "true" : "false") + R"(,"obeys_threads":)" + (obeys_threads ? "true" : "false") +
         R"(,"gflops":107.4})";
}

TEST(HostCheck, LibtorchIsJudgedByItsBlas) {
  const std::string what = "libtorch 1.13.0, BLAS OpenBLAS 0.3.21 for SkylakeX: 107 GFLOP/s on one thread";
  EXPECT_EQ(libtorch_finding(description(false, true), "p"), (Finding{"libtorch", Verdict::kGood, what, ""}));
  const auto slow = libtorch_finding(description(true, true), "p");
  EXPECT_EQ(slow.verdict, Verdict::kWarning);
  EXPECT_EQ(slow.what, what);
  EXPECT_THAT(slow.remedy, HasSubstr("reference BLAS"));
  const auto stubborn = libtorch_finding(description(false, false), "p");
  EXPECT_EQ(stubborn.verdict, Verdict::kWarning);
  EXPECT_THAT(stubborn.remedy, HasSubstr("ignores the thread count"));
}

TEST(HostCheck, LibtorchWithoutOutputIsMissing) {
  const auto finding = libtorch_finding(std::nullopt, "bin/capstan-torch");
  EXPECT_EQ(finding.verdict, Verdict::kMissing);
  EXPECT_EQ(finding.what, "capstan-torch does not start");
  EXPECT_THAT(finding.remedy, HasSubstr("bin/capstan-torch describe"));
}

TEST(HostCheck, LibtorchWithUnexpectedOutputIsMissing) {
  for (const char* line :
       {"", "usage: capstan-torch", "{", "[]", "7", R"({"libtorch":"1.13.0"})",
        R"({"libtorch":1,"blas":"b","reference_blas":false,"obeys_threads":true,"gflops":1})",
        R"({"libtorch":"1","blas":"b","reference_blas":0,"obeys_threads":true,"gflops":1})", "\xff"}) {
    const auto finding = libtorch_finding(line, "bin/capstan-torch");
    EXPECT_EQ(finding.verdict, Verdict::kMissing) << line;
    EXPECT_EQ(finding.what,
              std::string("bin/capstan-torch describe prints \"") + line + "\" instead of its JSON line");
    EXPECT_THAT(finding.remedy, HasSubstr("build"));
  }
}

TEST(HostCheck, IsGoodUnlessSomethingIsMissing) {
  const Finding good{"cores", Verdict::kGood, "2 cores", ""};
  const Finding warning{"open files", Verdict::kWarning, "256", "ulimit -n 4096"};
  const Finding missing{"ucx", Verdict::kMissing, "is \"broken\"", "install libucx0"};
  EXPECT_TRUE((HostCheck{{good, warning}}.good()));
  const HostCheck all{{good, warning, missing}};
  EXPECT_FALSE(all.good());
  EXPECT_EQ(all.text(),
            "ok       cores          2 cores\n"
            "warning  open files     256\n"
            "                        → ulimit -n 4096\n"
            "missing  ucx            is \"broken\"\n"
            "                        → install libucx0\n");
  EXPECT_EQ(all.json().dump(),
            R"({"ok":false,"findings":[)"
            R"({"subject":"cores","verdict":"ok","what":"2 cores","remedy":""},)"
            R"({"subject":"open files","verdict":"warning","what":"256","remedy":"ulimit -n 4096"},)"
            R"({"subject":"ucx","verdict":"missing","what":"is \"broken\"","remedy":"install libucx0"}]})");
}

}  // namespace
}  // namespace capstan::launch
