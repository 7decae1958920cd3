/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file xccl.h
 * @brief One C API over the vendors' collective libraries (NCCL, RCCL, MSCCL, HCCL, oneCCL).
 *
 * The dialect is NCCL's with the prefix `xccl`. A program moves over by another header,
 * `<xccl/xccl.h>`, and by changing `nccl` to `xccl` in the names of functions, types and values;
 * the overview of the API (docs/reference/api.md) lists what NCCL has and xccl has not. The library
 * itself is built without any vendor SDK; the vendor's library and the device runtime are opened at
 * run time (see `xccl-info`).
 *
 * Conventions
 *  - Counts are in elements, never bytes, unless a parameter says so.
 *  - A stream is the vendor's own, passed as a pointer: cudaStream_t, CUstream, hipStream_t,
 *    synStreamHandle, or with oneCCL a pointer to a `sycl::queue`.
 *  - All functions but the two that return a text return an ::xcclResult_t; xcclGetLastError()
 *    gives the detail of the calling thread's last failure. Outputs are written only on success.
 *  - Any function may return ::xcclInvalidArgument, for a null pointer or a value out of range, and
 *    what the vendor's library reports. What else a call returns is said there.
 *  - Collectives enqueue on the stream and return; the result is ready when the stream is.
 */
#ifndef XCCL_XCCL_H
#define XCCL_XCCL_H

#include <limits.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef XCCL_EXPORT
#define XCCL_EXPORT __attribute__((visibility("default")))
#endif

#define XCCL_MAJOR 0
#define XCCL_MINOR 1
#define XCCL_PATCH 0
/** Version as one number, NCCL's way: major * 10000 + minor * 100 + patch. */
#define XCCL_VERSION(x, y, z) ((x) * 10000 + (y) * 100 + (z))
#define XCCL_VERSION_CODE XCCL_VERSION(XCCL_MAJOR, XCCL_MINOR, XCCL_PATCH)

/** Result codes. 0 to 8 have NCCL's values and meanings, the rest are xccl's own. */
typedef enum {
    xcclSuccess = 0,
    xcclUnhandledCudaError = 1, /**< The device runtime (CUDA, HIP, ...) failed. */
    xcclSystemError = 2,        /**< The operating system failed: memory, sockets, files. */
    xcclInternalError = 3,      /**< A defect of xccl or of the vendor's library. */
    xcclInvalidArgument = 4,    /**< An argument is out of its range; see the detail. */
    xcclInvalidUsage = 5,       /**< Calls in a wrong order, or two ranks on one device. */
    xcclRemoteError = 6,        /**< Another rank failed or its link broke. */
    xcclInProgress = 7,         /**< A non-blocking call has not ended yet. */
    xcclTimeout = 8,            /**< An operation outlasted its time limit. */
    xcclUnsupported = 64,       /**< Not offered by the library in use; nothing was enqueued. */
    xcclLibraryNotFound = 65,   /**< No usable vendor library; the detail lists what was tried. */
    xcclVersionMismatch = 66    /**< Ranks loaded different vendor libraries or versions. */
} xcclResult_t;
#define xcclUnhandledDeviceError xcclUnhandledCudaError

/** Element types, with NCCL's values. */
typedef enum {
    xcclInt8 = 0,
    xcclChar = 0,
    xcclUint8 = 1,
    xcclInt32 = 2,
    xcclInt = 2,
    xcclUint32 = 3,
    xcclInt64 = 4,
    xcclUint64 = 5,
    xcclFloat16 = 6,
    xcclHalf = 6,
    xcclFloat32 = 7,
    xcclFloat = 7,
    xcclFloat64 = 8,
    xcclDouble = 8,
    xcclBfloat16 = 9,
    xcclFloat8e4m3 = 10, /**< NCCL from 2.24. */
    xcclFloat8e5m2 = 11, /**< NCCL from 2.24. */
    xcclNumTypes = 12
} xcclDataType_t;

