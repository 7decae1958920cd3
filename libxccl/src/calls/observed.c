/* SPDX-License-Identifier: BSD-3-Clause */
#include "calls/observed.h"

#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/params.h"
#include "calls/calls.h"
#include "comms/wait.h"
#include "direct/direct.h"
#include "observe/profile.h"
#include "observe/ranges.h"

bool xm_observing;

/* What a call turned out to be; what the operation does not say is found by the arguments. */
struct seen {
    enum xm_function function;
    const long      *args;
    bool             known; /* bytes, ranks and memory */
    uint64_t         bytes;
    int              ranks;
    const char      *memory, *path, *reason, *other;
    bool             unsure;
    bool             counted; /* the call is, by its operation */
    int              row;     /* of that operation, or -1 where the profile has no room for it */
    bool             ranged;  /* a range with the name of the path is open */
};

/* The call that this thread is in; what MPI or a tool calls meanwhile is part of it. An error
 * handler may have left it by longjmp(): a call that is not further down the stack takes its place.
 */
static __thread struct seen *current;
static __thread struct seen  the_seen;
static __thread const void  *current_frame;

/* ---- which calls ---- */

static bool is_start(enum xm_function f)
{
    return (f == XM_FN_MPI_Start) || (f == XM_FN_MPI_Startall);
}

/* Those that move data or wait for it. Making a persistent request does neither. */
static bool is_observed(enum xm_function f)
{
    if ((int)f < XM_NUM_COLLECTIVE_FUNCTIONS) {
        return xm_function_form(f) != XM_PERSISTENT;
    }
    if (xm_is_transfer(f)) {
        char form = xm_transfer_form(f);
        return (form != 'P') && (form != 'R') && (form != 'A') && (form != 'Z');
    }
    return ((f >= XM_FN_MPI_Wait) && (f <= XM_FN_MPI_Testsome)) || is_start(f) ||
           (f >= XM_FN_MPIX_Wait_enqueue);
}

/* MPI_Send for MPI_Send_c: they are one kind of call. */
static enum xm_function without_c(enum xm_function f)
{
    const char *name = xm_mpi_function_name(f);
    size_t      n = strlen(name);

    return ((n > 2) && (strcmp(name + n - 2, "_c") == 0)) ? (enum xm_function)((int)f - 1) : f;
}

bool xm_observe_open(void)
{
    bool ranges = xm_ranges_open();

    xm_observing = ranges || (xc_params()->profile != 0);
    return xm_observing;
}

void xm_observe_begin(void)
{
    if ((xc_params()->profile != 0) && !xm_config.faulty && !xm_profile_begin()) {
        xc_warn("XCCL_PROFILE: %s", xc_last_detail());
    }
}

void xm_observe_finalize(void)
{
    if (xm_observing) {
        xm_profile_finalize();
    }
}

/* ---- what a call on host memory, or left to MPI at once, is: by its arguments ---- */

static uint64_t size_of(MPI_Datatype type)
{
    MPI_Count size = 0;

    return ((xm_pmpi.Type_size_x(type, &size) == MPI_SUCCESS) && (size > 0)) ? (uint64_t)size : 0;
}

static uint64_t sum_of(const struct xm_call *call, const void *counts, int n)
{
    uint64_t sum = 0;

    for (int i = 0; (counts != NULL) && (i < n); i++) {
        sum += (uint64_t)xm_count_at(call, counts, i);
    }
    return sum;
}

/* As decide.h defines the bytes of each collective, from what this rank alone has. */
static uint64_t bytes_of(const struct xm_call *call, int ranks)
{
    uint64_t send = (call->sendtype != 0) ? size_of(call->sendtype) : 0;
    uint64_t recv = (call->recvtype != 0) ? size_of(call->recvtype) : 0;

    switch (call->coll) {
    case XM_BCAST:
        return (uint64_t)call->recvcount * recv;
    case XM_ALLGATHER:
        return (uint64_t)call->recvcount * recv;
    case XM_SCATTER: /* in place at the root, which says how much each rank gets */
        return (call->recvbuf == MPI_IN_PLACE) ? (uint64_t)call->sendcount * send
                                               : (uint64_t)call->recvcount * recv;
    case XM_GATHER:
        return (call->sendbuf == MPI_IN_PLACE) ? (uint64_t)call->recvcount * recv
                                               : (uint64_t)call->sendcount * send;
    case XM_SCATTERV: /* there it has no part to say the size of */
        return (call->recvbuf == MPI_IN_PLACE) ? 0 : (uint64_t)call->recvcount * recv;
    case XM_GATHERV:
        return (call->sendbuf == MPI_IN_PLACE) ? 0 : (uint64_t)call->sendcount * send;
    case XM_ALLTOALL:
    case XM_NEIGHBOR_ALLTOALL:
        return (uint64_t)call->recvcount * recv;
    case XM_REDUCE_SCATTER:
        return sum_of(call, call->recvcounts, ranks) * send / (uint64_t)ranks;
    case XM_REDUCE_SCATTER_BLOCK:
        return (uint64_t)call->recvcount * send;
    case XM_ALLGATHERV:
    case XM_ALLTOALLV:
        return sum_of(call, call->recvcounts, ranks) * recv / (uint64_t)ranks;
    default: /* the vector; of what counts differ by neighbour or by type nothing is said */
        return (uint64_t)call->sendcount * send;
    }
}

