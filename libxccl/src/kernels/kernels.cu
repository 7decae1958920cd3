/* SPDX-License-Identifier: BSD-3-Clause */
/* All kernels of a device: CUDA, HIP, and C for the simulation. */
#include "kernels/enqueued.h"
#include "kernels/lingering.h"
#include "kernels/mapped.h"
#include "kernels/moving.h"
#include "kernels/rounds.h"
#include "kernels/short.h"
