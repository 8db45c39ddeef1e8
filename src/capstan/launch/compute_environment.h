#pragma once

namespace capstan::launch {

// Libraries that compute choose how as they are loaded, by environment variables: whoever starts a program
// that computes sets them in its own environment first. A user's own settings stay.
//
// OpenBLAS 0.3.21 takes an Intel CPU that is younger than itself for a Prescott of 2004 and multiplies
// matrices at a fifth of the speed. OpenMP's threads spin while they wait for each other, which costs nothing
// on an idle machine and half of the speed where anything else wants a core.
void prepare_compute_environment();

}  // namespace capstan::launch
