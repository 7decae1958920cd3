/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rank this is: every launcher says it in variables of its own. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "bind.h"

/*
 * In order of trust. Under mpirun inside a Slurm job, SLURM_LOCALID is that of Open MPI's daemon:
 * so the launchers that start ranks through another one come before it.
 */
static const struct names {
    const char *launcher, *local_rank, *local_size, *rank, *size, *node, *nodes;
} table[] = {
    {"Open MPI", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE", NULL, NULL},
    {"Hydra", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_RANK", "PMI_SIZE", NULL, NULL},
    {"PALS", "PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE", "PALS_RANKID", "PMI_SIZE", "PALS_NODEID",
     NULL},
    {"Flux", "FLUX_TASK_LOCAL_ID", NULL, "FLUX_TASK_RANK", "FLUX_JOB_SIZE", NULL,
     "FLUX_JOB_NNODES"},
    {"Slurm", "SLURM_LOCALID", NULL, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_NODEID",
     "SLURM_STEP_NUM_NODES"},
    {"PMIx", "PMIX_LOCAL_RANK", "PMIX_LOCAL_SIZE", "PMIX_RANK", "PMIX_SIZE", NULL, NULL},
};

static int number(const char *name)
{
    const char *text = (name != NULL) ? getenv(name) : NULL;
    char       *end;

    if ((text == NULL) || (text[0] < '0') || (text[0] > '9')) {
        return NO_NUMBER;
    }
    errno = 0;
    long value = strtol(text, &end, 10);
    return ((*end == '\0') && (errno == 0) && (value <= INT_MAX)) ? (int)value : NO_NUMBER;
}

/* A batch or an interactive step is no rank, although it has the variables of rank 0. */
static bool in_slurm_task(void)
{
    const char *step = getenv("SLURM_STEP_ID");

    return (step != NULL) && (step[0] >= '0') && (step[0] <= '9') &&
           (strtoul(step, NULL, 10) < 0xfffffff0UL);
}

/* Slurm's list "4,4" or "4(x2),3": the entry of this node. */
static int tasks_of_node(const char *list, int node)
{
    for (const char *p = list; (p != NULL) && (*p != '\0');) {
        char *end;
        long  tasks = strtol(p, &end, 10), times = 1;

        if (end == p) {
            return NO_NUMBER;
        }
        if ((end[0] == '(') && (end[1] == 'x')) {
            times = strtol(end + 2, &end, 10);
            end += (*end == ')') ? 1 : 0;
        }
        if (node < times) {
            return (int)tasks;
        }
        node -= (int)times;
        p = (*end == ',') ? end + 1 : NULL;
    }
    return NO_NUMBER;
}

static void read_slurm(struct launch *launch)
{
    const char *type = getenv("SLURM_CPU_BIND_TYPE"), *list = getenv("SLURM_CPU_BIND_LIST");
    int         count = 0;

    launch->local_size =
        tasks_of_node(getenv("SLURM_STEP_TASKS_PER_NODE"), (launch->node >= 0) ? launch->node : 0);
    if ((type == NULL) || (list == NULL) || (strncmp(type, "mask_cpu", 8) != 0)) {
        return;
    }
    for (const char *p = list; (*p != '\0') && (count < MAX_RANKS); count++) {
        size_t len = strcspn(p, ",");
        if (!cpus_parse_hex(p, len, &launch->masks[count])) {
            return;
        }
        p += len + ((p[len] == ',') ? 1 : 0);
    }
    launch->masks_known = (launch->local_size > 0) && (count > 0);
    for (int task = count; launch->masks_known && (task < launch->local_size) && (task < MAX_RANKS);
         task++) {
        launch->masks[task] = launch->masks[task - count]; /* Slurm begins the list again */
    }
}

void launch_read(struct launch *launch_p)
{
    *launch_p = (struct launch){.rank = NO_NUMBER,
                                .size = NO_NUMBER,
                                .local_rank = NO_NUMBER,
                                .local_size = NO_NUMBER,
                                .node = NO_NUMBER,
                                .nodes = NO_NUMBER};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const struct names *names = &table[i];
        bool                slurm = (strcmp(names->launcher, "Slurm") == 0);
        int                 local_rank = number(names->local_rank);

        if ((local_rank == NO_NUMBER) || (slurm && !in_slurm_task())) {
            continue;
        }
        launch_p->launcher = names->launcher;
        launch_p->local_rank = local_rank;
        launch_p->local_size = number(names->local_size);
        launch_p->rank = number(names->rank);
        launch_p->size = number(names->size);
        launch_p->node = number(names->node);
        launch_p->nodes = number(names->nodes);
        if (slurm) {
            read_slurm(launch_p);
        }
        return;
    }
}
