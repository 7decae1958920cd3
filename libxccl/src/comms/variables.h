/* SPDX-License-Identifier: BSD-3-Clause */
/* The variables of the environment by which a rank decides what it does together with others. */
#ifndef XM_COMMS_VARIABLES_H
#define XM_COMMS_VARIABLES_H

#include <stdint.h>

#include "base/log.h"

enum { XM_NUM_VARIABLES = 12 };

/* All zeros: not known. */
struct xm_variables {
    uint64_t known;
    uint64_t values[XM_NUM_VARIABLES]; /* or digests of them */
    char     tune[48];                 /* the beginning of XCCL_TUNE, for messages */
};

/* This process's. */
void xm_variables_fill(struct xm_variables *mine);

/* A number that is equal where two processes' are. */
uint64_t xm_variables_hash(const struct xm_variables *of);

/*
 * xcclInvalidUsage, with what to do, where two of n ranks that are known have unlike variables: the
 * message names the rank that has another value than most, or both where there is no majority.
 * world_ranks: their ranks in MPI_COMM_WORLD; NULL: they are named by their places.
 */
typedef const struct xm_variables *xm_variables_of(const void *all, int rank);
xcclResult_t xm_variables_judge(xm_variables_of *of, const void *all, const int *world_ranks,
                                int n);

#endif
