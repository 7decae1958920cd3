/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated collective library, under the NCCL family's names and numbers. Ranks meet in a
 * control region (a nameless shared file); data goes straight from a rank's memory to another's.
 */
#ifndef XS_CCL_CCL_H
#define XS_CCL_CCL_H

#include "core/core.h"

/* ncclResult_t */
enum xs_result {
    XS_SUCCESS = 0,
    XS_DEVICE_ERROR = 1,
    XS_SYSTEM_ERROR = 2,
    XS_INTERNAL_ERROR = 3,
    XS_INVALID_ARGUMENT = 4,
    XS_INVALID_USAGE = 5,
    XS_REMOTE_ERROR = 6,
    XS_IN_PROGRESS = 7,
};

/* ncclDataType_t */
enum xs_type {
    XS_INT8,
    XS_UINT8,
    XS_INT32,
    XS_UINT32,
    XS_INT64,
    XS_UINT64,
    XS_FLOAT16,
    XS_FLOAT32,
    XS_FLOAT64,
    XS_BFLOAT16,
    XS_FLOAT8E4M3,
    XS_FLOAT8E5M2,
    XS_NUM_TYPES
};

/* ncclRedOp_t; from XS_NUM_OPS on: made by the program */
enum xs_op { XS_SUM, XS_PROD, XS_MAX, XS_MIN, XS_AVG, XS_NUM_OPS };

enum xs_coll {
    XS_ALLREDUCE,
    XS_BROADCAST,
    XS_REDUCE,
    XS_REDUCE_SCATTER,
    XS_ALLGATHER,
    XS_ALLTOALL,
    XS_GATHER,
    XS_SCATTER,
    XS_SEND,
    XS_RECV,
};

#define XS_ID_BYTES 128
#define XS_MAX_RANKS 1024
#define XS_MAX_USER_OPS 64
#define XS_RING 8        /* messages between two ranks that are under way at a time */
#define XS_ALGORITHMS 10 /* that connect by themselves: five collectives, small and large */

/* ---- region.c: the control region ---- */

/* Found by everyone in a unique id. */
struct xs_id {
    uint64_t        magic;
    uint64_t        nonce;
    struct xs_place place;
};
_Static_assert(sizeof(struct xs_id) <= XS_ID_BYTES, "an id has 128 bytes");

struct xs_barrier {
    uint32_t arrived;
    uint32_t turn; /* futex */
};

enum xs_life { XS_ABSENT, XS_CLAIMED, XS_JOINED, XS_LEFT, XS_ABORTED };

/* What a rank is about to do; compared and used by all. */
struct xs_post {
    int32_t         coll;
    int32_t         type;
    int32_t         op;
    int32_t         root;
    uint64_t        count;
    uint64_t        number;
    struct xs_place send;
    struct xs_place recv;
    unsigned char   scalar[8]; /* what a premultiplied sum multiplies this rank's elements with */
};

struct xs_slot {
    uint32_t       life; /* enum xs_life */
    int32_t        pid;
    uint64_t       start;
    int32_t        node;
    int32_t        bus;
    int32_t        version;
    int32_t        color; /* split */
    int32_t        key;
    uint32_t       bell;  /* futex: something changed for this rank */
    uint32_t       going; /* it has called finalize, destroy or abort */
    struct xs_id   child; /* split: the new communicator's, by the first of a color */
    struct xs_post post;
} __attribute__((aligned(128)));

enum xs_message_state { XS_MESSAGE_NONE, XS_MESSAGE_POSTED, XS_MESSAGE_TAKEN, XS_MESSAGE_REFUSED };

struct xs_message {
    uint32_t        state; /* enum xs_message_state */
    uint64_t        bytes;
    struct xs_place place;
};

struct xs_region {
    uint64_t          magic;
    uint64_t          nonce;
    uint32_t          nranks; /* 0: nobody came yet */
    uint32_t          joined;
    uint32_t          failed; /* a rank could not make the communicator: nobody can */
    uint32_t          spare;
    struct xs_barrier host;                      /* calls that wait on the host: init, split */
    struct xs_barrier device;                    /* operations on streams */
    uint32_t          algorithms[XS_ALGORITHMS]; /* ranks that came to connect each */
    struct xs_slot    slots[];
    /* behind the slots: struct xs_message [nranks * nranks][XS_RING],
     * then a uint32_t for each sender and receiver: which of them came to connect */
};

struct xs_comm;

