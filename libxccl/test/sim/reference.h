/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements of every type, as numbers: made, read and compared without the simulation's own code. */
#ifndef XT_SIM_REFERENCE_H
#define XT_SIM_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "nccl_abi.h"

size_t type_bytes(ncclDataType_t type);
/* Small numbers that every type holds exactly, and that differ by rank, place and seed. */
double sample(int rank, size_t place, int seed);
void   write_number(void *array, size_t place, ncclDataType_t type, double number);
double read_number(const void *array, size_t place, ncclDataType_t type);
/* op over the samples of ranks 0 to n - 1, in exact arithmetic. */
double reduce_samples(int n, size_t place, int seed, ncclRedOp_t op);
/* Is got what type makes of want? Exact but for the rounding of the type. */
bool agrees(double got, double want, ncclDataType_t type);

#endif
