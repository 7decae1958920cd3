/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/fortran_request.h"

#include <stddef.h>

#include "ops/entry.h"

#if XM_OPENMPI

/* More than the structure has in any version. */
enum { WORDS = 256 };

/* Of this thread's call: what it gets, and what that stands for. */
static __thread long        room[WORDS];
static __thread MPI_Request behind;

/*
 * Open MPI looks first whether the request is complete, which is the word 1. Then it writes
 * nothing, and frees arrays that it has converted: of those the operation has copies.
 */
void xm_fortran_request_put(void **request_p)
{
    MPI_Request *request = (MPI_Request *)request_p;

    if (xm_entry_peek(*request) == NULL) {
        return; /* MPI's own */
    }
    for (size_t i = 0; i < WORDS; i++) {
        room[i] = 1;
    }
    behind = *request;
    *request_p = room;
}

long xm_fortran_request_c2f(int profiling, const long *args)
{
    const long instead[] = {(args[0] == (long)room) ? (long)behind : args[0]};

    return xm_mpi_forward(XM_FN_MPI_Request_c2f, profiling, instead);
}

#else

void xm_fortran_request_put(void **request_p)
{
    (void)request_p;
}

/* MPICH 4.0 has it as a macro: the handle is the number. */
long xm_fortran_request_c2f(int profiling, const long *args)
{
    return (xm_mpi_functions[XM_FN_MPI_Request_c2f] != NULL)
               ? xm_mpi_forward(XM_FN_MPI_Request_c2f, profiling, args)
               : args[0];
}

#endif