/** Reduction operations, with NCCL's values; a backend maps them to its own. */
typedef enum {
    xcclSum = 0,
    xcclProd = 1,
    xcclMax = 2,
    xcclMin = 3,
    xcclAvg = 4,
    xcclNumOps = 5, /**< The least value of an operation made by xcclRedOpCreatePreMulSum(). */
    xcclMaxRedOp = 0x7fffffff
} xcclRedOp_t;

/** Where the scalar of xcclRedOpCreatePreMulSum() is, with NCCL's values. */
typedef enum {
    xcclScalarDevice = 0,       /**< In device memory, read when an operation runs. */
    xcclScalarHostImmediate = 1 /**< In host memory, read before the call returns. */
} xcclScalarResidence_t;

/** Size of a unique id: room for the largest vendor's (4096 bytes) behind a header of xccl's. */
#define XCCL_UNIQUE_ID_BYTES 4224
typedef struct {
    char internal[XCCL_UNIQUE_ID_BYTES];
} xcclUniqueId;

typedef struct xcclComm   *xcclComm_t;
typedef struct xcclWindow *xcclWindow_t;
typedef void              *xcclStream_t;
#define XCCL_COMM_NULL NULL
#define XCCL_SPLIT_NOCOLOR (-1)
#define XCCL_WIN_DEFAULT 0
#define XCCL_WIN_COLL_SYMMETRIC 1
#define XCCL_CONFIG_UNDEF_INT INT_MIN
#define XCCL_CONFIG_UNDEF_PTR NULL

/**
 * Options of a communicator; begin with XCCL_CONFIG_INITIALIZER and set what differs.
 * A field left undefined keeps the vendor's default; a vendor that lacks a field ignores it.
 */
typedef struct {
    size_t      size;           /**< Set by the initializer; do not touch. */
    unsigned    magic;          /**< Set by the initializer; do not touch. */
    unsigned    version;        /**< Set by the initializer; do not touch. */
    int         blocking;       /**< 0: calls may return ::xcclInProgress; 1: they wait. */
    int         cgaClusterSize; /**< Thread blocks per cluster of a kernel, 0 to 8. */
    int         minCTAs;        /**< Least number of thread blocks per kernel. */
    int         maxCTAs;        /**< Largest number of thread blocks per kernel. */
    const char *netName;        /**< Network to use, as "IB" or "Socket". */
    int         splitShare;     /**< 1: a communicator of xcclCommSplit() shares resources. */
} xcclConfig_t;
#define XCCL_API_MAGIC 0xcafebeef
#define XCCL_CONFIG_INITIALIZER                                                                    \
    {sizeof(xcclConfig_t),  XCCL_API_MAGIC,        XCCL_VERSION_CODE,                              \
     XCCL_CONFIG_UNDEF_INT, XCCL_CONFIG_UNDEF_INT, XCCL_CONFIG_UNDEF_INT,                          \
     XCCL_CONFIG_UNDEF_INT, XCCL_CONFIG_UNDEF_PTR, XCCL_CONFIG_UNDEF_INT}

/**
 * @brief Version of xccl itself, as XCCL_VERSION_CODE.
 * @param[out] version_p  Receives the number.
 */
XCCL_EXPORT xcclResult_t xcclGetVersion(int *version_p);

/**
 * @brief Name and version of the vendor library in use; opens it if none is open yet.
 * @param[out] name_p     "nccl", "rccl", "msccl", ...; static storage.
 * @param[out] version_p  Its own version code (22803 for NCCL 2.28.3).
 * @return ::xcclLibraryNotFound where none can be opened.
 */
XCCL_EXPORT xcclResult_t xcclGetBackend(const char **name_p, int *version_p);

/** @brief A short English text for @p result; never NULL. */
XCCL_EXPORT const char *xcclGetErrorString(xcclResult_t result);

/**
 * @brief Detail of the last failure in the calling thread, with cause and remedy.
 * @param[in] comm  May be NULL; then only xccl's own detail is given, else the vendor's too.
 * @return A text valid until the thread's next xccl call; "" when nothing failed.
 */
