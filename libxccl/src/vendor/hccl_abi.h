/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The binary interface of HCCL as far as xccl uses it. Numbers were read in hccl.h and hccl_types.h
 * of HCCL 2.6.4. Enumerations are passed as int, streams as void *.
 */
#ifndef XC_VENDOR_HCCL_ABI_H
#define XC_VENDOR_HCCL_ABI_H

#include <stddef.h>

#define XC_HCCL_ID_BYTES 1032
typedef struct {
    unsigned char internal[1024];
    size_t        length;
} xc_hccl_id_t; /* passed by value */
#if __SIZEOF_POINTER__ == 8
_Static_assert(sizeof(xc_hccl_id_t) == XC_HCCL_ID_BYTES, "hcclUniqueId");
#endif

typedef void *xc_hccl_comm_t;

enum {
    XC_HCCL_SUCCESS = 0,
    XC_HCCL_NO_DEVICE_FOUND = 1,
    XC_HCCL_UNSUPPORTED = 2,
    XC_HCCL_OUT_OF_MEMORY = 3,
    XC_HCCL_UNHANDLED_SYNAPSE_ERROR = 4,
    XC_HCCL_SYSTEM_ERROR = 5,
    XC_HCCL_INTERNAL_ERROR = 6,
    XC_HCCL_INVALID_ARGUMENT = 7,
    XC_HCCL_INVALID_USAGE = 8,
    XC_HCCL_SOCKET_ERROR = 9,
    XC_HCCL_LIBFABRIC_ERROR = 10,
    XC_HCCL_TRY_AGAIN = 11,
    XC_HCCL_BUSY = 12,
    XC_HCCL_STREAM_ERROR = 14,
    XC_HCCL_SYNAPSE_TERMINATED = 15,
    XC_HCCL_PORT_DOWN = 16,
    XC_HCCL_NUM_RESULTS = 17,
};

/* Minimum and maximum are not in NCCL's order. */
enum { XC_HCCL_SUM = 0, XC_HCCL_MIN = 2, XC_HCCL_MAX = 3 };

/* X(field, symbol, return type, parameters) */
#define XC_HCCL_REQUIRED(X)                                                                        \
    X(get_version, hcclGetVersion, int, (int *version))                                            \
    X(get_unique_id, hcclGetUniqueId, int, (xc_hccl_id_t * id))                                    \
    X(comm_init_rank, hcclCommInitRank, int,                                                       \
      (xc_hccl_comm_t * comm, int nranks, xc_hccl_id_t id, int rank))                              \
    X(comm_destroy, hcclCommDestroy, int, (xc_hccl_comm_t comm))                                   \
    X(comm_get_async_error, hcclCommGetAsyncError, int, (xc_hccl_comm_t comm, int *error))         \
    X(comm_count, hcclCommCount, int, (xc_hccl_comm_t comm, int *count))                           \
    X(comm_user_rank, hcclCommUserRank, int, (xc_hccl_comm_t comm, int *rank))                     \
    X(comm_syn_device, hcclCommSynDevice, int, (xc_hccl_comm_t comm, int *device))                 \
    X(get_error_string, hcclGetErrorString, const char *, (int result))                            \
    X(all_reduce, hcclAllReduce, int,                                                              \
      (const void *send, void *recv, size_t count, int type, int op, xc_hccl_comm_t comm,          \
       void *stream))                                                                              \
    X(broadcast, hcclBroadcast, int,                                                               \
      (const void *send, void *recv, size_t count, int type, int root, xc_hccl_comm_t comm,        \
       void *stream))                                                                              \
    X(reduce, hcclReduce, int,                                                                     \
      (const void *send, void *recv, size_t count, int type, int op, int root,                     \
       xc_hccl_comm_t comm, void *stream))                                                         \
    X(reduce_scatter, hcclReduceScatter, int,                                                      \
      (const void *send, void *recv, size_t recvcount, int type, int op, xc_hccl_comm_t comm,      \
       void *stream))                                                                              \
    X(all_gather, hcclAllGather, int,                                                              \
      (const void *send, void *recv, size_t sendcount, int type, xc_hccl_comm_t comm,              \
       void *stream))                                                                              \
    X(all_to_all, hcclAlltoAll, int,                                                               \
      (const void *send, void *recv, size_t count, int type, xc_hccl_comm_t comm, void *stream))   \
    X(send, hcclSend, int,                                                                         \
      (const void *send, size_t count, int type, int peer, xc_hccl_comm_t comm, void *stream))     \
    X(recv, hcclRecv, int,                                                                         \
      (void *recv, size_t count, int type, int peer, xc_hccl_comm_t comm, void *stream))           \
    X(group_start, hcclGroupStart, int, (void))                                                    \
    X(group_end, hcclGroupEnd, int, (void))
#define XC_HCCL_OPTIONAL(X)                                                                        \
    X(comm_finalize, hcclCommFinalize, int, (xc_hccl_comm_t comm))                                 \
    X(get_last_error, hcclGetLastErrorMessage, const char *, (void))

struct xc_hccl_fns {
#define XC_HCCL_FIELD(field, symbol, ret, params) ret(*field) params;
    XC_HCCL_REQUIRED(XC_HCCL_FIELD)
    XC_HCCL_OPTIONAL(XC_HCCL_FIELD)
#undef XC_HCCL_FIELD
};

#endif
