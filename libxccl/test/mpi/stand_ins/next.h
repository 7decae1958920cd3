/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For libraries that stand in for MPI's own, and call it: what lies behind them. Each has MPI's
 * PMPI_Initialized(), by which the interposer takes it for the MPI library.
 */
#ifndef MT_NEXT_H
#define MT_NEXT_H

#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static void *next_function(const char *name)
{
    void *address = dlsym(RTLD_NEXT, name);

    if (address == NULL) {
        abort();
    }
    return address;
}

/* Declare `next`, MPI's function of that name. */
#define NEXT(name)                                                                                 \
    __typeof__(&name) next;                                                                        \
    void             *address = next_function(#name);                                              \
    memcpy(&next, &address, sizeof(next))

int PMPI_Initialized(int *flag)
{
    NEXT(PMPI_Initialized);
    return next(flag);
}

#endif