/* A new region; the id names it. */
enum xs_result xs_region_make(struct xs_id *id);
/* Map it and take rank's slot; text through xs_problem(). */
enum xs_result xs_region_join(struct xs_comm *comm, const struct xs_id *id);
/* The maker's descriptor, once everyone has joined. */
void               xs_region_close(const struct xs_id *id);
struct xs_message *xs_region_ring(struct xs_comm *comm, int from, int to);
uint32_t          *xs_region_link(struct xs_comm *comm, int from, int to);

/* All ranks; false: the communicator was aborted here meanwhile. */
bool xs_barrier(struct xs_comm *comm, struct xs_barrier *barrier);
/* Sleep until *word is not old, or a while; false: aborted here. Looks for dead peers. */
bool xs_wait(struct xs_comm *comm, uint32_t *word, uint32_t old);
/* Sleep the same way, aborted or not. */
void xs_nap(struct xs_comm *comm, uint32_t *word, uint32_t old);
void xs_wake(uint32_t *word);
void xs_ring_bell(struct xs_comm *comm, int rank);
/* Note a peer that died or gave up: its communicator has a remote error then. */
void xs_look_for_dead(struct xs_comm *comm);
/* Wait until the program aborts the communicator. */
void xs_park(struct xs_comm *comm);
/* Tell the others that this rank has called finalize, destroy or abort. */
void xs_tell_leaving(struct xs_comm *comm);
/* Need a rank that leaves wait no more for the others of its node? */
bool     xs_node_left(const struct xs_comm *comm);
uint64_t xs_now_ms(void);

/* ---- comm.c, leave.c ---- */

struct xs_task;

struct xs_user_op {
    bool          used;
    bool          from_device; /* scalar is an address to read when the operation runs */
    int           type;
    unsigned char scalar[8];
    const void   *address;
};

struct xs_comm {
    uint32_t          magic;
    int               rank;
    int               nranks;
    struct xs_ctx    *ctx;
    uint64_t          ctx_id; /* after a reset the context is another one */
    int               device;
    bool              blocking;
    struct xs_region *region;
    size_t            region_bytes;
    uint32_t          state;      /* atomic; enum xs_result of creation */
    uint32_t          async;      /* atomic; enum xs_result */
    uint32_t          aborted;    /* atomic */
    uint32_t          splitting;  /* atomic; a split that does not wait is under way */
    uint32_t          algorithms; /* atomic; a bit for each that this rank came to connect */
    bool              finalized;
    uint64_t          looked; /* ms: when peers were last looked at */
    uint64_t          posted; /* collectives run so far */
    uint64_t         *sent;   /* messages to each rank */
    uint64_t         *received;
    struct xs_user_op ops[XS_MAX_USER_OPS];
    pthread_mutex_t   lock; /* of the following */
    pthread_cond_t    changed;
    uint64_t          issued;  /* operations enqueued, on whatever stream */
    uint64_t          turn;    /* operations over: they run in the order of issue */
    bool              running; /* one is at it */
    int               users;   /* the program and its operations */
    pthread_t         maker;   /* of a communicator made without blocking */
    bool              making;
    struct xs_comm   *next; /* destroyed ones */
};

XS_API enum xs_result xs_comm_id(struct xs_id *id);
XS_API enum xs_result xs_comm_init(struct xs_comm **comm_p, int nranks, const struct xs_id *id,
                                   int rank, bool blocking);
XS_API enum xs_result xs_comm_init_all(struct xs_comm **comms, int count, const int *devices);
XS_API enum xs_result xs_comm_split(struct xs_comm *comm, int color, int key, int blocking,
                                    struct xs_comm **comm_p);
XS_API enum xs_result xs_comm_finalize(struct xs_comm *comm);
XS_API enum xs_result xs_comm_destroy(struct xs_comm *comm);
XS_API enum xs_result xs_comm_abort(struct xs_comm *comm);
XS_API enum xs_result xs_comm_async_error(struct xs_comm *comm, int *error_p);
XS_API enum xs_result xs_comm_op_create(struct xs_comm *comm, const void *scalar, int type,
                                        int residence, int *op_p);
XS_API enum xs_result xs_comm_op_destroy(struct xs_comm *comm, int op);
/* NULL and garbage are told from a communicator. */
XS_API bool           xs_comm_valid(const struct xs_comm *comm);
XS_API enum xs_result xs_comm_register(struct xs_comm *comm, void *buff, size_t bytes,
                                       void **handle_p);
