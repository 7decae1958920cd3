/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/launch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/*
 * In order of trust: those that start ranks through another launcher come before it. Under mpirun
 * in a Slurm job, Slurm's variables are those of Open MPI's daemon.
 */
static const struct source {
    const char *launcher;
    const char *task; /* set in every rank; where it is not, the row says nothing */
    const char *size, *rank, *local_rank;
} sources[] = {
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"Hydra (mpiexec of MPICH and its kin)", "MPI_LOCALRANKID", "PMI_SIZE", "PMI_RANK",
     "MPI_LOCALRANKID"},
    {"PALS (mpiexec of HPE)", "PALS_LOCAL_RANKID", "PMI_SIZE", "PALS_RANKID", "PALS_LOCAL_RANKID"},
    {"Flux", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE", "FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID"},
    {"srun", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID"},
    {"a launcher with PMI", "PMI_RANK", "PMI_SIZE", "PMI_RANK", NULL},
    {"a launcher with PMIx", "PMIX_RANK", NULL, "PMIX_RANK", "PMIX_LOCAL_RANK"},
};

/* From here on a step's number means a kind: pending, external, batch, interactive. */
static const unsigned long special_step = 0xfffffff0UL;

static int number(const char *name)
{
    const char *text = (name != NULL) ? getenv(name) : NULL;
    char       *end;

    if ((text == NULL) || (text[0] < '0') || (text[0] > '9')) {
        return XC_UNKNOWN;
    }
    errno = 0;
    long value = strtol(text, &end, 10);
    return ((*end == '\0') && (errno == 0) && (value <= INT_MAX)) ? (int)value : XC_UNKNOWN;
}

/* With --pty the first task is a shell, and what is called there was started by nobody else. */
static bool in_slurm_task(void)
{
    const char *step = getenv("SLURM_STEP_ID");

    return (step != NULL) && (step[0] >= '0') && (step[0] <= '9') &&
           (strtoul(step, NULL, 10) < special_step) && (getenv("SLURM_PTY_PORT") == NULL);
}

bool xc_launch_read(struct xc_launch *launch_p)
{
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        const struct source *s = &sources[i];
        bool                 slurm = (strcmp(s->launcher, "srun") == 0);

        if ((number(s->task) == XC_UNKNOWN) || (slurm && !in_slurm_task())) {
            continue;
        }
        *launch_p = (struct xc_launch){.launcher = s->launcher,
                                       .variable = s->size,
                                       .size = number(s->size),
                                       .rank = number(s->rank),
                                       .local_rank = number(s->local_rank),
                                       .direct_slurm = slurm};
        if (launch_p->size == XC_UNKNOWN) {
            /* There are at least those before it. */
            launch_p->variable = s->rank;
            launch_p->size = (launch_p->rank > 0) ? launch_p->rank + 1 : XC_UNKNOWN;
            launch_p->at_least = true;
        }
        launch_p->value = getenv(launch_p->variable);
        return true;
    }
    return false;
}

bool xc_first_of_node(void)
{
    struct xc_launch launch;

    if (!xc_launch_read(&launch)) {
        return true;
    }
    int place = (launch.local_rank != XC_UNKNOWN) ? launch.local_rank : launch.rank;
    return place <= 0;
}

uint32_t xc_world_number(void)
{
    const char *name = getenv("PMIX_NAMESPACE");
    uint32_t    number = (uint32_t)xc_hash_text(XC_HASH_BEGIN, name);

    return (number != 0) ? number : 1;
}

bool xc_job_name(char *buf, size_t len)
{
    static const char *const names[] = {"PMIX_NAMESPACE", "PMIX_SERVER_URI2", "PMI_JOBID",
                                        "SLURM_JOB_ID",   "SLURM_STEP_ID",    "PALS_APID"};
    bool                     named = false;
    size_t                   at = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);
        if ((value != NULL) && (at < len)) {
            int n = snprintf(buf + at, len - at, "%s=%s ", names[i], value);
            at += (n > 0) ? (size_t)n : 0;
            /* An allocation's number is no job's: many may run in it. */
            named = named || (strcmp(names[i], "SLURM_JOB_ID") != 0);
        }
    }
    return named;
}

int xc_launcher_socket(void)
{
    const char *fd = getenv("PMI_FD");

    return ((fd != NULL) && (fd[0] >= '0') && (fd[0] <= '9')) ? atoi(fd) : -1;
}
