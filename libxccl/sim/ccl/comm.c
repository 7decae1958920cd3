/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators: made by all ranks together, split, and given up with or without the others. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "ccl/ccl.h"

#define COMM_MAGIC 0x434f4d4dU

/* What makes a communicator, on the caller's thread or one of its own. */
struct job {
    struct xs_comm  *comm;
    struct xs_id     id;
    struct xs_comm  *parent; /* of a split, or NULL */
    int              color;
    int              key;
    struct xs_comm **comm_p; /* NULL when the making failed; of a split, and until it has ended */
};

/* Destroyed communicators are used again, never freed: a stale handle can be told. */
static struct xs_comm *unused;
static pthread_mutex_t unused_lock = PTHREAD_MUTEX_INITIALIZER;

static char            last_problem[1024];
static pthread_mutex_t problem_lock = PTHREAD_MUTEX_INITIALIZER;

enum xs_result xs_problem(enum xs_result code, const char *fmt, ...)
{
    char    text[sizeof(last_problem)];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    pthread_mutex_lock(&problem_lock);
    memcpy(last_problem, text, sizeof(text));
    pthread_mutex_unlock(&problem_lock);
    xs_log(XS_LOG_WARN, "%s", text);
    return code;
}

const char *xs_last_problem(void)
{
    static __thread char copy[sizeof(last_problem)];

    pthread_mutex_lock(&problem_lock);
    memcpy(copy, last_problem, sizeof(copy));
    pthread_mutex_unlock(&problem_lock);
    return copy;
}

