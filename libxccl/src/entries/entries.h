/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions that libxccl-mpi.so takes over, and the contract between it (dispatch.c: one file
 * for every MPI) and the part that is compiled with one MPI family's mpi.h (family.c).
 */
#ifndef XM_ENTRIES_ENTRIES_H
#define XM_ENTRIES_ENTRIES_H

#include <stdbool.h>

#include "device/anchor.h"
#include "mpi/functions.h"

/* Both sides are built together; a stale file of another version is refused by this number. */
enum { XM_FAMILY_ABI = 16 };

struct xm_family {
    unsigned    abi;
    const char *name; /* "openmpi", "mpich", "mpiabi" */
    /*
     * Learn which library to call. next: of each function the one that a tool behind us has
     * (preloaded after us, or linked), or NULL. Returns 0; else the family's file cannot serve this
     * library, and every call goes straight to it.
     */
    int (*open)(void *libmpi, void (*const next[XM_NUM_FUNCTIONS])(void));
    /*
     * Serve a call. profiling: it came under the name PMPI_..., from a tool in front of us or from
     * MPI's Fortran functions. args: every argument in a long, as in dispatch.c.
     */
    long (*call)(enum xm_function function, int profiling, const long *args);
    int (*comm_init_mpi)(void **comm_p, long mpi_comm);
    int (*tune)(const char *text);
    /* Do MPI's calls take memory of such a device, "cuda" or "rocm", because of us? At any time. */
    int (*serves)(const char *runtime);
    const char *(*last_path)(void);
    const char *(*last_message_path)(void);
    const char *(*last_obstacle)(const char *path);
    /* While this anchor is the last (device/anchor.h), transfers are MPI's alone. */
    const struct link_map *const *(*anchor)(void);
    /* But receives of messages are ours even then: enum xm_watched, which changes once. */
    const int *(*watched)(void);
    /* Except of a non-blocking receive with these arguments; asked while the anchor is the last. */
    bool (*is_plain_receive)(const long *args);
    /* *request_p is about to be given to one of MPI's functions for Fortran that may write into it.
     * NULL: this MPI has none. */
    void (*stand_in_for_fortran)(void **request_p);
    /* Every call is to come to call(): the user wants them counted. Set by open(). */
    int observes;
};

#define XM_FAMILY_SYMBOL "xccl_mpi_family"

#endif
