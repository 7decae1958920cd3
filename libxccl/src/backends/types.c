/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and sizes of what the API enumerates. */
#include "backends/backend.h"

static const struct {
    const char *name;
    size_t      size;
} types[xcclNumTypes] = {
    [xcclInt8] = {"int8", 1},
    [xcclUint8] = {"uint8", 1},
    [xcclInt32] = {"int32", 4},
    [xcclUint32] = {"uint32", 4},
    [xcclInt64] = {"int64", 8},
    [xcclUint64] = {"uint64", 8},
    [xcclFloat16] = {"float16", 2},
    [xcclFloat32] = {"float32", 4},
    [xcclFloat64] = {"float64", 8},
    [xcclBfloat16] = {"bfloat16", 2},
    [xcclFloat8e4m3] = {"float8e4m3", 1},
    [xcclFloat8e5m2] = {"float8e5m2", 1},
};

static const char *const ops[xcclNumOps] = {
    [xcclSum] = "sum", [xcclProd] = "prod", [xcclMax] = "max", [xcclMin] = "min", [xcclAvg] = "avg",
};

static const char *const colls[XC_NUM_COLLS] = {
    [XC_ALLREDUCE] = "allreduce", [XC_BROADCAST] = "broadcast",
    [XC_REDUCE] = "reduce",       [XC_REDUCE_SCATTER] = "reduce_scatter",
    [XC_ALLGATHER] = "allgather", [XC_ALLGATHERV] = "allgatherv",
    [XC_ALLTOALL] = "alltoall",   [XC_ALLTOALLV] = "alltoallv",
    [XC_GATHER] = "gather",       [XC_GATHERV] = "gatherv",
    [XC_SCATTER] = "scatter",     [XC_SCATTERV] = "scatterv",
    [XC_SEND] = "send",           [XC_RECV] = "recv",
};

size_t xc_type_size(xcclDataType_t type)
{
    return ((unsigned)type < xcclNumTypes) ? types[type].size : 0;
}

const char *xc_type_name(xcclDataType_t type)
{
    return ((unsigned)type < xcclNumTypes) ? types[type].name : NULL;
}

const char *xc_op_name(xcclRedOp_t op)
{
    return ((unsigned)op < xcclNumOps) ? ops[op] : NULL;
}

const char *xc_coll_name(enum xc_coll coll)
{
    return ((unsigned)coll < XC_NUM_COLLS) ? colls[coll] : NULL;
}

bool xc_coll_reduces(enum xc_coll coll)
{
    return (coll == XC_ALLREDUCE) || (coll == XC_REDUCE) || (coll == XC_REDUCE_SCATTER);
}
