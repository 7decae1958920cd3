/* SPDX-License-Identifier: BSD-3-Clause */
/* What the vendors' libraries reduce of all that the kernels do: both mean the same by it. */
#include "data/reduction.h"

#include <xccl/xccl.h>

#include "data/kernel_reduction.h"
#include "kernels/operations.h"

enum { NONE = -1 };

static int vendor_op(uint32_t op)
{
    switch (op) {
    case XK_SUM:
        return xcclSum;
    case XK_PROD:
        return xcclProd;
    case XK_MAX:
        return xcclMax;
    case XK_MIN:
        return xcclMin;
    default:
        return NONE;
    }
}

static int vendor_type(uint32_t type)
{
    switch (type) {
    case XK_INT8:
        return xcclInt8;
    case XK_UINT8:
        return xcclUint8;
    case XK_INT32:
        return xcclInt32;
    case XK_UINT32:
        return xcclUint32;
    case XK_INT64:
        return xcclInt64;
    case XK_UINT64:
        return xcclUint64;
    case XK_FLOAT32:
    case XK_COMPLEX32:
        return xcclFloat32;
    case XK_FLOAT64:
    case XK_COMPLEX64:
        return xcclFloat64;
    default:
        return NONE;
    }
}

const char *xm_reduction_of(MPI_Datatype type, MPI_Op op, struct xm_reduction *reduction_p)
{
    struct xm_kernel_reduction kernel;
    const char                *reason = xm_kernel_reduction_of(type, op, &kernel);

    if (reason != NULL) {
        return reason;
    }
    uint32_t elements = XK_TYPE_OF(kernel.what);
    int      as_type = vendor_type(elements), as_op = vendor_op(XK_OP_OF(kernel.what));
    if (XK_OP_OF(kernel.what) == XK_SUM_CHECKED) {
        return "sum that this MPI carries out otherwise where it leaves the type's range";
    }
    bool complex = (elements == XK_COMPLEX32) || (elements == XK_COMPLEX64);
    if (as_op == NONE) {
        return "operation that the vendors' libraries lack";
    }
    if (as_type == NONE) {
        return "type that the vendors' libraries do not reduce";
    }
    if (complex && (as_op != xcclSum)) {
        return "product of complex numbers";
    }
    *reduction_p = (struct xm_reduction){.type = (xcclDataType_t)as_type,
                                         .op = (xcclRedOp_t)as_op,
                                         .factor = complex ? 2 : 1,
                                         .integer = kernel.tried};
    return NULL;
}