/* The text is there before the error can be seen. */
void xs_comm_fail(struct xs_comm *comm, enum xs_result error, const char *fmt, ...)
{
    char     text[sizeof(last_problem)];
    uint32_t none = XS_SUCCESS;
    va_list  args;

    if (__atomic_load_n(&comm->async, __ATOMIC_ACQUIRE) != XS_SUCCESS) {
        return;
    }
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    xs_problem(error, "%s", text);
    __atomic_compare_exchange_n(&comm->async, &none, (uint32_t)error, false, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
}

bool xs_comm_valid(const struct xs_comm *comm)
{
    return (comm != NULL) && (__atomic_load_n(&comm->magic, __ATOMIC_ACQUIRE) == COMM_MAGIC);
}

static struct xs_comm *comm_new(struct xs_ctx *ctx, bool blocking)
{
    pthread_mutex_lock(&unused_lock);
    struct xs_comm *comm = unused;
    if (comm != NULL) {
        unused = comm->next;
    }
    pthread_mutex_unlock(&unused_lock);
    if (comm == NULL) {
        comm = malloc(sizeof(*comm));
    }
    if (comm == NULL) {
        return NULL;
    }
    memset(comm, 0, sizeof(*comm));
    pthread_mutex_init(&comm->lock, NULL);
    pthread_cond_init(&comm->changed, NULL);
    comm->ctx = ctx;
    comm->ctx_id = ctx->id;
    comm->device = ctx->device;
    comm->blocking = blocking;
    comm->state = XS_IN_PROGRESS;
    comm->users = 1;
    comm->magic = COMM_MAGIC;
    return comm;
}

void xs_comm_unuse(struct xs_comm *comm)
{
    if (__atomic_sub_fetch(&comm->users, 1, __ATOMIC_ACQ_REL) != 0) {
        return;
    }
    if (comm->region != NULL) {
        munmap(comm->region, comm->region_bytes);
    }
    free(comm->sent);
    free(comm->received);
    __atomic_store_n(&comm->magic, 0, __ATOMIC_RELEASE);
    pthread_mutex_lock(&unused_lock);
    comm->next = unused;
    unused = comm;
    pthread_mutex_unlock(&unused_lock);
}

/* All ranks see the same table, so all come to the same result. */
static enum xs_result compare_ranks(const struct xs_comm *comm)
{
    const struct xs_slot *slots = comm->region->slots;

    for (int i = 0; i < comm->nranks; i++) {
        if (slots[i].version != slots[0].version) {
            return xs_problem(XS_INVALID_USAGE,
                              "Mismatched NCCL version detected : rank %d version %d rank %d "
                              "version %d",
                              0, slots[0].version, i, slots[i].version);
        }
        for (int j = 0; j < i; j++) {
            if ((xs_config()->flavour != XS_HOST) && (slots[i].node == slots[j].node) &&
                (slots[i].bus == slots[j].bus)) {
                return xs_problem(XS_INVALID_USAGE,
                                  "Duplicate GPU detected : rank %d and rank %d both on %s device "
                                  "%x000",
                                  j, i, (xs_config()->flavour == XS_CUDA) ? "CUDA" : "HIP",
                                  (unsigned)slots[i].bus);
            }
        }
    }
    return XS_SUCCESS;
}

/* Tell the others that nothing will come of this communicator. */
static enum xs_result refuse(struct xs_comm *comm)
{
    __atomic_store_n(&comm->region->failed, 1, __ATOMIC_RELEASE);
    xs_wake(&comm->region->host.turn);
    return xs_problem(XS_SYSTEM_ERROR, "communicator creation fails as XCCL_SIM_FAIL asks");
}

static enum xs_result meet(struct xs_comm *comm)
{
    struct xs_slot *slot = &comm->region->slots[comm->rank];

    slot->pid = xs_process_number();
    slot->start = xs_process_start(xs_process_number());
    slot->node = xs_config()->node;
    slot->bus = xs_device_bus(comm->device);
    slot->version = xs_config()->ccl_version;
    __atomic_store_n(&slot->life, XS_JOINED, __ATOMIC_RELEASE);
    __atomic_add_fetch(&comm->region->joined, 1, __ATOMIC_ACQ_REL);
    if (xs_fault(XS_FAULT_INIT, NULL)) {
        return refuse(comm);
    }
    if (xs_fault(XS_FAULT_INIT_HANG, NULL)) {
        xs_park(comm);
        return xs_problem(XS_INTERNAL_ERROR, "creation was aborted");
    }
    if (!xs_barrier(comm, &comm->region->host)) {
        return xs_problem(XS_REMOTE_ERROR,
                          "rank %d: another rank failed or left while the communicator was made",
                          comm->rank);
    }
    return compare_ranks(comm);
}

static int connecting; /* atomic: threads at it */

/* NCCL 2.28.3 crashes then. */
__attribute__((destructor)) static void see_none_connects(void)
{
    if (__atomic_load_n(&connecting, __ATOMIC_ACQUIRE) > 0) {
        fprintf(stderr, "SIM: the process ends while it makes a communicator\n");
        abort();
    }
}

/* Connecting to the other ranks' sockets and GPUs takes a real library a good part of a second. */
static void take_time(void)
{
    int                   ms = xs_config()->connect_ms;
    const struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};

    if (ms > 0) {
        __atomic_add_fetch(&connecting, 1, __ATOMIC_ACQ_REL);
        nanosleep(&time, NULL);
        __atomic_sub_fetch(&connecting, 1, __ATOMIC_ACQ_REL);
    }
}

/* comm with rank and nranks set joins the communicator of id. */
static enum xs_result establish(struct xs_comm *comm, const struct xs_id *id)
{
    if (xs_fault(XS_FAULT_INIT_LONE, NULL)) {
        return xs_problem(XS_SYSTEM_ERROR, "communicator creation fails as XCCL_SIM_FAIL asks");
    }
    comm->sent = calloc((size_t)comm->nranks, sizeof(*comm->sent));
    comm->received = calloc((size_t)comm->nranks, sizeof(*comm->received));
    if ((comm->sent == NULL) || (comm->received == NULL)) {
        return xs_problem(XS_SYSTEM_ERROR, "out of host memory");
    }
    enum xs_result res = xs_region_join(comm, id);
    if (res != XS_SUCCESS) {
        return res;
    }
    res = meet(comm);
    if (res != XS_SUCCESS) {
        __atomic_store_n(&comm->region->slots[comm->rank].life, XS_LEFT, __ATOMIC_RELEASE);
        return res;
    }
    xs_region_close(id);
    take_time();
    xs_log(XS_LOG_INFO, "comm %p rank %d nranks %d device %d node %d - Init COMPLETE", (void *)comm,
           comm->rank, comm->nranks, comm->device, xs_config()->node);
    return XS_SUCCESS;
}