XCCL_EXPORT const char *xcclGetLastError(xcclComm_t comm);

/**
 * @brief Make the id that one rank hands to all others; valid for one communicator.
 * @param[out] id_p  Holds which library and version made it: ranks that loaded another are refused.
 */
XCCL_EXPORT xcclResult_t xcclGetUniqueId(xcclUniqueId *id_p);

/**
 * @brief Join a communicator of @p nranks on the device current in the calling thread. For oneCCL
 *        on SYCL devices that is what the thread has given to onecclSetDevice(), its own call.
 * @param[in] nranks   At least 1.
 * @param[in] id       From xcclGetUniqueId() of one rank, the same on all.
 * @param[in] rank     0 to nranks - 1, each once.
 * @param[out] comm_p  The communicator; unchanged on failure.
 * @return ::xcclVersionMismatch naming both libraries, ::xcclInvalidUsage for a device used twice.
 * @note Collective and blocking: returns when all ranks have called it.
 */
XCCL_EXPORT xcclResult_t xcclCommInitRank(xcclComm_t *comm_p, int nranks, xcclUniqueId id,
                                          int rank);

/**
 * @brief As xcclCommInitRank(), with options.
 * @param[in] config  NULL for the defaults. With `blocking = 0` the call may return
 *                    ::xcclInProgress with @p comm_p set; poll xcclCommGetAsyncError().
 */
XCCL_EXPORT xcclResult_t xcclCommInitRankConfig(xcclComm_t *comm_p, int nranks, xcclUniqueId id,
                                                int rank, xcclConfig_t *config);

/**
 * @brief Make the communicators of one process that uses several devices, one for each.
 *
 * As a group of xcclCommInitRank(): rank i of @p ndev is on device @p devlist[i]. The device
 * current in the calling thread stays.
 * @param[out] comms   Array of @p ndev communicators; unchanged on failure.
 * @param[in] ndev     At least 1.
 * @param[in] devlist  The devices, or NULL for 0 to @p ndev - 1.
 * @return ::xcclInvalidUsage for a device that is there twice, or where the program has not started
 *         its device runtime.
 */
XCCL_EXPORT xcclResult_t xcclCommInitAll(xcclComm_t *comms, int ndev, const int *devlist);

/**
 * @brief Divide @p comm into communicators of the ranks with equal @p color, ordered by @p key.
 * @param[in] color   Not negative, or XCCL_SPLIT_NOCOLOR for no part; then *newcomm_p is NULL.
 * @param[in] config  NULL inherits the parent's.
 * @return ::xcclUnsupported where the library has no split (HCCL; NCCL before 2.18).
 *         ::xcclInProgress with *newcomm_p set where @p comm does not block: poll
 *         xcclCommGetAsyncError() of either one. Until then no other call may use them.
 * @note Collective over @p comm; no operation may be outstanding on it.
 */
XCCL_EXPORT xcclResult_t xcclCommSplit(xcclComm_t comm, int color, int key, xcclComm_t *newcomm_p,
                                       xcclConfig_t *config);

/** @brief Number of ranks in @p comm. */
XCCL_EXPORT xcclResult_t xcclCommCount(xcclComm_t comm, int *count_p);
/** @brief Rank of the caller in @p comm. */
XCCL_EXPORT xcclResult_t xcclCommUserRank(xcclComm_t comm, int *rank_p);
/** @brief Device of the caller in @p comm, as the device runtime numbers it. */
XCCL_EXPORT xcclResult_t xcclCommCuDevice(xcclComm_t comm, int *device_p);
/** @brief As xcclCommCuDevice(), under a name that belongs to no vendor. */
XCCL_EXPORT xcclResult_t xcclCommDevice(xcclComm_t comm, int *device_p);

/**
 * @brief State of the operations enqueued on @p comm.
 * @param[out] error_p  ::xcclSuccess, ::xcclInProgress, or why they will never complete; then only
 *                      xcclCommAbort() is allowed.
 */
