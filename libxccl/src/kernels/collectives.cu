/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels that meet those of other ranks, in CUDA, in HIP, and in C for the simulation. They take
 * some milliseconds to load, and meanwhile nothing can be launched on the device.
 */
#include "kernels/attending.h"
#include "kernels/enqueued.h"
#include "kernels/mapped.h"
#include "kernels/rounds.h"
#include "kernels/short.h"
