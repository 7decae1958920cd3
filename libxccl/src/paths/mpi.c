/* SPDX-License-Identifier: BSD-3-Clause */
/* MPI serves the call as it is. */
#include <stdio.h>

#include "base/log.h"
#include "paths/path.h"

xcclResult_t xm_op_fail(struct xm_op *op, xcclResult_t res)
{
    snprintf(op->detail, sizeof(op->detail), "%s", xc_last_detail());
    return res;
}

static xcclResult_t start(struct xm_op *op)
{
    if (op->blocking) {
        op->code = xm_call_mpi(&op->call);
        return xcclSuccess;
    }
    op->code = xm_call_mpi_start(&op->call, op->call.sendbuf, op->call.recvbuf, &op->inner);
    return xcclSuccess;
}

static xcclResult_t progress(struct xm_op *op)
{
    int over = 1;

    if (!op->blocking && (op->code == MPI_SUCCESS)) {
        op->code = xm_pmpi.Test(&op->inner, &over, MPI_STATUS_IGNORE);
    }
    return (over || (op->code != MPI_SUCCESS)) ? xcclSuccess : xcclInProgress;
}

static void release(struct xm_op *op, bool failed)
{
    (void)op;
    (void)failed;
}

const struct xm_path xm_path_mpi = {"mpi", start, progress, release, false};
