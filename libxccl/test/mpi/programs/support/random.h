/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random collectives: what one call is, and how it is drawn, made and compared. All ranks draw the
 * same calls from one seed; what differs by rank comes from the seed and the rank.
 */
#ifndef MT_RANDOM_H
#define MT_RANDOM_H

#include <stdint.h>

#include <mpi.h>

#include "support.h"
#include "types.h"

enum { RX_MAX_RANKS = 16, RX_MAX_PLACES = 16, RX_COMMS = 5, RX_BATCH = 6 };

/* Name of the collective, of its non-blocking form, and its kind of arguments (random_calls.c). */
#define RX_COLLS(X)                                                                                \
    X(ALLREDUCE, Allreduce, Iallreduce)                                                            \
    X(REDUCE, Reduce, Ireduce)                                                                     \
    X(REDUCE_SCATTER, Reduce_scatter, Ireduce_scatter)                                             \
    X(REDUCE_SCATTER_BLOCK, Reduce_scatter_block, Ireduce_scatter_block)                           \
    X(SCAN, Scan, Iscan)                                                                           \
    X(EXSCAN, Exscan, Iexscan)                                                                     \
    X(BCAST, Bcast, Ibcast)                                                                        \
    X(GATHER, Gather, Igather)                                                                     \
    X(GATHERV, Gatherv, Igatherv)                                                                  \
    X(SCATTER, Scatter, Iscatter)                                                                  \
    X(SCATTERV, Scatterv, Iscatterv)                                                               \
    X(ALLGATHER, Allgather, Iallgather)                                                            \
    X(ALLGATHERV, Allgatherv, Iallgatherv)                                                         \
    X(ALLTOALL, Alltoall, Ialltoall)                                                               \
    X(ALLTOALLV, Alltoallv, Ialltoallv)                                                            \
    X(ALLTOALLW, Alltoallw, Ialltoallw)                                                            \
    X(NEIGHBOR_ALLGATHER, Neighbor_allgather, Ineighbor_allgather)                                 \
    X(NEIGHBOR_ALLGATHERV, Neighbor_allgatherv, Ineighbor_allgatherv)                              \
    X(NEIGHBOR_ALLTOALL, Neighbor_alltoall, Ineighbor_alltoall)                                    \
    X(NEIGHBOR_ALLTOALLV, Neighbor_alltoallv, Ineighbor_alltoallv)                                 \
    X(NEIGHBOR_ALLTOALLW, Neighbor_alltoallw, Ineighbor_alltoallw)                                 \
    X(BARRIER, Barrier, Ibarrier)

#define RX_ENUM(NAME, name, iname) RX_##NAME,
enum rx_coll { RX_COLLS(RX_ENUM) RX_REDUCE_LOCAL, RX_NUM_COLLS };

enum rx_mode { RX_REFERENCE, RX_BLOCKING, RX_NONBLOCKING, RX_PERSISTENT };

/* A datatype as places of a predefined one, counted in the extent of that. */
struct rx_type {
    MPI_Datatype          handle;
    const struct mt_type *base;
    const char           *shape;
    int                   per; /* elements of the base type */
    int                   places[RX_MAX_PLACES];
    int                   low, high, extent;
    size_t                size; /* extent of the base in bytes */
};

struct rx_op {
    const char *name;
    MPI_Op      op;
};

struct rx_comm {
    MPI_Comm    comm;
    const char *kind;
    int         rank, size;
    int         num_in, num_out; /* neighbours; without a topology 0 */
    int         in[RX_MAX_RANKS];
    int         out[RX_MAX_RANKS];
};

/* The send or the receive side of a call on this rank: blocks, and the buffer around them. */
struct rx_side {
    int                   blocks;
    const struct rx_type *type[RX_MAX_RANKS];
    MPI_Datatype          types[RX_MAX_RANKS];
    int                   counts[RX_MAX_RANKS];
    int                   displs[RX_MAX_RANKS]; /* in extents; of the w-calls in bytes */
    MPI_Aint              byte_displs[RX_MAX_RANKS];
    enum mt_where         where;
    bool                  null; /* MPI does not look at the buffer, and NULL is passed */
    size_t                bytes;
    size_t                defined; /* what lies behind so many bytes, MPI says nothing about */
    intptr_t              origin;  /* of what is passed, from the buffer's begin */
    char                 *memory;
    char                 *before;
    char                 *expected;
};

