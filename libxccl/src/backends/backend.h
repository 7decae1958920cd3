/* SPDX-License-Identifier: BSD-3-Clause */
/* One ops table per library family; api/ checks arguments and calls through it. */
#ifndef XC_BACKENDS_BACKEND_H
#define XC_BACKENDS_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xccl/xccl.h>

#include "base/log.h"

/* Every collective and point-to-point call of the API. */
enum xc_coll {
    XC_ALLREDUCE,
    XC_BROADCAST,
    XC_REDUCE,
    XC_REDUCE_SCATTER,
    XC_ALLGATHER,
    XC_ALLGATHERV,
    XC_ALLTOALL,
    XC_ALLTOALLV,
    XC_GATHER,
    XC_GATHERV,
    XC_SCATTER,
    XC_SCATTERV,
    XC_SEND,
    XC_RECV,
    XC_NUM_COLLS
};

/* Arguments of any call; fields that a call does not have are zero. Counts are in elements. */
struct xc_coll_args {
    enum xc_coll   coll;
    const void    *sendbuff;
    void          *recvbuff;
    size_t         count;      /* the call's single count (send, receive or both) */
    const size_t  *sendcounts; /* nranks each, or NULL */
    const size_t  *sdispls;
    const size_t  *recvcounts;
    const size_t  *rdispls; /* NULL in allgatherv: the blocks follow one another */
    xcclDataType_t datatype;
    xcclRedOp_t    op;
    int            root; /* or the peer of send and recv */
    xcclStream_t   stream;
};

struct xc_comm_args {
    int                 nranks;
    int                 rank;
    const char         *id;     /* the vendor's bytes, without xccl's header */
    const xcclConfig_t *config; /* or NULL */
};

/* What one library, once loaded, is. */
struct xc_library {
    const char *name;         /* "nccl", "rccl", "msccl", ... */
    char        path[1024];   /* file it was loaded from */
    char        found_by[64]; /* "already loaded", "XCCL_CCL_LIBRARY", "built-in path", "soname" */
    int         version;      /* its own code */
    size_t      id_bytes;     /* size of its unique id */
    const char *device;       /* "cuda", "rocm": the device layer that it works on */
};

struct xc_backend_ops {
    const char *name; /* "nccl": as in XCCL_CCL=nccl */
    /*
     * Load the library: every needed symbol found, or unloaded again and a failure. Once.
     * exactly: no fork of it either; else lib_p->name says which it turned out to be.
     */
    xcclResult_t (*load)(const char *path, bool exactly, struct xc_library *lib_p);
    bool (*supports_type)(xcclDataType_t type);
    bool (*supports)(enum xc_coll coll, xcclDataType_t type, xcclRedOp_t op);
    /* Is coll the vendor's own call, or composed from grouped send and recv? */
    bool (*native)(enum xc_coll coll);

    xcclResult_t (*get_unique_id)(char *id); /* lib.id_bytes */
    /*
     * comm_p must live as long as the communicator: in a group, or when non-blocking, the vendor
     * writes it after the call has returned (xcclSuccess or xcclInProgress), from another thread.
     */
    xcclResult_t (*comm_create)(const struct xc_comm_args *args, void **comm_p);
    xcclResult_t (*comm_split)(void *comm, int color, int key, const xcclConfig_t *config,
                               void **newcomm_p);
    /* *device_p: -1 where the library does not tell, or has none. */
    xcclResult_t (*comm_info)(void *comm, int *nranks_p, int *rank_p, int *device_p);
    xcclResult_t (*comm_async_error)(void *comm, xcclResult_t *error_p);
    xcclResult_t (*comm_finalize)(void *comm);
    xcclResult_t (*comm_destroy)(void *comm);
    xcclResult_t (*comm_abort)(void *comm);
    const char *(*last_error)(void); /* the vendor's own text, "" if none */
    /* Enqueue; args are checked. Built-in or composed, the caller does not care. */
    xcclResult_t (*collective)(const struct xc_coll_args *args, void *comm, int nranks, int rank);
    xcclResult_t (*redop_create)(xcclRedOp_t *op_p, void *scalar, xcclDataType_t type,
                                 xcclScalarResidence_t residence, void *comm);
    xcclResult_t (*redop_destroy)(xcclRedOp_t op, void *comm);
    xcclResult_t (*group_start)(void);
    xcclResult_t (*group_end)(void);
    /*
     * Of the open group nothing shall be launched, and its end shall fail: a call that the library
     * refuses does that. comm and stream are those of a call in it. NULL: there are no such groups.
     */
    void (*group_spoil)(void *comm, xcclStream_t stream);
    xcclResult_t (*mem_alloc)(void **ptr_p, size_t bytes);
    xcclResult_t (*mem_free)(void *ptr);
    /* NULL: the library has no windows. In a group win_p is written when that ends. */
    xcclResult_t (*window_register)(void *comm, void *buff, size_t bytes, int flags, void **win_p);
    xcclResult_t (*window_deregister)(void *comm, void *win);
};

/*
 * The backend of this process: chosen by XCCL_CCL, loaded at the first call, the same afterwards.
 * A failure is remembered and returned again, with the same detail.
 */
xcclResult_t xc_backend_get(const struct xc_backend_ops **ops_p, const struct xc_library **lib_p);

/*
 * What is known of the library before the first call needs it, as words for a message: switched
 * off, named by a variable, in the process already, or still to be looked for. Opens nothing.
 */
XC_SHARED void xc_backend_outlook(char *buf, size_t len);

/*
 * Does the library of this process reduce elements of type with op in every collective that
 * reduces? True too where no library can be had: whoever makes a communicator finds that out.
 */
XC_SHARED bool xc_backend_reduces(xcclDataType_t type, xcclRedOp_t op);

/*
 * Does it move single bytes? Else words of so many, as bfloat16. True too where no library can be
 * had.
 */
#define XC_WORD_BYTES 2
XC_SHARED bool xc_backend_moves_bytes(void);

/* Does the library of this process work on devices of this runtime ("cuda")? A failure says why. */
XC_SHARED xcclResult_t xc_backend_serves(const char *device);

/* All compiled-in backends, for listings; NULL-terminated. */
const struct xc_backend_ops *const *xc_backend_all(void);

/* Size in bytes of an element; 0 for an invalid type. */
size_t      xc_type_size(xcclDataType_t type);
const char *xc_type_name(xcclDataType_t type); /* "float32"; NULL for an invalid one */
const char *xc_op_name(xcclRedOp_t op);        /* "sum"; NULL for an invalid one */
const char *xc_coll_name(enum xc_coll coll);   /* "allreduce" */
bool        xc_coll_reduces(enum xc_coll coll);

#endif