/* Rank and size of this rank's part of parent, and the rank in parent that makes its id. */
static int find_part(const struct xs_comm *parent, struct xs_comm *comm)
{
    const struct xs_slot *slots = parent->region->slots;
    const struct xs_slot *mine = &slots[parent->rank];
    int                   first = parent->rank;

    comm->rank = 0;
    comm->nranks = 0;
    for (int i = 0; i < parent->nranks; i++) {
        if (slots[i].color != mine->color) {
            continue;
        }
        comm->nranks++;
        if ((slots[i].key < mine->key) || ((i < parent->rank) && (slots[i].key == mine->key))) {
            comm->rank++;
        }
        if ((slots[i].key < slots[first].key) ||
            ((i < first) && (slots[i].key == slots[first].key))) {
            first = i;
        }
    }
    return first;
}

static enum xs_result split(struct job *job)
{
    struct xs_comm   *parent = job->parent;
    struct xs_region *region = parent->region;
    struct xs_slot   *mine = &region->slots[parent->rank];
    enum xs_result    res = XS_SUCCESS;
    int               first = -1;

    mine->color = job->color;
    mine->key = job->key;
    if (!xs_barrier(parent, &region->host)) {
        goto lost;
    }
    if (job->comm != NULL) {
        first = find_part(parent, job->comm);
    }
    if (first == parent->rank) {
        res = xs_region_make(&mine->child);
    }
    if (!xs_barrier(parent, &region->host)) {
        goto lost;
    }
    if ((res == XS_SUCCESS) && (first >= 0)) {
        res = establish(job->comm, &region->slots[first].child);
    }
    /* Nobody may split again before all have read the ids of this one. */
    if (!xs_barrier(parent, &region->host) && (res == XS_SUCCESS)) {
        goto lost;
    }
    return res;
lost:
    return xs_problem(XS_REMOTE_ERROR, "another rank failed or left during ncclCommSplit");
}

static enum xs_result run_job(void *arg)
{
    struct job     *job = arg;
    struct xs_comm *comm = job->comm;
    bool            splits = (job->parent != NULL);
    enum xs_result  res = splits ? split(job) : establish(comm, &job->id);

    if (comm != NULL) {
        __atomic_store_n(&comm->state, (uint32_t)res, __ATOMIC_RELEASE);
    }
    if ((comm != NULL) && (res != XS_SUCCESS) && (splits || comm->blocking)) {
        xs_comm_unuse(comm);
        comm = NULL;
    }
    if (splits || (comm == NULL)) {
        __atomic_store_n(job->comm_p, comm, __ATOMIC_RELEASE); /* NCCL does so, as late as here */
    }
    free(job);
    return res;
}

static void *run_job_thread(void *arg)
{
    struct job     *job = arg;
    struct xs_comm *parent = job->parent;
    enum xs_result  res = run_job(job);

    if (parent != NULL) {
        if (res != XS_SUCCESS) {
            xs_comm_fail(parent, res, "ncclCommSplit failed");
        }
        __atomic_store_n(&parent->splitting, 0, __ATOMIC_RELEASE);
        xs_comm_unuse(parent);
    }
    return NULL;
}

/*
 * The thread is joined when its communicator goes. Of a split nobody has that yet: as in NCCL the
 * call succeeds, and the parent says when it has ended.
 */
static enum xs_result start_thread(struct job *job)
{
    struct xs_comm *comm = job->comm;
    bool            splits = (job->parent != NULL);
    pthread_t       thread;

