#include "capstan/training/torch_facts.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace capstan::training {
namespace {

TEST(Blas, IsNamedByItselfOrByItsFile) {
  EXPECT_EQ((Blas{"/lib/libopenblasp-r0.3.21.so",
                  Blas::OpenBlas{"OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH USE_OPENMP", "SkylakeX"}}
                 .text()),
            "OpenBLAS 0.3.21 for SkylakeX");
  EXPECT_EQ(Blas{"/lib/libmkl_rt.so"}.text(), "/lib/libmkl_rt.so");
  EXPECT_EQ(Blas{"unknown"}.text(), "unknown");
}

// Debian's files.
TEST(Blas, IsJudgedByTheNameOfItsFile) {
  const auto judged = [](const char* library) {
    const Blas blas{library};
    return std::pair(blas.is_reference(), blas.obeys_threads());
  };
  EXPECT_EQ(judged("/usr/lib/x86_64-linux-gnu/openblas-openmp/libblas.so.3"), std::pair(false, true));
  EXPECT_EQ(judged("/usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3"), std::pair(false, false));
  EXPECT_EQ(judged("/usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0"), std::pair(true, true));
  EXPECT_EQ(judged("/usr/lib/x86_64-linux-gnu/libmkl_rt.so"), std::pair(false, true));
}

TEST(Blas, ThatIsLoadedIsFound) {
  EXPECT_TRUE(loaded_blas().library.starts_with("/")) << loaded_blas().library;
}

// What host_check.h reads.
TEST(TorchFacts, AreOneJsonObject) {
  const TorchFacts facts{
      "1.13.0", {"/lib/openblas-pthread/libblas.so.3", Blas::OpenBlas{"A 1 B", "C"}}, 107.5};
  EXPECT_EQ(facts.json().dump(),
            R"({"libtorch":"1.13.0","blas":"A 1 for C","reference_blas":false,"obeys_threads":false,)"
            R"("gflops":107.5})");
}

TEST(TorchFacts, AreMeasuredOnOneThread) {
  at::set_num_threads(2);
  const auto facts = measure_torch();
  EXPECT_EQ(at::get_num_threads(), 1);
  EXPECT_GT(facts.gflops, 0);
  EXPECT_FALSE(facts.libtorch.empty());
}

}  // namespace
}  // namespace capstan::training