XCCL_EXPORT xcclResult_t xcclCommGetAsyncError(xcclComm_t comm, xcclResult_t *error_p);

/**
 * @brief Complete what is outstanding on @p comm; then only xcclCommDestroy() is allowed. Does
 *        nothing where the library lacks the call.
 */
XCCL_EXPORT xcclResult_t xcclCommFinalize(xcclComm_t comm);
/**
 * @brief Free @p comm after its operations have completed. NULL is allowed.
 * @return ::xcclInvalidUsage where @p comm is not ready yet: it is still there.
 */
XCCL_EXPORT xcclResult_t xcclCommDestroy(xcclComm_t comm);
/**
 * @brief Free @p comm and give up what is outstanding on it. NULL is allowed.
 * @return ::xcclUnsupported where the library cannot (MSCCL++, oneCCL, HCCL): what is outstanding
 *         goes on, and the process is to end.
 */
XCCL_EXPORT xcclResult_t xcclCommAbort(xcclComm_t comm);

/**
 * @brief Reduce @p count elements over all ranks of @p comm; all get the result.
 *
 * @param[in]  sendbuff  Elements to reduce; may equal @p recvbuff (in place).
 * @param[out] recvbuff  Result; must not otherwise overlap @p sendbuff.
 * @param[in]  stream    Vendor stream; NULL is the vendor's default stream.
 * @return ::xcclSuccess, or ::xcclUnsupported with nothing enqueued.
 * @note Collective: count, type and op are the same on every rank.
 */
XCCL_EXPORT xcclResult_t xcclAllReduce(const void *sendbuff, void *recvbuff, size_t count,
                                       xcclDataType_t datatype, xcclRedOp_t op, xcclComm_t comm,
                                       xcclStream_t stream);

/** @brief Copy @p count elements from @p sendbuff of @p root to @p recvbuff of all ranks. */
XCCL_EXPORT xcclResult_t xcclBroadcast(const void *sendbuff, void *recvbuff, size_t count,
                                       xcclDataType_t datatype, int root, xcclComm_t comm,
                                       xcclStream_t stream);
/** @brief In-place broadcast: @p buff is read on @p root and written elsewhere. */
XCCL_EXPORT xcclResult_t xcclBcast(void *buff, size_t count, xcclDataType_t datatype, int root,
                                   xcclComm_t comm, xcclStream_t stream);

/**
 * @brief As xcclAllReduce(), but only @p root gets the result.
 * @param[out] recvbuff  May be NULL on the other ranks.
 */
XCCL_EXPORT xcclResult_t xcclReduce(const void *sendbuff, void *recvbuff, size_t count,
                                    xcclDataType_t datatype, xcclRedOp_t op, int root,
                                    xcclComm_t comm, xcclStream_t stream);

/**
 * @brief Reduce nranks * @p recvcount elements; rank i gets block i.
 * @param[in] sendbuff  nranks * recvcount elements.
 * @note In place when recvbuff == sendbuff + rank * recvcount.
 */
XCCL_EXPORT xcclResult_t xcclReduceScatter(const void *sendbuff, void *recvbuff, size_t recvcount,
                                           xcclDataType_t datatype, xcclRedOp_t op, xcclComm_t comm,
                                           xcclStream_t stream);

/**
 * @brief Gather @p sendcount elements of every rank on all ranks, in rank order.
 * @param[out] recvbuff  nranks * sendcount elements.
 * @note In place when sendbuff == recvbuff + rank * sendcount.
 */
XCCL_EXPORT xcclResult_t xcclAllGather(const void *sendbuff, void *recvbuff, size_t sendcount,
                                       xcclDataType_t datatype, xcclComm_t comm,
                                       xcclStream_t stream);

/**
 * @brief Gather recvcounts[i] elements of every rank i on all ranks, at displs[i] of @p recvbuff.
 * @param[in] recvcounts  nranks counts, the same on every rank; sendcount is recvcounts[rank].
 * @param[in] displs      nranks offsets into @p recvbuff, in elements; they may differ by rank.
 *                        NULL on all ranks or on none: the blocks follow one another. That is
 *                        faster where all counts are equal.
 * @note In place when sendbuff == recvbuff + displs[rank].
 */
