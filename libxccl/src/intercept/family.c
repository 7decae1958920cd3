/* SPDX-License-Identifier: BSD-3-Clause */
/* What libxccl-mpi.so opens for this MPI family: start, end, and the table of entry points. */
#include <pthread.h>

#include <xccl/xccl_mpi.h>

#include "base/log.h"
#include "base/params.h"
#include "intercept/entries.h"
#include "intercept/entry.h"
#include "intercept/memory.h"
#include "intercept/types.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool            started; /* atomic */

/* With MPI initialised. A fault of the environment is kept for MPI_Init to report. */
static void start(void)
{
    const struct xc_params *params = xc_params();
    int                     rank;

    if (xm_pmpi.Comm_rank(XM_HANDLE(MPI_COMM_WORLD), &rank) == MPI_SUCCESS) {
        xc_log_set_rank(rank);
    }
    xm_types_init();
    xm_config.check = (params->check != 0);
    if (xc_params_error() != NULL) {
        xc_fail(xcclInvalidArgument, "%s", xc_params_error());
        xm_config.faulty = true;
    } else if ((params->tune != NULL) &&
               (xm_table_parse("XCCL_TUNE", params->tune, &xm_config.tune) != xcclSuccess)) {
        xm_config.faulty = true;
    } else if (xm_table_parse("built-in table", xm_table_builtin(), &xm_config.table) !=
               xcclSuccess) {
        xm_config.faulty = true;
    }
}

/* Fortran's MPI_Init may pass us by, so any entry may be the first. */
static void start_once(bool report)
{
    int initialized = 0;

    if ((xm_pmpi.Initialized(&initialized) != MPI_SUCCESS) || !initialized) {
        return;
    }
    pthread_mutex_lock(&lock);
    bool first = !__atomic_load_n(&started, __ATOMIC_ACQUIRE);
    if (first) {
        start();
        __atomic_store_n(&started, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    if (first && xm_config.faulty && !report) {
        xm_raise(XM_HANDLE(MPI_COMM_WORLD), xcclInvalidArgument, xc_last_detail());
    }
}

bool xm_started(void)
{
    if (__builtin_expect(!__atomic_load_n(&started, __ATOMIC_ACQUIRE), 0)) {
        start_once(false);
    }
    return __atomic_load_n(&started, __ATOMIC_RELAXED);
}

static int after_init(int res)
{
    if (res != MPI_SUCCESS) {
        return res;
    }
    start_once(true);
    return xm_config.faulty
               ? xm_raise(XM_HANDLE(MPI_COMM_WORLD), xcclInvalidArgument, xc_last_detail())
               : res;
}

int xm_MPI_Init(int *argc, char ***argv)
{
    return after_init(xm_pmpi.Init(argc, argv));
}

int xm_MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    return after_init(xm_pmpi.Init_thread(argc, argv, required, provided));
}

int xm_MPI_Finalize(void)
{
    /* Here and not in a destructor: the vendor's library and the driver must still be alive. */
    if (__atomic_load_n(&started, __ATOMIC_ACQUIRE)) {
        xm_comms_finalize();
        xm_memory_finalize();
        xm_table_free(xm_config.tune);
        xm_table_free(xm_config.table);
        xm_config = (struct xm_config){.faulty = true};
    }
    return xm_pmpi.Finalize();
}

static xcclResult_t xm_xcclCommInitMPI(xcclComm_t *comm_p, MPI_Comm mpi_comm)
{
    const struct xc_device_ops *dev;
    int                         device = -1, inter = 0;

    if (comm_p == NULL) {
        return xc_fail(xcclInvalidArgument, "xcclCommInitMPI: comm_p is NULL");
    }
    if (!xm_started()) {
        return xc_fail(xcclInvalidUsage, "xcclCommInitMPI: MPI is not initialised");
    }
    if ((mpi_comm == XM_HANDLE(MPI_COMM_NULL)) ||
        (xm_pmpi.Comm_test_inter(mpi_comm, &inter) != MPI_SUCCESS) || inter) {
        return xc_fail(xcclInvalidArgument, "xcclCommInitMPI: not an intracommunicator");
    }
    dev = xc_device_active();
    if (dev != NULL) {
        dev->current(&device);
    }
    return xm_comm_create(mpi_comm, dev, device, comm_p);
}

static int open_mpi(void *libmpi)
{
    if (xm_mpi_open(libmpi) != xcclSuccess) {
        xc_params(); /* sets the log up */
        xc_warn("calls go to MPI alone: %s", xc_last_detail());
        return 1;
    }
    return 0;
}

#define SLOT(function) ((void (*)(void))(function))
#define ROW(name, ...) [XM_ENTRY_MPI_##name] = SLOT(xm_MPI_##name),

XCCL_EXPORT extern const struct xm_family xccl_mpi_family;
const struct xm_family                    xccl_mpi_family = {
                       .abi = XM_FAMILY_ABI,
                       .name = XM_OPENMPI ? "openmpi" : "mpich",
                       .open = open_mpi,
                       .entries =
        {
            XM_PMPI_COLLECTIVES(ROW) XM_PMPI_LARGE(ROW) ROW(Init) ROW(Init_thread)
                ROW(Finalize)[XM_ENTRY_xcclCommInitMPI] = SLOT(xm_xcclCommInitMPI),
            [XM_ENTRY_xccl_mpi_last_path] = SLOT(xm_last_path),
        },
};
