/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels that have to do with one rank alone, in CUDA, in HIP, and in C for the simulation. The
 * messages need no others: these are small, and loaded in less than a millisecond.
 */
#include "kernels/awaiting.h"
#include "kernels/copying.h"
#include "kernels/lingering.h"
