/* SPDX-License-Identifier: BSD-3-Clause */
/* One collective call: made ready, called, compared byte by byte with what it should have done. */
#ifndef XT_COLLS_H
#define XT_COLLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xccl/xccl.h>

enum xt_coll {
    XT_ALLREDUCE,
    XT_BROADCAST,
    XT_BCAST,
    XT_REDUCE,
    XT_REDUCE_SCATTER,
    XT_ALLGATHER,
    XT_ALLGATHERV,
    XT_ALLTOALL,
    XT_ALLTOALLV,
    XT_GATHER,
    XT_GATHERV,
    XT_SCATTER,
    XT_SCATTERV,
    XT_SENDRECV, /* around a ring, grouped */
    XT_NUM_COLLS
};

const char *xt_coll_name(enum xt_coll coll);
bool        xt_reduces(enum xt_coll coll);
bool        xt_can_be_in_place(enum xt_coll coll);

/* Where the calls of one rank take place. */
struct xt_place {
    int            nranks, rank;
    xcclComm_t     comm;
    void          *stream;
    size_t         bytes; /* of each of the following */
    unsigned char *device_send, *device_recv;
    unsigned char *host, *expected;
};

struct xt_case {
    enum xt_coll   coll;
    xcclDataType_t type;
    xcclRedOp_t    op;
    size_t         count;
    int            root;
    bool           in_place;
    bool           default_stream;
    bool           packed; /* allgatherv without displacements */
    uint64_t       seed;
};

void xt_place_open(struct xt_place *place, xcclComm_t comm, int nranks, int rank, size_t bytes);
void xt_place_close(struct xt_place *place);

/* Make ready and call; compare once the stream is done. In between the caller may end a group. */
xcclResult_t xt_case_call(struct xt_place *place, const struct xt_case *c);
bool         xt_case_compare(struct xt_place *place, const struct xt_case *c);

/* "alltoallv float16 count=3 root=1 in place, 5 ranks" */
const char *xt_case_text(const struct xt_place *place, const struct xt_case *c, char *buf,
                         size_t len);

#endif
