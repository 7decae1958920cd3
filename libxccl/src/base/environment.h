/* SPDX-License-Identifier: BSD-3-Clause */
/* What variables of others say: launchers, profilers and the vendors' runtimes. Our own are in
 * params.h. */
#ifndef XC_BASE_ENVIRONMENT_H
#define XC_BASE_ENVIRONMENT_H

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

/*
 * Add "NAME=value" lines to a text: what preloads `library` into processes that this one starts,
 * and its settings; names that are there already stay as they are. False if the preloading has no
 * room. Nothing is added where `library` is not preloaded here.
 */
XC_SHARED bool xc_environment_for_children(const char *library, char *text, size_t len);

/* The library of an attached tool that understands NVTX (Nsight Systems), or NULL. */
XC_SHARED const char *xc_nvtx_library(void);
/* Is a profiler of ROCm's attached? */
XC_SHARED bool xc_rocm_profiler(void);

/* What the vendor's library is told of its network; NULL where nothing is said. */
struct xc_network_variables {
    const char *net, *plugin;
    bool        no_verbs;
};
void xc_network_variables_get(struct xc_network_variables *v);

/*
 * Do all streams of a device share one queue, because CUDA_DEVICE_MAX_CONNECTIONS or
 * GPU_MAX_HW_QUEUES asks the vendor's runtime for that?
 */
XC_SHARED bool xc_one_hardware_queue(void);
/* A variable that a vendor's library, or the simulation, reads; NULL where it is not set or empty.
 */
const char *xc_foreign_variable(const char *name);
/* Does this variable, as CUDA_VISIBLE_DEVICES, hide all devices from the process? */
bool xc_hides_devices(const char *name);
/* Has the user told the vendor's library not to reach the memory of other devices? */
XC_SHARED bool xc_peers_disabled(void);

#endif
