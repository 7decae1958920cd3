/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The binary interface of the NCCL family (NCCL, RCCL, MSCCL) as far as xccl uses it.
 *
 * Declared here rather than taken from a vendor's header: the library is built without any vendor
 * SDK, and one build serves every version. Numbers were compared with nccl.h of NCCL 2.14.3,
 * 2.18.1, 2.24.3, 2.28.3 and 2.32.3. Enumerations are passed as int, streams as void *.
 */
#ifndef XC_VENDOR_NCCL_ABI_H
#define XC_VENDOR_NCCL_ABI_H

#include <stddef.h>

#define XC_NCCL_ID_BYTES 128
typedef struct {
    char internal[XC_NCCL_ID_BYTES];
} xc_nccl_id_t; /* passed by value */

typedef void *xc_nccl_comm_t;

#define XC_NCCL_CONFIG_MAGIC 0xcafebeefU

/*
 * Configuration of a communicator. Fields were only ever appended; `size` and `version` tell the
 * library how far the caller's structure goes, and it gives the rest their defaults. So one
 * structure serves, with the size and version of the oldest layout that has every field set.
 */
typedef struct {
    size_t      size;
    unsigned    magic;
    unsigned    version;
    int         blocking;       /* 2.14 */
    int         cgaClusterSize; /* 2.17, to netName */
    int         minCTAs;
    int         maxCTAs;
    const char *netName;
    int         splitShare; /* 2.18 */
} xc_nccl_config_t;

#define XC_NCCL_CONFIG_2_14_SIZE 24
#define XC_NCCL_CONFIG_2_17_SIZE 40
#define XC_NCCL_CONFIG_2_18_SIZE 48

#if __SIZEOF_POINTER__ == 8
_Static_assert(offsetof(xc_nccl_config_t, magic) == 8, "ncclConfig_t.magic");
_Static_assert(offsetof(xc_nccl_config_t, version) == 12, "ncclConfig_t.version");
_Static_assert(offsetof(xc_nccl_config_t, blocking) == 16, "ncclConfig_t.blocking");
_Static_assert(offsetof(xc_nccl_config_t, cgaClusterSize) == 20, "ncclConfig_t.cgaClusterSize");
_Static_assert(offsetof(xc_nccl_config_t, minCTAs) == 24, "ncclConfig_t.minCTAs");
_Static_assert(offsetof(xc_nccl_config_t, maxCTAs) == 28, "ncclConfig_t.maxCTAs");
_Static_assert(offsetof(xc_nccl_config_t, netName) == 32, "ncclConfig_t.netName");
_Static_assert(offsetof(xc_nccl_config_t, splitShare) == 40, "ncclConfig_t.splitShare");
_Static_assert(sizeof(xc_nccl_config_t) == XC_NCCL_CONFIG_2_18_SIZE, "ncclConfig_t of 2.18");
#endif
_Static_assert(sizeof(xc_nccl_id_t) == 128, "ncclUniqueId");

/* Results; the same in every version (a version before 2.13 ends at 5, before 2.30 at 7). */
enum {
    XC_NCCL_SUCCESS = 0,
    XC_NCCL_UNHANDLED_CUDA_ERROR = 1,
    XC_NCCL_SYSTEM_ERROR = 2,
    XC_NCCL_INTERNAL_ERROR = 3,
    XC_NCCL_INVALID_ARGUMENT = 4,
    XC_NCCL_INVALID_USAGE = 5,
    XC_NCCL_REMOTE_ERROR = 6,
    XC_NCCL_IN_PROGRESS = 7,
    XC_NCCL_TIMEOUT = 8,
    XC_NCCL_NUM_RESULTS = 9,
};

/*
 * X(field, symbol, first version that has it, return type, parameters). The first version is that
 * of NCCL; RCCL follows it, but had gather, scatter and all-to-all from 2.7.
 */
