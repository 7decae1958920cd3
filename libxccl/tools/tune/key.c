/* SPDX-License-Identifier: BSD-3-Clause */
/* What samples depend on beside their sizes: those of another key are not mixed with them. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tune/tune.h"
#include "vendor/vendor.h"

extern char **environ;

/* Does a variable change what is measured? What xccl-tune sets itself, and what only says more,
 * does not; nor does the simulation's, whose times mean nothing. */
static bool counts(const char *variable)
{
    static const char *const with[] = {
        "NCCL_",          "RCCL_",        "MSCCL",        "XCCL_CCL",      "XCCL_DIRECT",
        "XCCL_COMM_",     "XCCL_LAUNCH=", "XCCL_SCRATCH", "XCCL_STAGING",  "XCCL_MPI_GPU_AWARE",
        "XCCL_GPU_QUERY", "XCCL_MEMORY=", "XCCL_CHECK=",  "XCCL_THREADS=", "XCCL_GDRCOPY",
    };
    static const char *const without[] = {"NCCL_DEBUG", "RCCL_DEBUG", "NCCL_TOPO_DUMP_FILE",
                                          "NCCL_GRAPH_DUMP_FILE"};
    bool                     found = false;

    for (size_t i = 0; i < sizeof(with) / sizeof(with[0]); i++) {
        found = found || (strncmp(variable, with[i], strlen(with[i])) == 0);
    }
    for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++) {
        found = found && (strncmp(variable, without[i], strlen(without[i])) != 0);
    }
    return found;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A digest of the variables, and each of them as far as there is room. */
static void put_variables(char *key, size_t len)
{
    size_t       count = 0, all = 0;
    uint64_t     hash = XC_HASH_BEGIN;
    const char **list;

    while (environ[all] != NULL) {
        all++;
    }
    list = calloc(all + 1, sizeof(*list));
    for (size_t i = 0; (list != NULL) && (i < all); i++) {
        if (counts(environ[i])) {
            list[count++] = environ[i];
        }
    }
    if (count > 0) {
        qsort(list, count, sizeof(*list), by_name);
    }
    for (size_t i = 0; i < count; i++) {
        hash = xc_hash_text(hash, list[i]);
    }
    size_t used = strlen(key);
    snprintf(key + used, len - used, "; settings %016llx", (unsigned long long)hash);
    for (size_t i = 0; i < count; i++) {
        used = strlen(key);
        snprintf(key + used, len - used, "; %s", list[i]);
    }
    free(list);
}

void tune_key_make(const struct tune_job *job, char *key)
{
    const struct tune_origin *o = &job->origin;

    snprintf(key, TUNE_MAX_KEY,
             "%s; %s; %d nodes, %d ranks each; driver %s; %s; %s; xccl %s; network %s", o->gpu,
             o->memory, job->nodes, job->per_node, o->driver, o->library, o->mpi_library,
             XCCL_TUNE_VERSION, xc_vendor_fabric() ? "verbs or a plugin" : "sockets");
    put_variables(key, TUNE_MAX_KEY);
    for (char *c = key; *c != '\0'; c++) {
        *c = ((unsigned char)*c < ' ') ? ' ' : *c; /* it is one line */
    }
}
