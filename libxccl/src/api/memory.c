/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory, windows on it, and operations of the user's own. */
#include <string.h>

#include "api/comm.h"
#include "api/group.h"
#include "backends/backend.h"
#include "base/log.h"

xcclResult_t xcclMemAlloc(void **ptr_p, size_t size)
{
    const struct xc_backend_ops *ops;
    const struct xc_library     *lib;
    void                        *ptr = NULL;

    if (ptr_p == NULL) {
        return xc_fail(xcclInvalidArgument,
                       "xcclMemAlloc: ptr_p is NULL; pass the address of a pointer");
    }
    if (size == 0) {
        *ptr_p = NULL;
        return xcclSuccess;
    }
    xcclResult_t rc = xc_backend_get(&ops, &lib);
    if (rc == xcclSuccess) {
        rc = ops->mem_alloc(&ptr, size);
    }
    if (rc == xcclSuccess) {
        *ptr_p = ptr;
    }
    return rc;
}

xcclResult_t xcclMemFree(void *ptr)
{
    const struct xc_backend_ops *ops;
    const struct xc_library     *lib;

    if (ptr == NULL) {
        return xcclSuccess;
    }
    xcclResult_t rc = xc_backend_get(&ops, &lib);
    return (rc == xcclSuccess) ? ops->mem_free(ptr) : rc;
}

static xcclResult_t window_register(xcclComm_t comm, void *buff, size_t size, xcclWindow_t *win_p,
                                    int winFlags)
{
    static const char call[] = "xcclCommWindowRegister";
    xcclResult_t      rc = xc_comm_check(comm, call);

    if (rc != xcclSuccess) {
        return rc;
    }
    if ((buff == NULL) || (size == 0) || (win_p == NULL)) {
        return xc_fail(xcclInvalidArgument, "%s: %s; pass memory of xcclMemAlloc and its size",
                       call,
                       (buff == NULL)    ? "buff is NULL"
                       : (win_p == NULL) ? "win_p is NULL"
                                         : "size is 0");
    }
    if ((winFlags != XCCL_WIN_DEFAULT) && (winFlags != XCCL_WIN_COLL_SYMMETRIC)) {
        return xc_fail(xcclInvalidArgument,
                       "%s: winFlags is %d, it must be XCCL_WIN_DEFAULT or "
                       "XCCL_WIN_COLL_SYMMETRIC",
                       call, winFlags);
    }
    if (comm->ops->window_register == NULL) {
        return xc_fail(xcclUnsupported, "%s: %s has no windows; NCCL has from 2.27", call,
                       comm->lib->name);
    }
    /* NCCL may succeed without a window, and some versions write nothing then. */
    xcclWindow_t before = *win_p;
    *win_p = NULL;
    rc = comm->ops->window_register(comm->vendor, buff, size, winFlags, (void **)win_p);
    if ((rc != xcclSuccess) && (rc != xcclInProgress)) {
        *win_p = before;
    }
    return rc;
}

xcclResult_t xcclCommWindowRegister(xcclComm_t comm, void *buff, size_t size, xcclWindow_t *win_p,
                                    int winFlags)
{
    return xc_group_note(window_register(comm, buff, size, win_p, winFlags), comm, NULL);
}

static xcclResult_t window_deregister(xcclComm_t comm, xcclWindow_t win)
{
    xcclResult_t rc = xc_comm_check(comm, "xcclCommWindowDeregister");

    if ((rc != xcclSuccess) || (win == NULL)) {
        return rc;
    }
    return comm->ops->window_deregister(comm->vendor, win);
}

xcclResult_t xcclCommWindowDeregister(xcclComm_t comm, xcclWindow_t win)
{
    return xc_group_note(window_deregister(comm, win), NULL, NULL);
}

static xcclResult_t redop_create(xcclRedOp_t *op_p, void *scalar, xcclDataType_t datatype,
                                 xcclScalarResidence_t residence, xcclComm_t comm)
{
    static const char call[] = "xcclRedOpCreatePreMulSum";
    xcclResult_t      rc = xc_comm_check(comm, call);

    if (rc != xcclSuccess) {
        return rc;
    }
    if ((op_p == NULL) || (scalar == NULL)) {
        return xc_fail(xcclInvalidArgument, "%s: %s is NULL", call,
                       (op_p == NULL) ? "op_p" : "scalar");
    }
    if ((residence != xcclScalarDevice) && (residence != xcclScalarHostImmediate)) {
        return xc_fail(xcclInvalidArgument,
                       "%s: residence is %d, it must be xcclScalarDevice or "
                       "xcclScalarHostImmediate",
                       call, (int)residence);
    }
    if (!comm->ops->supports_type(datatype)) {
        return xc_fail(((unsigned)datatype < xcclNumTypes) ? xcclUnsupported : xcclInvalidArgument,
                       "%s: %s has no datatype %d; use another type", call, comm->lib->name,
                       (int)datatype);
    }
    return comm->ops->redop_create(op_p, scalar, datatype, residence, comm->vendor);
}

xcclResult_t xcclRedOpCreatePreMulSum(xcclRedOp_t *op_p, void *scalar, xcclDataType_t datatype,
                                      xcclScalarResidence_t residence, xcclComm_t comm)
{
    return xc_group_note(redop_create(op_p, scalar, datatype, residence, comm), NULL, NULL);
}

static xcclResult_t redop_destroy(xcclRedOp_t op, xcclComm_t comm)
{
    xcclResult_t rc = xc_comm_check(comm, "xcclRedOpDestroy");

    if (rc != xcclSuccess) {
        return rc;
    }
    if ((int)op < xcclNumOps) {
        return xc_fail(xcclInvalidArgument,
                       "xcclRedOpDestroy: %s is built in and cannot be destroyed",
                       (xc_op_name(op) != NULL) ? xc_op_name(op) : "an operation below 0");
    }
    return comm->ops->redop_destroy(op, comm->vendor);
}

xcclResult_t xcclRedOpDestroy(xcclRedOp_t op, xcclComm_t comm)
{
    return xc_group_note(redop_destroy(op, comm), NULL, NULL);
}