XCCL_EXPORT xcclResult_t xcclAllGatherv(const void *sendbuff, size_t sendcount, void *recvbuff,
                                        const size_t recvcounts[], const size_t displs[],
                                        xcclDataType_t datatype, xcclComm_t comm,
                                        xcclStream_t stream);

/**
 * @brief Send block i of @p count elements to rank i, and receive block i from rank i.
 * @note Not in place: @p sendbuff and @p recvbuff must not overlap.
 */
XCCL_EXPORT xcclResult_t xcclAlltoAll(const void *sendbuff, void *recvbuff, size_t count,
                                      xcclDataType_t datatype, xcclComm_t comm,
                                      xcclStream_t stream);
#define xcclAllToAll xcclAlltoAll

/**
 * @brief As xcclAlltoAll(), with a count and a displacement for each rank.
 * @param[in] sendcounts  nranks counts; sendcounts[i] on rank j is recvcounts[j] on rank i.
 * @param[in] sdispls     nranks offsets into @p sendbuff, in elements; likewise @p rdispls.
 */
XCCL_EXPORT xcclResult_t xcclAlltoAllv(const void *sendbuff, const size_t sendcounts[],
                                       const size_t sdispls[], void *recvbuff,
                                       const size_t recvcounts[], const size_t rdispls[],
                                       xcclDataType_t datatype, xcclComm_t comm,
                                       xcclStream_t stream);
#define xcclAllToAllv xcclAlltoAllv

/** @brief Gather @p count elements of every rank on @p root; @p recvbuff may be NULL elsewhere. */
XCCL_EXPORT xcclResult_t xcclGather(const void *sendbuff, void *recvbuff, size_t count,
                                    xcclDataType_t datatype, int root, xcclComm_t comm,
                                    xcclStream_t stream);
/**
 * @brief As xcclGather(), with a count and a displacement for each rank.
 * @param[in] sendcount   Elements of this rank; on @p root it is recvcounts[i] for rank i.
 * @param[in] recvcounts  nranks counts. Only those of @p root are read; elsewhere NULL is allowed.
 * @param[in] displs      nranks offsets into @p recvbuff, in elements; read on @p root only.
 */
XCCL_EXPORT xcclResult_t xcclGatherv(const void *sendbuff, size_t sendcount, void *recvbuff,
                                     const size_t recvcounts[], const size_t displs[],
                                     xcclDataType_t datatype, int root, xcclComm_t comm,
                                     xcclStream_t stream);

/**
 * @brief Rank i gets block i of @p count elements of @p root.
 * @param[in] sendbuff  May be NULL on the other ranks.
 */
XCCL_EXPORT xcclResult_t xcclScatter(const void *sendbuff, void *recvbuff, size_t count,
                                     xcclDataType_t datatype, int root, xcclComm_t comm,
                                     xcclStream_t stream);
/**
 * @brief As xcclScatter(), with a count and a displacement for each rank.
 * @param[in] sendcounts  nranks counts. Only those of @p root are read; elsewhere NULL is allowed.
 * @param[in] displs      nranks offsets into @p sendbuff, in elements; read on @p root only.
 * @param[in] recvcount   Elements of this rank; on @p root it is sendcounts[i] for rank i.
 */
XCCL_EXPORT xcclResult_t xcclScatterv(const void *sendbuff, const size_t sendcounts[],
                                      const size_t displs[], void *recvbuff, size_t recvcount,
                                      xcclDataType_t datatype, int root, xcclComm_t comm,
                                      xcclStream_t stream);

/**
 * @brief Send @p count elements to rank @p peer, which must call xcclRecv() with the same count.
 * @note The stream may wait for the receive: two ranks that send to each other use one group.
 */
XCCL_EXPORT xcclResult_t xcclSend(const void *sendbuff, size_t count, xcclDataType_t datatype,
                                  int peer, xcclComm_t comm, xcclStream_t stream);