#define XC_NCCL_REQUIRED(X)                                                                        \
    X(get_version, ncclGetVersion, 20300, int, (int *version))                                     \
    X(get_unique_id, ncclGetUniqueId, 20000, int, (xc_nccl_id_t * id))                             \
    X(comm_init_rank, ncclCommInitRank, 20000, int,                                                \
      (xc_nccl_comm_t * comm, int nranks, xc_nccl_id_t id, int rank))                              \
    X(comm_destroy, ncclCommDestroy, 20000, int, (xc_nccl_comm_t comm))                            \
    X(comm_abort, ncclCommAbort, 20400, int, (xc_nccl_comm_t comm))                                \
    X(comm_get_async_error, ncclCommGetAsyncError, 20400, int, (xc_nccl_comm_t comm, int *error))  \
    X(comm_count, ncclCommCount, 20000, int, (xc_nccl_comm_t comm, int *count))                    \
    X(comm_user_rank, ncclCommUserRank, 20000, int, (xc_nccl_comm_t comm, int *rank))              \
    X(comm_cu_device, ncclCommCuDevice, 20000, int, (xc_nccl_comm_t comm, int *device))            \
    X(get_error_string, ncclGetErrorString, 20000, const char *, (int result))                     \
    X(all_reduce, ncclAllReduce, 20000, int,                                                       \
      (const void *send, void *recv, size_t count, int type, int op, xc_nccl_comm_t comm,          \
       void *stream))                                                                              \
    X(broadcast, ncclBroadcast, 20200, int,                                                        \
      (const void *send, void *recv, size_t count, int type, int root, xc_nccl_comm_t comm,        \
       void *stream))                                                                              \
    X(reduce, ncclReduce, 20000, int,                                                              \
      (const void *send, void *recv, size_t count, int type, int op, int root,                     \
       xc_nccl_comm_t comm, void *stream))                                                         \
    X(reduce_scatter, ncclReduceScatter, 20000, int,                                               \
      (const void *send, void *recv, size_t recvcount, int type, int op, xc_nccl_comm_t comm,      \
       void *stream))                                                                              \
    X(all_gather, ncclAllGather, 20000, int,                                                       \
      (const void *send, void *recv, size_t sendcount, int type, xc_nccl_comm_t comm,              \
       void *stream))                                                                              \
    X(send, ncclSend, 20700, int,                                                                  \
      (const void *send, size_t count, int type, int peer, xc_nccl_comm_t comm, void *stream))     \
    X(recv, ncclRecv, 20700, int,                                                                  \
      (void *recv, size_t count, int type, int peer, xc_nccl_comm_t comm, void *stream))           \
    X(group_start, ncclGroupStart, 20000, int, (void))                                             \
    X(group_end, ncclGroupEnd, 20000, int, (void))

#define XC_NCCL_OPTIONAL(X)                                                                        \
    X(red_op_create_pre_mul_sum, ncclRedOpCreatePreMulSum, 21100, int,                             \
      (int *op, void *scalar, int type, int residence, xc_nccl_comm_t comm))                       \
    X(red_op_destroy, ncclRedOpDestroy, 21100, int, (int op, xc_nccl_comm_t comm))                 \
    X(get_last_error, ncclGetLastError, 21300, const char *, (xc_nccl_comm_t comm))                \
    X(comm_init_rank_config, ncclCommInitRankConfig, 21400, int,                                   \
      (xc_nccl_comm_t * comm, int nranks, xc_nccl_id_t id, int rank, xc_nccl_config_t *config))    \
    X(comm_finalize, ncclCommFinalize, 21400, int, (xc_nccl_comm_t comm))                          \
    X(comm_split, ncclCommSplit, 21800, int,                                                       \
      (xc_nccl_comm_t comm, int color, int key, xc_nccl_comm_t *newcomm,                           \
       xc_nccl_config_t *config))                                                                  \
    X(mem_alloc, ncclMemAlloc, 21900, int, (void **ptr, size_t size))                              \
    X(mem_free, ncclMemFree, 21900, int, (void *ptr))                                              \
    X(window_register, ncclCommWindowRegister, 22700, int,                                         \
      (xc_nccl_comm_t comm, void *buff, size_t size, void **win, int flags))                       \
    X(window_deregister, ncclCommWindowDeregister, 22700, int, (xc_nccl_comm_t comm, void *win))   \
    X(all_to_all, ncclAlltoAll, 22800, int,                                                        \
      (const void *send, void *recv, size_t count, int type, xc_nccl_comm_t comm, void *stream))   \
    X(gather, ncclGather, 22800, int,                                                              \
      (const void *send, void *recv, size_t count, int type, int root, xc_nccl_comm_t comm,        \
       void *stream))                                                                              \
    X(scatter, ncclScatter, 22800, int,                                                            \
      (const void *send, void *recv, size_t count, int type, int root, xc_nccl_comm_t comm,        \
       void *stream))                                                                              \
    X(all_to_allv, ncclAllToAllv, 20708, int,                                                      \
      (const void *send, const size_t sendcounts[], const size_t sdispls[], void *recv,            \
       const size_t recvcounts[], const size_t rdispls[], int type, xc_nccl_comm_t comm,           \
       void *stream))

/* Other spellings of an optional symbol: X(field, symbol, first version). RCCL, forks of NCCL. */
#define XC_NCCL_ALIASES(X) X(all_to_all, ncclAllToAll, 20706)

struct xc_nccl_fns {
#define XC_NCCL_FIELD(field, symbol, since, ret, params) ret(*field) params;
    XC_NCCL_REQUIRED(XC_NCCL_FIELD)
    XC_NCCL_OPTIONAL(XC_NCCL_FIELD)
#undef XC_NCCL_FIELD
};

#endif
