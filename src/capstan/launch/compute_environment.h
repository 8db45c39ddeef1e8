#pragma once

namespace capstan::launch {

// Sets environment variables for OpenBLAS and OpenMP, which read them when they are loaded: call it before
// starting a program that computes. Variables that the user has set stay. Returns true if it has set one.
//
// OpenBLAS 0.3.21 takes an Intel CPU newer than itself for a Prescott of 2004 and multiplies matrices at a
// fifth of the speed. OpenMP's threads spin while they wait for each other, which costs nothing on an idle
// machine and half of the speed on a busy one.
bool prepare_compute_environment();

}  // namespace capstan::launch
