#pragma once

namespace capstan::launch {

// OpenBLAS 0.3.21 takes an Intel CPU that is younger than itself for a Prescott of 2004 and multiplies
// matrices at a fifth of the speed. It chooses as it is loaded, so whoever starts a program that computes
// sets OPENBLAS_CORETYPE in its own environment first. A user's own setting stays.
void choose_blas_core();

}  // namespace capstan::launch
