/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/fortran_request.h"

#include <string.h>

#include "ops/entry.h"

#if XM_OPENMPI

/* More than the structure has in any version; and as much as MPI_REQUEST_NULL has in all. */
enum { ROOM_BYTES = 2048, NULL_BYTES = 256 };

/* Of this thread's call: what it gets, and what that stands for. */
static __thread long        room[ROOM_BYTES / sizeof(long)];
static __thread MPI_Request behind;

/*
 * It looks like MPI_REQUEST_NULL, which is complete, and not persistent. So most functions free the
 * arrays that they have converted, of which the operation has copies, and write nothing. The others
 * write behind the request where they are; some versions do not free them then.
 */
void xm_fortran_request_put(void **request_p)
{
    MPI_Request *request = (MPI_Request *)request_p;

    if (xm_entry_peek(*request) == NULL) {
        return; /* MPI's own */
    }
    memset(room, 0, sizeof(room));
    memcpy(room, (const void *)XM_HANDLE(MPI_REQUEST_NULL), NULL_BYTES);
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