/* The same, and all ranks wait for each other. */
XS_API enum xs_result xs_comm_register_together(struct xs_comm *comm, void *buff, size_t bytes,
                                                void **handle_p);
XS_API enum xs_result xs_comm_deregister(struct xs_comm *comm, void *handle);

void xs_comm_unuse(struct xs_comm *comm);
/* Success once it was made, and is not being split; else an error with its text. */
XS_API enum xs_result xs_comm_ready(const struct xs_comm *comm);
/* The communicator's asynchronous error and its text, unless another was first. */
void xs_comm_fail(struct xs_comm *comm, enum xs_result error, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Keep the text for ncclGetLastError(), log it, return code. */
XS_API enum xs_result xs_problem(enum xs_result code, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
XS_API const char *xs_last_problem(void);

/* ---- group.c: calls become tasks, tasks go to streams ---- */

struct xs_task {
    struct xs_task   *next;
    struct xs_task   *behind; /* next in the device's queue */
    enum xs_coll      coll;
    struct xs_comm   *comm;
    struct xs_stream *stream;
    const void       *send;
    void             *recv;
    size_t            count;
    int               type;
    int               op;
    int               root; /* or peer */
    uint64_t          ticket;
    bool              hang; /* faults decided when it was called */
    bool              kill;
    bool              async;
    bool              done;
    struct xs_place   send_place;
    struct xs_place   recv_place;
    void             *send_at;
    void             *recv_at;
    void             *bounce_send; /* shareable stand-ins for registered memory */
    void             *bounce_recv;
};

/* Check and enqueue, or keep until the group ends. task is copied. */
XS_API enum xs_result xs_call(const struct xs_task *task, void *stream);
XS_API enum xs_result xs_group_start(void);
XS_API enum xs_result xs_group_end(void);
/* A call was refused with res: so is the group that it is in. Returns res. */
XS_API enum xs_result xs_group_fail(enum xs_result res);
/*
 * Run at once, or in a group when the group ends, together with the group's others, each on a
 * thread of its own. of: jobs of the same come one after the other; NULL: of nothing.
 */
enum xs_result xs_group_add_job(enum xs_result (*run)(void *), void *arg, const void *of);

/* ---- connect.c ---- */

/* Wait on the host until all that tasks need is connected; tasks are those of one group. */
enum xs_result xs_connect(const struct xs_task *tasks);

/* ---- serial.c: one queue per device, where XCCL_SIM_SERIAL asks for it ---- */

/* Enqueue work for task, and give it its place in the device's queue. */
enum xs_error xs_serial_enqueue(struct xs_stream *stream, xs_work_fn *work, struct xs_task *task);
/* Wait for all that the device has before task; false: its communicator was aborted. */
void xs_serial_append(struct xs_task *task);
bool xs_serial_begin(struct xs_task *task);
/* task is over, or was skipped. */
void xs_serial_end(struct xs_task *task);
/* A communicator was aborted. */
void xs_serial_wake(void);

/* ---- check.c ---- */

/* Arguments and memory of task; fills in its places. */
enum xs_result xs_check(struct xs_task *task);
XS_API size_t  xs_type_bytes(int type); /* 0: no such type */
const char    *xs_coll_name(enum xs_coll coll);
/* Bytes that the call reads and writes on this rank. */
size_t xs_send_bytes(const struct xs_task *task);
size_t xs_recv_bytes(const struct xs_task *task);

/* ---- limits.c: what only some libraries refuse ---- */

enum xs_result xs_check_limits(const struct xs_task *task);

/* ---- memory.c ---- */

XS_API enum xs_error xs_ccl_alloc(struct xs_ctx *ctx, size_t size, void **ptr_p);
XS_API enum xs_error xs_ccl_free(void *ptr);

/* ---- collective.c, p2p.c: on the stream's thread; false: aborted ---- */

bool xs_run_collective(struct xs_task *task);
bool xs_run_messages(struct xs_task *tasks);
/* Address here of a rank's memory; NULL and a remote error when it is gone. */
unsigned char *xs_reach(struct xs_comm *comm, int rank, const struct xs_place *place);

/* ---- reduce.c ---- */

struct xs_reduction {
    int                         type;
    int                         op;
    int                         nranks;
    const unsigned char *const *from;    /* a rank each, in rank order */
    const unsigned char *const *scalars; /* or NULL: what each rank multiplies with */
};

/* Elements [first, first + count) of all ranks, into each of the targets. */
void xs_reduce(const struct xs_reduction *red, size_t first, size_t count,
               unsigned char *const *targets, int target_count);

#endif
