/* SPDX-License-Identifier: BSD-3-Clause */
/* In place of topology_hwloc.c where hwloc was not found at build time: only site maps can bind. */
#include "bind.h"

const char *topology_version(void)
{
    return "no hwloc";
}

bool topology_is_there(void)
{
    return false;
}

bool topology_read(const char *topology, struct machine *machine_p)
{
    (void)machine_p;
    if (topology != NULL) {
        fprintf(stderr,
                "xccl-bind: --topology needs hwloc, which was not there when xccl was built\n");
        return false;
    }
    return true;
}
