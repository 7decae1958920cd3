/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory and operations of the user's own. */
#include <string.h>

#include "api/comm.h"
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

xcclResult_t xcclRedOpCreatePreMulSum(xcclRedOp_t *op_p, void *scalar, xcclDataType_t datatype,
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

xcclResult_t xcclRedOpDestroy(xcclRedOp_t op, xcclComm_t comm)
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
