/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every library that xccl knows, a row each. What a row says was read in the library's public
 * header or source; docs/reference/libraries.md says of which version, and what was tried.
 */
#include "vendor/vendor.h"

/* The forks keep NCCL's file name. Those that run algorithms of their own have one of these. */
static const char *const msccl_marks[] = {"mscclLoadAlgo", "ncclCustomCollective", NULL};

/* An abort that succeeds and does nothing, and a device that is the rank, are among them. */
static const char *const mscclpp_hollow[] = {
    "ncclAllToAll",     "ncclAllToAllv",          "ncclRedOpCreatePreMulSum",
    "ncclRedOpDestroy", "ncclCommWindowRegister", "ncclCommWindowDeregister",
    "ncclCommAbort",    "ncclCommCuDevice",       NULL};

static const struct xc_vendor_row rows[XC_NUM_ROWS] = {
    /* Before 2.10 nccl.h knew bfloat16 only in forks; float8 came with 2.24, in RCCL with 2.20. */
    [XC_ROW_NCCL] =
        {
            .name = "nccl",
            .soname = "libnccl.so.2",
            .device = "cuda",
            .id_bytes = XC_NCCL_ID_BYTES,
            .min_version = 2700,
            .type_since =
                {[xcclBfloat16] = 21000, [xcclFloat8e4m3] = 22400, [xcclFloat8e5m2] = 22400},
            .op_since = {[xcclAvg] = 21000},
        },
    [XC_ROW_RCCL] =
        {
            .name = "rccl",
            .soname = "librccl.so.1",
            .device = "rocm",
            .id_bytes = XC_NCCL_ID_BYTES,
            .min_version = 2700,
            .type_since = {[xcclFloat8e4m3] = 22005, [xcclFloat8e5m2] = 22005},
            .op_since = {[xcclAvg] = 21000},
        },
    /* float8 only where it was built for that, under numbers of its own. */
    [XC_ROW_MSCCL] =
        {
            .name = "msccl",
            .soname = "libnccl.so.2",
            .device = "cuda",
            .marks = msccl_marks,
            .id_bytes = XC_NCCL_ID_BYTES,
            .min_version = 2700,
            .type_since =
                {[xcclBfloat16] = 21000, [xcclFloat8e4m3] = XC_NEVER, [xcclFloat8e5m2] = XC_NEVER},
            .op_since = {[xcclAvg] = 21000},
        },
    /*
     * Its own algorithms add up or take the minimum, on one node. It ends the process at any other
     * datatype and fails at any other operation before NCCL would be asked, which does the rest.
     */
    [XC_ROW_MSCCLPP] =
        {
            .name = "mscclpp",
            .soname = "libmscclpp_nccl.so.0",
            .device = "cuda",
            .variable = "MSCCLPP_NCCL_LIB_PATH",
            .remedy = "the path of NCCL's libnccl.so.2, which does for MSCCL++ what it lacks: "
                      "broadcast, reduce, reduce_scatter, send, recv, several nodes",
            .hollow = mscclpp_hollow,
            .id_bytes = XC_NCCL_ID_BYTES,
            .min_version = 900,
            .type_since = {[xcclInt8] = XC_NEVER,
                           [xcclInt64] = XC_NEVER,
                           [xcclUint64] = XC_NEVER,
                           [xcclFloat64] = XC_NEVER,
                           [xcclFloat8e4m3] = XC_NEVER,
                           [xcclFloat8e5m2] = XC_NEVER},
            .op_since = {[xcclProd] = XC_NEVER, [xcclMax] = XC_NEVER, [xcclAvg] = XC_NEVER},
        },
    /* Its plugin for host memory has no average; of the one for devices nobody here knows. */
    [XC_ROW_ONECCL] =
        {
            .name = "oneccl",
            .soname = "libccl.so.2",
            .device = "sycl",
            .id_bytes = XC_ONECCL_ID_BYTES,
            .min_version = XC_ONECCL_MIN_VERSION,
            .type_since = {[xcclFloat8e4m3] = XC_NEVER, [xcclFloat8e5m2] = XC_NEVER},
            .op_since = {[xcclAvg] = XC_NEVER},
        },
    /*
     * Gaudi 2 and 3. Its entry points take five types; a product or an average becomes a sum. Of
     * what the first Gaudi reduced the published measurements name float32 alone.
     */
    [XC_ROW_HCCL] =
        {
            .name = "hccl",
            .soname = "libSynapse.so",
            .device = "hpu",
            .id_bytes = XC_HCCL_ID_BYTES,
            .min_version = XC_HCCL_MIN_VERSION,
            .type_since = {[xcclInt8] = XC_NEVER,
                           [xcclUint8] = XC_NEVER,
                           [xcclInt64] = XC_NEVER,
                           [xcclUint64] = XC_NEVER,
                           [xcclFloat64] = XC_NEVER,
                           [xcclFloat8e4m3] = XC_NEVER,
                           [xcclFloat8e5m2] = XC_NEVER},
            .op_since = {[xcclProd] = XC_NEVER, [xcclAvg] = XC_NEVER},
            .only_moved = (1u << xcclInt32) | (1u << xcclUint32) | (1u << xcclFloat16),
        },
};

bool xc_vendor_has_type(const struct xc_vendor_row *row, int version, xcclDataType_t type)
{
    return (row != NULL) && ((unsigned)type < xcclNumTypes) && (version >= row->type_since[type]);
}

const struct xc_vendor_row *xc_vendor_rows(void)
{
    return rows;
}

xcclResult_t xc_vendor_probe(const struct xc_vendor_row *row, struct xc_vendor_lib *lib_p,
                             int *version_p)
{
    struct xc_nccl_lib   nccl;
    struct xc_oneccl_lib oneccl;
    struct xc_hccl_lib   hccl;
    xcclResult_t         rc;

    if (row == &rows[XC_ROW_HCCL]) {
        rc = xc_hccl_open(NULL, &hccl);
        if (rc == xcclSuccess) {
            *lib_p = hccl.file;
            *version_p = hccl.version;
        }
        return rc;
    }
    if (row == &rows[XC_ROW_ONECCL]) {
        rc = xc_oneccl_open(NULL, &oneccl);
        if (rc == xcclSuccess) {
            *lib_p = oneccl.file;
            *version_p = oneccl.version;
        }
        return rc;
    }
    rc = xc_nccl_open(row, NULL, true, &nccl);
    if (rc == xcclSuccess) {
        *lib_p = nccl.file;
        *version_p = nccl.version;
    }
    return rc;
}
