/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of this family's MPI that family.c hands to libxccl-mpi.so. */
#ifndef XM_INTERCEPT_ENTRY_H
#define XM_INTERCEPT_ENTRY_H

#include "intercept/call.h"

/* True once MPI is initialised and the interposer with it; before, calls go to MPI, which objects.
 */
bool xm_started(void);

#define XM_DECLARE(name) __typeof__(PMPI_##name) xm_MPI_##name;
XM_PMPI_COLLECTIVES(XM_DECLARE)
XM_DECLARE(Init)
XM_DECLARE(Init_thread)
XM_DECLARE(Finalize)
#undef XM_DECLARE
#define XM_DECLARE(name, arguments) int xm_MPI_##name arguments;
XM_PMPI_LARGE(XM_DECLARE)
#undef XM_DECLARE

#endif