static void describe_collective(struct seen *seen)
{
    struct xm_call call;
    int            ranks = 0, inter = 0;

    xm_call_read(seen->function, 0, seen->args, &call);
    if ((xm_pmpi.Comm_test_inter(call.comm, &inter) != MPI_SUCCESS) ||
        (xm_pmpi.Comm_size(call.comm, &ranks) != MPI_SUCCESS)) {
        return;
    }
    seen->ranks = ranks;
    seen->memory = (seen->memory != NULL) ? seen->memory : "host";
    seen->bytes = inter ? 0 : bytes_of(&call, ranks);
}

static const char *memory_of(const void *buf)
{
    const struct xc_device_ops *dev = xc_device_active();

    if ((dev == NULL) || (buf == NULL)) {
        return "host";
    }
    switch (xm_buffer_ask(dev, buf).kind) {
    case XC_MEM_DEVICE:
        return dev->name;
    case XC_MEM_MANAGED:
        return (strcmp(dev->name, "cuda") == 0) ? "cuda_managed" : "rocm_managed";
    default:
        return "host";
    }
}

static const void *buffer_of(enum xm_function f, const long *args)
{
    static const char kinds[] = "srb";

    for (int i = 0; kinds[i] != '\0'; i++) {
        int at = xm_transfer_argument(f, kinds[i]);
        if (at >= 0) {
            return (const void *)args[at];
        }
    }
    return NULL;
}

/* The size of the first buffer; a message may be shorter. */
static void describe_transfer(struct seen *seen)
{
    enum xm_function f = seen->function;
    int              count = xm_transfer_argument(f, 'n'), type = xm_transfer_argument(f, 't');
    bool             large = (without_c(f) != f);

    if (strchr("YEQ", xm_transfer_form(f)) != NULL) {
        return; /* nothing of its own */
    }
    seen->memory = memory_of(buffer_of(f, seen->args));
    if (type >= 0) {
        MPI_Count n = (count < 0) ? 1
                      : large     ? (MPI_Count)seen->args[count]
                                  : (int)seen->args[count];
        seen->bytes = (n > 0) ? (uint64_t)n * size_of((MPI_Datatype)(intptr_t)seen->args[type]) : 0;
    }
}

/* ---- counting ---- */

static int row_of(const struct seen *seen, const char *path)
{
    struct xm_profile_key key;

    memset(&key, 0, sizeof(key));
    key.function = (uint16_t)without_c(seen->function);
    key.size_class = (uint8_t)xm_size_class(seen->bytes);
    key.memory = xm_profile_word(seen->memory);
    key.path = xm_profile_word(path);
    key.other = xm_profile_word(seen->other);
    key.unsure = seen->unsure;
    key.why = (uint8_t)xc_hash_text(XC_HASH_BEGIN, seen->reason);
    key.ranks = seen->ranks;
    return xm_profile_row(&key, seen->reason);
}

static void count(struct seen *seen, const char *message_path, uint64_t ns)
{
    const char *path = seen->path;

    if (seen->counted) {
        xm_profile_add(seen->row, 0, 0, ns);
        return;
    }
    if ((int)seen->function < XM_NUM_COLLECTIVE_FUNCTIONS) {
        if (!seen->known) {
            describe_collective(seen);
        }
        path = xm_last_path(); /* it may have been carried otherwise than was chosen */
    } else if (xm_is_transfer(seen->function)) {
        describe_transfer(seen);
        path = (message_path != NULL) ? message_path : "mpi";
    }
    xm_profile_add(row_of(seen, path), 1, seen->bytes, ns);
}

/* The path that this thread's messages took is the one of this call, or NULL; and back. */
static long serve_message(enum xm_function f, int profiling, const long *args,
                          long (*serve)(enum xm_function, int, const long *), const char **path_p)
{
    const char *before = xm_transfer_last_path;

    xm_transfer_last_path = NULL;
    long res = serve(f, profiling, args);
    *path_p = xm_transfer_last_path;
    if (*path_p == NULL) {
        xm_transfer_last_path = before;
    }
    return res;
}

static void end_ranges(void)
{
    if (the_seen.ranged) {
        xm_range_pop();
    }
    xm_range_pop();
}

