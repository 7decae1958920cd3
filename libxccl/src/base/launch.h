/* SPDX-License-Identifier: BSD-3-Clause */
/* What launchers say of this process, by variables. The dispatcher, which has no libxccl, has a
 * copy. */
#ifndef XC_BASE_LAUNCH_H
#define XC_BASE_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"

enum { XC_UNKNOWN = -1 };

/* What the launcher of this process says of it; XC_UNKNOWN where it says nothing. */
struct xc_launch {
    const char *launcher; /* "Open MPI's mpirun" */
    const char *variable; /* that says how many: "OMPI_COMM_WORLD_SIZE" */
    const char *value;    /* of it, valid until the environment changes */
    int         size;     /* processes that it started, or at least so many: */
    bool        at_least;
    int         rank; /* of this one among them */
    int         local_rank;
    bool        direct_slurm; /* srun started the ranks itself, by the interface of --mpi */
};

/*
 * The launcher that started this process as one of its ranks; false if none did. A batch script, or
 * an interactive shell of a job, is no rank, although it has Slurm's variables of the whole job.
 */
XC_SHARED bool xc_launch_read(struct xc_launch *launch_p);

/*
 * Of the processes of a node that find the same fault one is enough to say so: is this the first of
 * its node, or of the job where no more is known? True where the launcher says nothing.
 */
XC_SHARED bool xc_first_of_node(void);

/* What the launcher calls this job, equal in all of its processes; false if it says nothing. */
XC_SHARED bool xc_job_name(char *buf, size_t len);

/* Of this process's MPI_COMM_WORLD, on all nodes; not 0. The same for all where nothing names it.
 */
XC_SHARED uint32_t xc_world_number(void);
/* The socket to the launcher that this process began with, or -1. */
XC_SHARED int xc_launcher_socket(void);

#endif
