/* SPDX-License-Identifier: BSD-3-Clause */
#include "entries/announce.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/backend.h"
#include "base/launch.h"
#include "base/log.h"
#include "base/params.h"
#include "calls/calls.h"
#include "device/device.h"
#include "mpi/mpi.h"
#include "tables/tables.h"

static const char *const routes[] = {"xccl", "mpi", "ucc", "ucc-ccl"};

/* What may serve calls on device memory, by the variables alone. */
static void offer_text(char *buf, size_t len)
{
    const struct xc_params *params = xc_params();
    char                    vendor[512];

    if (params->route != XC_ROUTE_XCCL) {
        snprintf(buf, len, "every collective goes to MPI (XCCL_ROUTE=%s)", routes[params->route]);
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

/* Such an MPI ends the program where it touches device memory, and says nothing of why. */
static void warn_of_awareness(const char *mpi)
{
    static const char *const runtimes[] = {"cuda", "rocm"};

    for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
        if ((xc_params()->mpi_gpu_aware == XC_YES) && xc_device_possible_of(runtimes[i]) &&
            xm_mpi_denies_gpu_aware(runtimes[i])) {
            xc_warn("XCCL_MPI_GPU_AWARE=yes, but %s says that it does not take device memory (%s): "
                    "what is left to MPI would crash; unset it, or use a GPU-aware MPI",
                    mpi, runtimes[i]);
        }
    }
}

static int is_libucc(struct dl_phdr_info *info, size_t size, void *arg)
{
    const char *slash = (info->dlpi_name != NULL) ? strrchr(info->dlpi_name, '/') : NULL;

    (void)size;
    (void)arg;
    return (slash != NULL) && (strncmp(slash, "/libucc.so", strlen("/libucc.so")) == 0);
}

/*
 * Open MPI without coll/ucc, or whose libucc is missing, says nothing and serves collectives
 * itself. The transports of UCC are loaded by it and need libucc: where it is not loaded, there is
 * no UCC.
 */
static void warn_of_ucc(const char *mpi)
{
    enum xc_route route = xc_params()->route;

    if (((route != XC_ROUTE_UCC) && (route != XC_ROUTE_UCC_CCL)) || (xm_mpi_spawned() != 0) ||
        (dl_iterate_phdr(is_libucc, NULL) != 0)) {
        return;
    }
    xc_warn("XCCL_ROUTE=%s, but libucc is not loaded: UCC serves no collective, %s does; "
            "use an Open MPI with the component coll/ucc, and a libucc that it finds (ompi_info | "
            "grep ucc), or unset XCCL_ROUTE",
            routes[route], mpi);
}

/* Why a file cannot be made in this folder, or NULL. */
static const char *folder_fault(const char *folder)
{
    struct stat facts;

    if (stat(folder, &facts) != 0) {
        return strerror(errno);
    }
    if (!S_ISDIR(facts.st_mode)) {
        return strerror(ENOTDIR);
    }
    return (access(folder, W_OK | X_OK) != 0) ? strerror(errno) : NULL;
}

/* Each rank writes its own file there. */
static void warn_of_dump_dir(void)
{
    const char *folder = xc_params()->dump_dir;
    const char *fault = (folder != NULL) ? folder_fault(folder) : NULL;

    if ((fault != NULL) && xc_first_of_node()) {
        xc_warn(
            "XCCL_DUMP_DIR=%.900s: %s; on an error or a time-out the last operations of the ranks "
            "of this node are lost",
            folder, fault);
    }
}

/* Rank 0 writes it in MPI_Finalize. */
static void warn_of_profile(void)
{
    char        path[PATH_MAX], folder[PATH_MAX];
    struct stat facts;

    if (xc_params()->profile_file == NULL) {
        return;
    }
    xc_expand_file_name(xc_params()->profile_file, path, sizeof(path));
    snprintf(folder, sizeof(folder), "%s", path);
    const char *fault = folder_fault(dirname(folder));
    if ((fault == NULL) && (stat(path, &facts) == 0) && S_ISDIR(facts.st_mode)) {
        fault = strerror(EISDIR);
    }
    if (fault != NULL) {
        xc_warn("XCCL_PROFILE=%.900s: %s; MPI_Finalize prints the table, but cannot write the file",
                path, fault);
    }
}

/* xccl-run refuses such a name, but sees not what is set behind it. */
static void warn_of_site(void)
{
    char folder[PATH_MAX + 8];

    if (xm_tables_lack_site(folder, sizeof(folder))) {
        xc_warn("XCCL_SITE=%s: no such site in %s, so its tuning tables are not in force; "
                "correct the name, or unset it",
                xc_params()->site, folder);
    }
}

void xm_announce(void)
{
    char mpi[128];
    int  size = 0, rank = 0;

    warn_of_dump_dir();
    if ((xm_pmpi.Comm_size(XM_HANDLE(MPI_COMM_WORLD), &size) != MPI_SUCCESS) ||
        (xm_pmpi.Comm_rank(XM_HANDLE(MPI_COMM_WORLD), &rank) != MPI_SUCCESS) || (rank != 0)) {
        return;
    }
    xm_mpi_name(mpi, sizeof(mpi));
    if (xc_log_enabled(XC_LOG_INFO) && !xm_config.faulty) {
        say_active(mpi, size);
    }
    warn_of_awareness(mpi);
    warn_of_ucc(mpi);
    warn_of_profile();
    warn_of_site();
    warn_if_alone(mpi, size);
}