    if (splits) {
        __atomic_add_fetch(&job->parent->users, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&job->parent->splitting, 1, __ATOMIC_RELEASE);
    }
    if (pthread_create(&thread, NULL, run_job_thread, job) != 0) {
        return xs_problem(XS_SYSTEM_ERROR, "no thread for making a communicator");
    }
    if (splits) {
        pthread_detach(thread);
        return XS_SUCCESS;
    }
    comm->maker = thread;
    comm->making = true;
    return XS_IN_PROGRESS;
}

static enum xs_result start_job(const struct job *plan, bool blocking)
{
    struct job *job = malloc(sizeof(*job));

    if (job == NULL) {
        return xs_problem(XS_SYSTEM_ERROR, "out of host memory");
    }
    *job = *plan;
    return blocking ? xs_group_add_job(run_job, job, job->parent) : start_thread(job);
}

enum xs_result xs_comm_id(struct xs_id *id)
{
    return xs_region_make(id);
}

enum xs_result xs_comm_init(struct xs_comm **comm_p, int nranks, const struct xs_id *id, int rank,
                            bool blocking)
{
    struct job     job = {.id = *id, .comm_p = comm_p};
    struct xs_ctx *ctx = xs_ctx_current();

    if ((nranks < 1) || (nranks > XS_MAX_RANKS) || (rank < 0) || (rank >= nranks)) {
        return xs_problem(XS_INVALID_ARGUMENT, "Invalid rank requested : %d/%d", rank, nranks);
    }
    if (ctx == NULL) {
        return xs_problem(XS_DEVICE_ERROR, "no device is current in the calling thread");
    }
    job.comm = comm_new(ctx, blocking);
    if (job.comm == NULL) {
        return xs_problem(XS_SYSTEM_ERROR, "out of host memory");
    }
    job.comm->rank = rank;
    job.comm->nranks = nranks;
    *comm_p = job.comm;
    return start_job(&job, blocking);
}

enum xs_result xs_comm_init_all(struct xs_comm **comms, int count, const int *devices)
{
    struct xs_id   id;
    struct xs_ctx *before = xs_ctx_current();
    struct xs_ctx *ctx;
    enum xs_result res = xs_comm_id(&id);

    if ((count < 1) || (count > xs_config()->devices)) {
        return xs_problem(XS_INVALID_ARGUMENT, "ncclCommInitAll: %d ranks on %d devices", count,
                          xs_config()->devices);
    }
    xs_group_start();
    for (int i = 0; (i < count) && (res == XS_SUCCESS); i++) {
        int device = (devices == NULL) ? i : devices[i];

        if ((xs_primary_retain(device, &ctx) != XS_OK) || (xs_ctx_set(ctx) != XS_OK)) {
            res = xs_problem(XS_INVALID_ARGUMENT, "ncclCommInitAll: there is no device %d", device);
        } else {
            res = xs_comm_init(&comms[i], count, &id, i, true);
        }
    }
    enum xs_result ended = xs_group_end();
    xs_ctx_set(before);
    return (res != XS_SUCCESS) ? res : ended;
}

enum xs_result xs_comm_ready(const struct xs_comm *comm)
{
    uint32_t state = __atomic_load_n(&comm->state, __ATOMIC_ACQUIRE);

    bool splits = (__atomic_load_n(&comm->splitting, __ATOMIC_ACQUIRE) != 0);

    if ((state == XS_SUCCESS) && !splits) {
        return XS_SUCCESS;
    }
    return xs_problem(XS_INVALID_ARGUMENT,
                      ((state == XS_IN_PROGRESS) || splits)
                          ? "Attempt to use communicator before the previous operation returned "
                            "ncclSuccess"
                          : "the communicator could not be made");
}

enum xs_result xs_comm_split(struct xs_comm *comm, int color, int key, int blocking,
                             struct xs_comm **comm_p)
{
    struct job     job = {.parent = comm, .color = color, .key = key, .comm_p = comm_p};
    enum xs_result res = xs_comm_ready(comm);