struct rx_call {
    long                  number;
    uint64_t              seed;
    enum rx_coll          coll;
    enum rx_mode          mode;
    const struct rx_comm *comm;
    struct rx_comm        where; /* a copy: the communicator may be freed before the call ends */
    const struct mt_type *base;
    struct rx_op          op;
    int                   root;
    int                   units, per_unit;
    bool                  in_place;
    bool                  undefined;           /* MPI says nothing about the receive buffer */
    int                   parts[RX_MAX_RANKS]; /* counts of MPI_Reduce_scatter */
    struct rx_side        send, recv;
    MPI_Request           request;
};

/* What a run can do without, to find the cause of a failure: --without WORD. */
#define RX_FEATURES(X)                                                                             \
    X(STRUCTS, structs)       /* a struct of several types */                                      \
    X(BELOW, below)           /* a type that begins below its address */                           \
    X(DERIVED, derived)       /* any derived type */                                               \
    X(DISPLS, displs)         /* displacements that are negative or far away */                    \
    X(GRAPHS, graphs)         /* a distributed graph instead of the grid */                        \
    X(PERSISTENT, persistent) /* persistent calls */                                               \
    X(IN_PLACE, in_place)     /* MPI_IN_PLACE */                                                   \
    X(USER_OPS, user_ops)     /* operations of the program */

#define RX_FEATURE_BIT(NAME, word) RX_HAS_##NAME,
enum rx_feature { RX_FEATURES(RX_FEATURE_BIT) RX_NUM_FEATURES };

struct rx_options {
    const char *runtime;
    uint64_t    seed;
    long        calls;
    long        from; /* calls before this one are drawn and not made */
    int         threads;
    int         only;     /* a collective, or -1 */
    bool        mixed;    /* each rank draws the kind of memory */
    bool        blocking; /* no other form */
    bool        large;    /* a third of the calls has megabytes */
    bool        crowd;    /* beside many persistent requests */
    bool        verbose;
    bool        without[RX_NUM_FEATURES];
};
extern struct rx_options rx_options;

/* Of mt_next(), and a hash for what several ranks have to know of each other. */
int      rx_below(uint64_t *state, int limit);
uint64_t rx_hash(uint64_t seed, uint64_t a, uint64_t b);

/* random_types.c */
void                  rx_types_make(void);
void                  rx_types_free(void);
const struct rx_type *rx_type_get(const struct mt_type *base, int shape);
const struct rx_type *rx_type_mixed(void);
const struct mt_type *rx_draw_base(uint64_t *state);
void                  rx_draw_reduction(uint64_t *state, int ranks, const struct mt_type **base_p,
                                        const struct rx_type **type_p, struct rx_op *op_p);
enum { RX_SHAPES = 6, RX_UNIT = 12 }; /* every shape's `per` divides RX_UNIT */

/* random_draw.c: everything but the buffers' addresses */
void        rx_draw(struct rx_call *call, const struct rx_comm *comms, int world_rank);
const char *rx_coll_name(enum rx_coll coll);
int         rx_coll_find(const char *name);
void        rx_describe(const struct rx_call *call, char *text, size_t size);

/* random_calls.c: through the MPI library itself, or what is tested in front of it */
int  rx_make(const struct rx_call *call, enum rx_mode mode, char *send, char *recv,
             MPI_Request *request);
bool rx_has_persistent(void);
/* So many persistent broadcasts of an integer, which nobody starts. */
void rx_crowd_make(void *memory, int count, MPI_Request *requests);

/* random_comms.c */
void rx_comm_make(struct rx_comm *comm, int slot, MPI_Comm parent, uint64_t seed);
void rx_comm_free(struct rx_comm *comm);

#endif
