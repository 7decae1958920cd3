/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI's reductions in the kernels' terms (kernels/operations.h), where both mean the same. */
#ifndef XM_DATA_KERNEL_REDUCTION_H
#define XM_DATA_KERNEL_REDUCTION_H

#include <stdint.h>

#include "mpi/mpi.h"

/* What reducing elements of a type means to a kernel. */
struct xm_kernel_reduction {
    uint32_t what;    /* XK_REDUCES; with XK_SUM_CHECKED only the kernels can do it */
    size_t   element; /* bytes from one element to the next, as they lie in memory, holes too */
    bool     tried;   /* found by a look at this rank's MPI: ranks may differ */
};

/*
 * Translate type and op. Returns NULL on success, else why the pair needs MPI, as a static text
 * ("user-defined operation, or none that reduces").
 */
const char *xm_kernel_reduction_of(MPI_Datatype type, MPI_Op op,
                                   struct xm_kernel_reduction *reduction_p);

/* A number for what this rank's MPI does with integers: ranks with equal numbers do the same. */
uint64_t xm_kernel_reduction_arithmetic(void);

#endif
