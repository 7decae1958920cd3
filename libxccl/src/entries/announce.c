/* SPDX-License-Identifier: BSD-3-Clause */
#include "entries/announce.h"

#include <stdio.h>
#include <string.h>

#include "backends/backend.h"
#include "base/environment.h"
#include "base/log.h"
#include "base/params.h"
#include "calls/calls.h"
#include "device/device.h"
#include "mpi/mpi.h"

/* What may serve calls on device memory, by the variables alone. */
static void offer_text(char *buf, size_t len)
{
    static const char *const routes[] = {"xccl", "mpi", "ucc", "ucc-ccl"};
    const struct xc_params  *params = xc_params();
    char                     vendor[512];

    if (params->route != XC_ROUTE_XCCL) {
        snprintf(buf, len, "every call goes to MPI (XCCL_ROUTE=%s)", routes[params->route]);
        return;
    }
    if (!xc_device_possible()) {
        snprintf(buf, len, "no device here, nor a runtime of one: every call goes to MPI");
        return;
    }
    xc_backend_outlook(vendor, sizeof(vendor));
    snprintf(buf, len, "paths for device memory: %s%smpi; %s",
             (params->direct == XC_DIRECT_OFF) ? "" : "direct, ",
             (params->ccl == XC_CCL_NONE) ? "" : "ccl, ", vendor);
}

static void say_active(const char *mpi, int size)
{
    char offer[700];

    offer_text(offer, sizeof(offer));
    xc_info("xccl %d.%d.%d is active: %s, %d rank%s; %s", XCCL_MAJOR, XCCL_MINOR, XCCL_PATCH, mpi,
            size, (size == 1) ? "" : "s", offer);
}

/*
 * A launcher of another MPI, or an interface of srun's that this MPI does not speak, starts
 * processes that do not know of each other: each does the whole work, and nobody says a word. A
 * process that MPI_Comm_spawn started is alone in its MPI_COMM_WORLD by right.
 */
static void warn_if_alone(const char *mpi, int size)
{
    struct xc_launch launch;

    if ((size != 1) || !xc_launch_read(&launch) || (launch.size <= 1) || (xm_mpi_spawned() != 0) ||
        !xc_first_of_node()) {
        return;
    }
    xc_warn("%s started %s%d processes (%s=%s), but this one is alone in MPI_COMM_WORLD: "
            "the program runs with %s, which does not understand this launcher; %s",
            launch.launcher, launch.at_least ? "at least " : "", launch.size, launch.variable,
            launch.value, mpi,
            launch.direct_slurm
                ? "choose the interface of that MPI with srun --mpi=... (srun --mpi=list shows "
                  "all), or use its own mpirun"
                : "use the mpirun or mpiexec of that MPI, or build the program with the "
                  "launcher's MPI");
}

void xm_announce(void)
{
    char mpi[128];
    int  size = 0, rank = 0;

    if ((xm_pmpi.Comm_size(XM_HANDLE(MPI_COMM_WORLD), &size) != MPI_SUCCESS) ||
        (xm_pmpi.Comm_rank(XM_HANDLE(MPI_COMM_WORLD), &rank) != MPI_SUCCESS) || (rank != 0)) {
        return;
    }
    xm_mpi_name(mpi, sizeof(mpi));
    if (xc_log_enabled(XC_LOG_INFO) && !xm_config.faulty) {
        say_active(mpi, size);
    }
    warn_if_alone(mpi, size);
}