long xm_observe(enum xm_function function, int profiling, const long *args,
                long (*serve)(enum xm_function function, int profiling, const long *args))
{
    const void *frame = __builtin_frame_address(0);
    const char *message_path = NULL;

    if ((current != NULL) && ((uintptr_t)frame >= (uintptr_t)current_frame)) {
        end_ranges();
        current = NULL;
    }
    if ((current != NULL) || !is_observed(function)) {
        return serve(function, profiling, args);
    }
    the_seen = (struct seen){.function = function, .args = args};
    current = &the_seen;
    current_frame = frame;
    xm_range_push(xm_mpi_function_name(function));
    uint64_t begun = xm_now_ns();
    long     res = xm_is_transfer(function)
                       ? serve_message(function, profiling, args, serve, &message_path)
                       : serve(function, profiling, args);
    uint64_t ns = xm_now_ns() - begun;
    end_ranges();
    if (xm_profile_on() && ((int)res == MPI_SUCCESS)) {
        count(&the_seen, message_path, ns);
    }
    current = NULL;
    return res;
}

/* ---- from inside ---- */

/* The path is known now; its range ends with the call. */
static void range_of_path(const char *path)
{
    if (!current->ranged && !is_start(current->function)) {
        xm_range_push(path);
        current->ranged = true;
    }
}

void xm_seen_choice(const struct xm_op *op, const struct xm_rules *rules,
                    const struct xm_choice *choice, unsigned available)
{
    struct xm_facts  facts = op->facts;
    struct xm_choice other;

    if (current == NULL) {
        return;
    }
    current->reason = choice->reason;
    facts.obstacle = NULL;
    if (op->facts.obstacle != NULL) {
        /* MPI alone can serve it, or is to: what would the tables have said? */
        other = xm_decide(rules, ~0u, &facts);
        current->unsure = true;
    } else {
        other = xm_decide(rules, available & ~(1u << choice->path), &facts);
        /* A vendor's library may refuse ranks that share a device: known once it is asked. */
        current->unsure = (other.path == XM_PATH_CCL) && (op->comm != NULL) &&
                          (op->comm->direct != NULL) && op->comm->direct->in_turns &&
                          (op->comm->vendor == NULL);
    }
    current->other = (other.path != choice->path) ? xm_path_name(other.path) : NULL;
    current->unsure = current->unsure && (current->other != NULL);
}

void xm_seen_op(struct xm_op *op, const char *path, bool completes)
{
    if (current == NULL) {
        return;
    }
    bool on_device = xm_on_device(&op->buffers.send) || xm_on_device(&op->buffers.recv);
    bool in_wait = is_start(current->function);

    current->known = (op->facts.bytes > 0);
    current->bytes = op->facts.bytes;
    current->ranks = (op->comm != NULL) ? op->comm->size : 1;
    if (!current->known && (op->comm != NULL) && !op->comm->inter) {
        current->bytes = bytes_of(&op->call, current->ranks); /* nothing was to be agreed on */
    }
    current->memory = (on_device && (op->dev != NULL)) ? xm_mem_name(op->facts.mem) : "host";
    current->path = path;
    if ((current->reason == NULL) && on_device && (xc_params()->route != XC_ROUTE_XCCL)) {
        current->reason = "XCCL_ROUTE is not xccl"; /* the ranks agreed on nothing */
    }
    range_of_path(path);
    if ((op->call.form == XM_BLOCKING) || (!completes && !in_wait) || !xm_profile_on()) {
        return;
    }
    /* Counted here, where it starts: it may be over before the call is, or one of several. */
    struct seen started = *current;
    started.function = xm_function_of(op->call.coll, in_wait ? XM_PERSISTENT : XM_NONBLOCKING, 0);
    int row = row_of(&started, path);
    xm_profile_add(row, 1, started.bytes, 0);
    if (completes) {
        op->observed = row + 1;
        op->observed_ns = xm_now_ns();
    }
    current->counted = !in_wait;
    current->row = row;
    if (in_wait) {
        current->bytes = 0;
        current->ranks = 0;
        current->memory = current->path = current->reason = current->other = NULL;
        current->unsure = false;
    }
}

void xm_seen_transfer(struct xm_transfer *t)
{
    /* A collective that goes as messages, or its start, is counted as what it is. */
    if ((current == NULL) || !xm_profile_on() || !xm_is_transfer(current->function)) {
        return;
    }
    struct seen started = *current;
    describe_transfer(&started);
    /* Whether what is received comes to be fetched is for the sender to say, later. */
    int row = row_of(&started, t->rendezvous.awaits ? NULL : xm_transfer_last_path);
    xm_profile_add(row, 1, started.bytes, 0);
    t->observed = row + 1;
    t->observed_ns = xm_now_ns();
    current->counted = true;
    current->row = row;
}

void xm_seen_enqueued(const struct xm_op *op, const char *path)
{
    if (current != NULL) {
        current->known = true;
        current->bytes = op->facts.bytes;
        current->ranks = op->comm->size;
        current->memory = xm_on_device(&op->buffers.send) || xm_on_device(&op->buffers.recv)
                              ? xm_mem_name(op->facts.mem)
                              : "host";
        current->path = path;
        range_of_path(path);
    }
}