/** @brief Receive @p count elements from rank @p peer. */
XCCL_EXPORT xcclResult_t xcclRecv(void *recvbuff, size_t count, xcclDataType_t datatype, int peer,
                                  xcclComm_t comm, xcclStream_t stream);

/** @brief Begin a group: calls up to xcclGroupEnd() are issued as one. Groups nest. */
XCCL_EXPORT xcclResult_t xcclGroupStart(void);
/**
 * @brief End a group. An error of any call in it is returned here too.
 * @note If a call of the group failed on this rank, none of the group's calls is launched, as with
 *       NCCL, whether the library refused it or xccl itself. Other ranks are not told. Collectives
 *       of a communicator of one rank are launched all the same: NCCL does so in the call. MSCCL++,
 *       and HCCL and oneCCL outside of the simulation, may have launched others, too.
 *       Communicators that the group was to make are there or not, as the library decides; destroy
 *       them. A non-blocking communicator with calls in the group may keep the error, as in NCCL:
 *       see xcclCommGetAsyncError().
 */
XCCL_EXPORT xcclResult_t xcclGroupEnd(void);

/**
 * @brief Make an operation that multiplies each rank's elements by @p scalar, then sums.
 * @param[in] scalar    One element of @p datatype, which collectives with the operation must have.
 * @param[out] op_p     Valid for @p comm only.
 * @return ::xcclUnsupported where the library has no such operation (NCCL before 2.11).
 */
XCCL_EXPORT xcclResult_t xcclRedOpCreatePreMulSum(xcclRedOp_t *op_p, void *scalar,
                                                  xcclDataType_t        datatype,
                                                  xcclScalarResidence_t residence, xcclComm_t comm);
/** @brief Free @p op; allowed as soon as the last call with it has returned. */
XCCL_EXPORT xcclResult_t xcclRedOpDestroy(xcclRedOp_t op, xcclComm_t comm);

/**
 * @brief Allocate device memory on the current device, the vendor library's way where it has one
 *        (ncclMemAlloc, fit for registration), else plainly.
 * @param[in] size  Bytes; 0 gives NULL.
 * @note NCCL from 2.19 maps such memory itself: it takes multiples of 2 MiB, and has no handle of
 *       cuIpcGetMemHandle(). MPI messages from and to it are staged, and collectives that do not go
 *       by NCCL copy it.
 */
XCCL_EXPORT xcclResult_t xcclMemAlloc(void **ptr_p, size_t size);
/** @brief Free memory of xcclMemAlloc(). NULL is allowed. */
XCCL_EXPORT xcclResult_t xcclMemFree(void *ptr);

/**
 * @brief Register memory of xcclMemAlloc() with the library, which then reaches that of the other
 *        ranks without a copy of its own.
 * @param[in]  buff      Start of the memory, or a multiple of 4096 bytes behind it.
 * @param[in]  size      Bytes, a multiple of 4096; the same on all ranks.
 * @param[out] win_p     To be given to xcclCommWindowDeregister() before the memory is freed. NULL
 *                       where the library succeeds without registering, as NCCL does where that is
 *                       switched off or of no use.
 * @param[in]  winFlags  XCCL_WIN_DEFAULT, or XCCL_WIN_COLL_SYMMETRIC: every rank uses the same
 *                       offset in the window in every collective, and NCCL has faster kernels
 *                       for that.
 * @return ::xcclUnsupported where the library has no windows (all but NCCL from 2.27).
 * @note Collective over @p comm. In a group *win_p is written by xcclGroupEnd().
 */
XCCL_EXPORT xcclResult_t xcclCommWindowRegister(xcclComm_t comm, void *buff, size_t size,
                                                xcclWindow_t *win_p, int winFlags);
/** @brief Undo xcclCommWindowRegister(). NULL is allowed, and does nothing. */
XCCL_EXPORT xcclResult_t xcclCommWindowDeregister(xcclComm_t comm, xcclWindow_t win);

#ifdef __cplusplus
}
#endif
#endif
