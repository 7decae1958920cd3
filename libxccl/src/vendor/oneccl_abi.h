/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The binary interface of oneCCL's C API as far as xccl uses it. Numbers were compared with
 * oneapi/ccl.h of oneCCL 2022.1 and 2022.2. Enumerations are passed as int, queues as void *.
 */
#ifndef XC_VENDOR_ONECCL_ABI_H
#define XC_VENDOR_ONECCL_ABI_H

#include <stddef.h>

#define XC_ONECCL_ID_BYTES 4096
typedef struct {
    char data[XC_ONECCL_ID_BYTES];
} xc_oneccl_id_t; /* passed by value */

typedef void *xc_oneccl_comm_t;

#define XC_ONECCL_CONFIG_MAGIC 0xcafebeefU

typedef struct {
    size_t      size;
    unsigned    magic;
    unsigned    version;
    int         blocking;
    int         cgaClusterSize;
    int         minCTAs;
    int         maxCTAs;
    const char *netName;
    int         splitShare;
    int         multiThreaded;
    int         plugin; /* 0: any */
} xc_oneccl_config_t;

#if __SIZEOF_POINTER__ == 8
_Static_assert(offsetof(xc_oneccl_config_t, netName) == 32, "onecclConfig_t.netName");
_Static_assert(offsetof(xc_oneccl_config_t, multiThreaded) == 44, "onecclConfig_t.multiThreaded");
_Static_assert(sizeof(xc_oneccl_config_t) == 56, "onecclConfig_t");
#endif

/* Not NCCL's from 6 on. */
enum {
    XC_ONECCL_SUCCESS = 0,
    XC_ONECCL_ERROR = 1,
    XC_ONECCL_SYSTEM_ERROR = 2,
    XC_ONECCL_INTERNAL_ERROR = 3,
    XC_ONECCL_INVALID_ARGUMENT = 4,
    XC_ONECCL_INVALID_USAGE = 5,
    XC_ONECCL_IN_PROGRESS = 6,
    XC_ONECCL_FAILURE_GPU = 7,
    XC_ONECCL_FAILURE_CPU = 8,
    XC_ONECCL_ALLOC_FAILURE_CPU = 9,
    XC_ONECCL_ALLOC_FAILURE_GPU = 10,
    XC_ONECCL_PLUGIN_EXCEPTION = 11,
    XC_ONECCL_NOT_IMPLEMENTED = 12,
    XC_ONECCL_NUM_RESULTS = 13,
};

/* X(field, symbol, return type, parameters). The number of ranks is a size_t, a rank an int. */
#define XC_ONECCL_REQUIRED(X)                                                                      \
    X(get_version, onecclGetVersion, int, (int *version))                                          \
    X(get_unique_id, onecclGetUniqueId, int, (xc_oneccl_id_t * id))                                \
    X(comm_init_rank, onecclCommInitRank, int,                                                     \
      (xc_oneccl_comm_t * comm, size_t nranks, xc_oneccl_id_t id, int rank))                       \
    X(comm_init_rank_config, onecclCommInitRankConfig, int,                                        \
      (xc_oneccl_comm_t * comm, size_t nranks, xc_oneccl_id_t id, int rank,                        \
       const xc_oneccl_config_t *config))                                                          \
    X(comm_split, onecclCommSplit, int,                                                            \
      (xc_oneccl_comm_t comm, int color, int key, xc_oneccl_comm_t *newcomm,                       \
       xc_oneccl_config_t *config))                                                                \
    X(comm_finalize, onecclCommFinalize, int, (xc_oneccl_comm_t comm))                             \
    X(comm_destroy, onecclCommDestroy, int, (xc_oneccl_comm_t comm))                               \
    X(comm_count, onecclCommCount, int, (xc_oneccl_comm_t comm, int *size))                        \
    X(comm_user_rank, onecclCommUserRank, int, (xc_oneccl_comm_t comm, int *rank))                 \
    X(comm_device, onecclCommDevice, int, (xc_oneccl_comm_t comm, int *device))                    \
    X(get_error_string, onecclGetErrorString, const char *, (int result))                          \
    X(get_last_error, onecclGetLastError, const char *, (xc_oneccl_comm_t comm))                   \
    X(all_reduce, onecclAllReduce, int,                                                            \
      (const void *send, void *recv, size_t count, int type, int op, xc_oneccl_comm_t comm,        \
       void *queue))                                                                               \
    X(broadcast, onecclBroadcast, int,                                                             \
      (const void *send, void *recv, size_t count, int type, int root, xc_oneccl_comm_t comm,      \
       void *queue))                                                                               \
    X(reduce, onecclReduce, int,                                                                   \
      (const void *send, void *recv, size_t count, int type, int op, int root,                     \
       xc_oneccl_comm_t comm, void *queue))                                                        \
    X(reduce_scatter, onecclReduceScatter, int,                                                    \
      (const void *send, void *recv, size_t recvcount, int type, int op, xc_oneccl_comm_t comm,    \
       void *queue))                                                                               \
    X(all_gather, onecclAllGather, int,                                                            \
      (const void *send, void *recv, size_t sendcount, int type, xc_oneccl_comm_t comm,            \
       void *queue))                                                                               \
    X(all_to_all, onecclAllToAll, int,                                                             \
      (const void *send, void *recv, size_t count, int type, xc_oneccl_comm_t comm, void *queue))  \
    X(send, onecclSend, int,                                                                       \
      (const void *send, size_t count, int type, int peer, xc_oneccl_comm_t comm, void *queue))    \
    X(recv, onecclRecv, int,                                                                       \
      (void *recv, size_t count, int type, int peer, xc_oneccl_comm_t comm, void *queue))          \
    X(group_start, onecclGroupStart, int, (void))                                                  \
    X(group_end, onecclGroupEnd, int, (void))                                                      \
    X(mem_alloc, onecclMemAlloc, int, (void **ptr, size_t size))                                   \
    X(mem_free, onecclMemFree, int, (void *ptr))                                                   \
    X(red_op_create_pre_mul_sum, onecclRedOpCreatePreMulSum, int,                                  \
      (int *op, void *scalar, int type, int residence, xc_oneccl_comm_t comm))                     \
    X(red_op_destroy, onecclRedOpDestroy, int, (int op, xc_oneccl_comm_t comm))

struct xc_oneccl_fns {
#define XC_ONECCL_FIELD(field, symbol, ret, params) ret(*field) params;
    XC_ONECCL_REQUIRED(XC_ONECCL_FIELD)
#undef XC_ONECCL_FIELD
};

#endif