    if (res != XS_SUCCESS) {
        return res;
    }
    if (color < -1) {
        return xs_problem(XS_INVALID_ARGUMENT, "ncclCommSplit: color must be 0 or more, or "
                                               "NCCL_SPLIT_NOCOLOR");
    }
    *comm_p = NULL;
    if (color >= 0) {
        job.comm = comm_new(comm->ctx, (blocking < 0) ? comm->blocking : (blocking != 0));
        if (job.comm == NULL) {
            return xs_problem(XS_SYSTEM_ERROR, "out of host memory");
        }
    }
    return start_job(&job, comm->blocking);
}

enum xs_result xs_comm_async_error(struct xs_comm *comm, int *error_p)
{
    uint32_t state = __atomic_load_n(&comm->state, __ATOMIC_ACQUIRE);

    if (__atomic_load_n(&comm->splitting, __ATOMIC_ACQUIRE) != 0) {
        state = XS_IN_PROGRESS;
    } else if (state == XS_SUCCESS) {
        xs_look_for_dead(comm);
        state = __atomic_load_n(&comm->async, __ATOMIC_ACQUIRE);
    }
    *error_p = (int)state;
    return XS_SUCCESS;
}

enum xs_result xs_comm_op_create(struct xs_comm *comm, const void *scalar, int type, int residence,
                                 int *op_p)
{
    struct xs_range range;

    if (xs_config()->library == XS_MSCCLPP) {
        return xs_problem(XS_INTERNAL_ERROR, "ncclRedOpCreatePreMulSum is currently unavailable");
    }
    if ((xs_type_bytes(type) == 0) || (residence < 0) || (residence > 1)) {
        return xs_problem(XS_INVALID_ARGUMENT, "ncclRedOpCreatePreMulSum: no such type or "
                                               "residence");
    }
    pthread_mutex_lock(&comm->lock);
    int i = 0;
    while ((i < XS_MAX_USER_OPS) && comm->ops[i].used) {
        i++;
    }
    if (i < XS_MAX_USER_OPS) {
        struct xs_user_op *op = &comm->ops[i];

        *op = (struct xs_user_op){.used = true, .from_device = (residence == 0), .type = type};
        op->address = xs_mem_touch(scalar, xs_type_bytes(type), &range);
        if (residence == 1) {
            memcpy(op->scalar, op->address, xs_type_bytes(type));
        }
    }
    pthread_mutex_unlock(&comm->lock);
    if (i == XS_MAX_USER_OPS) {
        return xs_problem(XS_SYSTEM_ERROR, "too many operations made by ncclRedOpCreatePreMulSum");
    }
    *op_p = XS_NUM_OPS + i;
    return XS_SUCCESS;
}

enum xs_result xs_comm_op_destroy(struct xs_comm *comm, int op)
{
    int i = op - XS_NUM_OPS;

    if ((i < 0) || (i >= XS_MAX_USER_OPS) || !comm->ops[i].used) {
        return xs_problem(XS_INVALID_ARGUMENT,
                          "ncclRedOpDestroy: %d is no operation made by "
                          "ncclRedOpCreatePreMulSum",
                          op);
    }
    comm->ops[i].used = false;
    return XS_SUCCESS;
}

enum xs_result xs_comm_register(struct xs_comm *comm, void *buff, size_t bytes, void **handle_p)
{
    struct xs_range range;

    (void)comm;
    if (!xs_mem_find(buff, &range) || (xs_mem_touch(buff, bytes, &range) == NULL)) {
        return xs_problem(XS_INVALID_ARGUMENT, "ncclCommRegister: %p is no device memory", buff);
    }
    *handle_p = buff;
    return XS_SUCCESS;
}

enum xs_result xs_comm_register_together(struct xs_comm *comm, void *buff, size_t bytes,
                                         void **handle_p)
{
    enum xs_result res = xs_comm_register(comm, buff, bytes, handle_p);

    return ((res != XS_SUCCESS) || xs_barrier(comm, &comm->region->host))
               ? res
               : xs_problem(XS_REMOTE_ERROR, "a rank has gone while memory was registered");
}

enum xs_result xs_comm_deregister(struct xs_comm *comm, void *handle)
{
    (void)comm;
    return (handle == NULL) ? XS_INVALID_ARGUMENT : XS_SUCCESS;
}
