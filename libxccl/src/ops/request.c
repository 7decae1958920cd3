/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests. That of an operation is a generalised request of MPI's, so every function of MPI's
 * takes it, mixed with MPI's own; all that is added here is that operations progress while the
 * program waits.
 *
 * MPI has no generalised persistent requests. So a persistent one is known to the program by a
 * persistent request of MPI's that is never started (a send to nobody), and each time it is started
 * it has an operation's request behind it, which takes its place in the calls that wait and test.
 *
 * That of a transfer is MPI's own. In calls that wait and test it is hidden until its data is where
 * it belongs; then MPI completes it, with its own status.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "comms/wait.h"
#include "ops/op.h"

enum { BUCKETS = 256 };

/* What is known of a request that the program holds: an operation's, a transfer's, or neither:
 * a persistent collective. */
struct entry {
    MPI_Request         handle;
    struct xm_op       *op;
    struct xm_transfer *transfer;
    struct xm_call      call;
    int (*start)(const struct xm_call *call, MPI_Request *request);
    MPI_Request   inner; /* of the operation started last, or MPI_REQUEST_NULL */
    struct entry *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry   *table[BUCKETS];
static int             live;       /* atomic: entries */
static int             persistent; /* atomic: of them, persistent ones */
static int             transfers;  /* atomic: of them, transfers' */

static bool is_persistent(const struct entry *e)
{
    return (e->op == NULL) && (e->transfer == NULL);
}

int xm_requests_live(void)
{
    return __atomic_load_n(&live, __ATOMIC_ACQUIRE);
}

static struct entry **bucket_of(MPI_Request handle)
{
    uint64_t hash = (uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15u;

    return &table[hash >> 56];
}

static void add_entry(struct entry *e)
{
    pthread_mutex_lock(&lock);
    struct entry **bucket = bucket_of(e->handle);
    e->next = *bucket;
    *bucket = e;
    pthread_mutex_unlock(&lock);
    __atomic_add_fetch(&live, 1, __ATOMIC_RELEASE);
}

static struct entry *find(MPI_Request handle)
{
    pthread_mutex_lock(&lock);
    struct entry *e = *bucket_of(handle);
    while ((e != NULL) && (e->handle != handle)) {
        e = e->next;
    }
    pthread_mutex_unlock(&lock);
    return e;
}

static void remove_entry(MPI_Request handle)
{
    pthread_mutex_lock(&lock);
    struct entry **at = bucket_of(handle);
    while ((*at != NULL) && ((*at)->handle != handle)) {
        at = &(*at)->next;
    }
    struct entry *e = *at;
    if (e != NULL) {
        *at = e->next;
    }
    pthread_mutex_unlock(&lock);
    if (e != NULL) {
        __atomic_sub_fetch(&live, 1, __ATOMIC_RELEASE);
        __atomic_sub_fetch(&transfers, (e->transfer != NULL), __ATOMIC_RELEASE);
        free(e);
    }
}

/* ---- an operation's ---- */

static int query(void *extra, MPI_Status *status)
{
    const struct xm_op *op = extra;

    xm_pmpi.Status_set_elements(status, XM_HANDLE(MPI_BYTE), 0);
    xm_pmpi.Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return op->code;
}

/* The program's request and the thread that completes it both hold the operation. */
static void let_go(struct xm_op *op)
{
    if (__atomic_sub_fetch(&op->holders, 1, __ATOMIC_ACQ_REL) == 0) {
        xm_op_free(op);
    }
}

static int release(void *extra)
{
    struct xm_op *op = extra;

    remove_entry(op->request);
    let_go(op);
    return MPI_SUCCESS;
}

/* MPI has no cancelling of collectives. */
static int cancel(void *extra, int complete)
{
    (void)extra;
    (void)complete;
    return MPI_SUCCESS;
}

int xm_request_make(struct xm_op *op, MPI_Request *request)
{
    struct entry *e = calloc(1, sizeof(*e));

    if (e == NULL) {
        return MPI_ERR_OTHER;
    }
    int code = xm_pmpi.Grequest_start(query, release, cancel, op, &op->request);
    if (code != MPI_SUCCESS) {
        free(e);
        return code;
    }
    e->handle = op->request;
    e->op = op;
    op->holders = 2;
    add_entry(e);
    *request = op->request;
    return MPI_SUCCESS;
}

/*
 * A thread that waits goes on to MPI once it sees done, and MPICH's MPI_Waitall aborts on a
 * generalised request that is not complete yet. So done comes last, when another thread may have
 * tested the request and freed it.
 */
void xm_request_complete(struct xm_op *op)
{
    xm_pmpi.Grequest_complete(op->request);
    __atomic_store_n(&op->done, 1, __ATOMIC_RELEASE);
    let_go(op);
}

/* ---- persistent ones ---- */

int xm_request_persistent(const struct xm_call *call,
                          int (*start)(const struct xm_call *call, MPI_Request *request))
{
    struct entry *e = calloc(1, sizeof(*e));

    if (e == NULL) {
        return xm_raise(call->comm, xcclSystemError, "out of memory for a request");
    }
    int code = xm_pmpi.Send_init(NULL, 0, XM_HANDLE(MPI_BYTE), MPI_PROC_NULL, 0,
                                 XM_HANDLE(MPI_COMM_WORLD), &e->handle);
    if (code != MPI_SUCCESS) {
        free(e);
        return code;
    }
    e->call = *call;
    e->start = start;
    e->inner = XM_HANDLE(MPI_REQUEST_NULL);
    add_entry(e);
    __atomic_add_fetch(&persistent, 1, __ATOMIC_RELEASE);
    *call->request = e->handle;
    return MPI_SUCCESS;
}

/* Open MPI may give a persistent request another handle when it is started again. */
static void follow(struct entry *e, MPI_Request handle)
{
    if (handle != e->handle) {
        pthread_mutex_lock(&lock);
        struct entry **at = bucket_of(e->handle);
        while (*at != e) {
            at = &(*at)->next;
        }
        *at = e->next;
        e->handle = e->transfer->request = handle;
        e->next = *bucket_of(handle);
        *bucket_of(handle) = e;
        pthread_mutex_unlock(&lock);
    }
}

static int start_transfer(struct entry *e, MPI_Request *request, int profiling)
{
    const long          args[] = {(long)request};
    struct xm_transfer *t = e->transfer;
    xcclResult_t        res = xm_transfer_copy_in(t);

    if (res != xcclSuccess) {
        return xm_raise(XM_HANDLE(MPI_COMM_WORLD), res, xc_last_detail());
    }
    int code = (int)xm_mpi_forward(XM_FN_MPI_Start, profiling, args);
    t->done = (code != MPI_SUCCESS);
    follow(e, *request);
    return code;
}

/* MPI_Pready and its kin: what is ready goes to where MPI takes it from. */
static int ready(enum xm_function function, int profiling, const long *args, MPI_Request handle)
{
    struct entry *e = find(handle);
    xcclResult_t  res = xcclSuccess;

    if ((e != NULL) && (e->transfer != NULL)) {
        const int *list = (const int *)args[1];
        switch (function) {
        case XM_FN_MPI_Pready:
            res = xm_transfer_partitions_in(e->transfer, (int)args[0], (int)args[0]);
            break;
        case XM_FN_MPI_Pready_range:
            res = xm_transfer_partitions_in(e->transfer, (int)args[0], (int)args[1]);
            break;
        default:
            for (int i = 0; (i < (int)args[0]) && (res == xcclSuccess); i++) {
                res = xm_transfer_partitions_in(e->transfer, list[i], list[i]);
            }
            break;
        }
    }
    return (res == xcclSuccess) ? (int)xm_mpi_forward(function, profiling, args)
                                : xm_raise(XM_HANDLE(MPI_COMM_WORLD), res, xc_last_detail());
}

/* (request, partition, flag) */
static int arrived(int profiling, const long *args)
{
    struct entry *e = find((MPI_Request)(intptr_t)args[0]);
    int           code = (int)xm_mpi_forward(XM_FN_MPI_Parrived, profiling, args);

    if ((code == MPI_SUCCESS) && (e != NULL) && (e->transfer != NULL) && *(const int *)args[2]) {
        xcclResult_t res = xm_transfer_partition_out(e->transfer, (int)args[1]);
        if (res != xcclSuccess) {
            return xm_raise(XM_HANDLE(MPI_COMM_WORLD), res, xc_last_detail());
        }
    }
    return code;
}

static int start_one(MPI_Request *request, int profiling)
{
    struct entry *e = find(*request);
    const long    args[] = {(long)request};

    if ((e != NULL) && (e->transfer != NULL)) {
        return start_transfer(e, request, profiling);
    }
    if ((e == NULL) || !is_persistent(e)) {
        return (int)xm_mpi_forward(XM_FN_MPI_Start, profiling, args);
    }
    if (e->inner != XM_HANDLE(MPI_REQUEST_NULL)) {
        xc_error("MPI_Start: the persistent request is active; complete it first");
        xm_pmpi.Comm_call_errhandler(e->call.comm, MPI_ERR_REQUEST);
        return MPI_ERR_REQUEST;
    }
    return e->start(&e->call, &e->inner);
}

static int start_all(int count, MPI_Request requests[], int profiling)
{
    int code = MPI_SUCCESS;

    for (int i = 0; (i < count) && (code == MPI_SUCCESS); i++) {
        code = start_one(&requests[i], profiling);
    }
    return code;
}

/* Those whose requests were freed before they were over: their data is still to come. */
static struct xm_transfer *orphans;

static void forget_transfer(struct entry *e)
{
    struct xm_transfer *t = e->transfer;

    remove_entry(e->handle);
    xm_transfer_discard(t);
}

static int free_transfer(struct entry *e, MPI_Request *request, int profiling, const long *args)
{
    struct xm_transfer *t = e->transfer;

    if (xm_transfer_poll(t)) {
        forget_transfer(e);
        return (int)xm_mpi_forward(XM_FN_MPI_Request_free, profiling, args);
    }
    *request = XM_HANDLE(MPI_REQUEST_NULL);
    pthread_mutex_lock(&lock);
    t->next = orphans;
    __atomic_store_n(&orphans, t, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    return MPI_SUCCESS;
}

void xm_requests_progress(void)
{
    if (__atomic_load_n(&orphans, __ATOMIC_ACQUIRE) == NULL) {
        return;
    }
    pthread_mutex_lock(&lock);
    struct xm_transfer *left = orphans;
    orphans = NULL;
    pthread_mutex_unlock(&lock);
    while (left != NULL) {
        struct xm_transfer *t = left;
        left = t->next;
        if (xm_transfer_poll(t)) {
            MPI_Request request = t->request;
            remove_entry(request);
            xm_transfer_discard(t);
            xm_pmpi.Request_free(&request);
            continue;
        }
        pthread_mutex_lock(&lock);
        t->next = orphans;
        __atomic_store_n(&orphans, t, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&lock);
    }
}

void xm_requests_finalize(void)
{
    struct xm_wait wait = xm_wait_begin("for messages whose requests were freed");

    while ((__atomic_load_n(&orphans, __ATOMIC_ACQUIRE) != NULL) &&
           (xm_wait_step(&wait) != XM_WAIT_EXPIRED)) {
        xm_requests_progress();
    }
}

int xm_request_keep(struct xm_transfer *t)
{
    struct entry *e = calloc(1, sizeof(*e));

    if (e == NULL) {
        return xm_raise(XM_HANDLE(MPI_COMM_WORLD), xcclSystemError, "out of memory for a request");
    }
    e->handle = t->request;
    e->transfer = t;
    add_entry(e);
    __atomic_add_fetch(&transfers, 1, __ATOMIC_RELEASE);
    return MPI_SUCCESS;
}

static int free_request(MPI_Request *request, int profiling, const long *args)
{
    struct entry *e = find(*request);

    if ((e != NULL) && (e->transfer != NULL)) {
        return free_transfer(e, request, profiling, args);
    }
    if ((e != NULL) && is_persistent(e)) {
        if (e->inner != XM_HANDLE(MPI_REQUEST_NULL)) {
            xm_pmpi.Request_free(&e->inner);
        }
        remove_entry(*request);
        __atomic_sub_fetch(&persistent, 1, __ATOMIC_RELEASE);
    }
    return (int)xm_mpi_forward(XM_FN_MPI_Request_free, profiling, args);
}

/* ---- waiting and testing ---- */

/* The requests of a call, as MPI is to see them. */
struct array {
    int            count;
    MPI_Request   *given;   /* the program's */
    MPI_Request   *used;    /* given itself, or a copy */
    struct entry **entries; /* of persistent collectives and transfers, or NULL; with a copy only */
    bool           ours;    /* is any of them an operation's or a transfer's? */
    int            hidden;  /* transfers that are not over */
};

static bool needs_copy(const struct array *a)
{
    if ((__atomic_load_n(&persistent, __ATOMIC_ACQUIRE) == 0) &&
        (__atomic_load_n(&transfers, __ATOMIC_ACQUIRE) == 0)) {
        return false;
    }
    for (int i = 0; i < a->count; i++) {
        struct entry *e = find(a->given[i]);
        if ((e != NULL) && (e->op == NULL)) {
            return true;
        }
    }
    return false;
}

static bool make_copy(struct array *a)
{
    size_t n = (size_t)a->count;

    a->used = malloc(n * sizeof(*a->used));
    a->entries = calloc(n, sizeof(struct entry *));
    if ((a->used == NULL) || (a->entries == NULL)) {
        free(a->used);
        free(a->entries);
        return false;
    }
    for (int i = 0; i < a->count; i++) {
        struct entry *e = find(a->given[i]);
        bool          known = (e != NULL) && (e->op == NULL);
        a->entries[i] = known ? e : NULL;
        a->used[i] = (known && is_persistent(e)) ? e->inner : a->given[i];
    }
    return true;
}

static struct xm_transfer *transfer_at(const struct array *a, int i)
{
    return ((a->entries != NULL) && (a->entries[i] != NULL)) ? a->entries[i]->transfer : NULL;
}

/*
 * Look after the transfers; MPI sees those that are over. What is known of them goes before MPI
 * completes them: from then on another thread may be given the same handle. Persistent requests
 * stay.
 */
static void hide_transfers(struct array *a)
{
    a->hidden = 0;
    for (int i = 0; (a->entries != NULL) && (i < a->count); i++) {
        struct xm_transfer *t = transfer_at(a, i);
        if (t != NULL) {
            bool over = xm_transfer_poll(t);
            a->used[i] = over ? a->given[i] : XM_HANDLE(MPI_REQUEST_NULL);
            a->hidden += over ? 0 : 1;
            if (over && (t->form != 'P')) {
                forget_transfer(a->entries[i]);
                a->entries[i] = NULL;
            }
        }
    }
}

static bool open_array(struct array *a, int count, MPI_Request *requests)
{
    *a = (struct array){.count = count, .given = requests, .used = requests};
    if ((count <= 0) || (requests == NULL)) {
        return true; /* MPI says what is wrong with it, if anything */
    }
    if (needs_copy(a) && !make_copy(a)) {
        return false;
    }
    for (int i = 0; (i < count) && !a->ours; i++) {
        struct entry *e = find(a->used[i]);
        a->ours = (e != NULL) && !is_persistent(e);
    }
    return true;
}

/* What MPI has set to null is over: for a persistent request, until it is started again. */
static void close_array(struct array *a)
{
    if (a->entries == NULL) {
        return;
    }
    for (int i = 0; i < a->count; i++) {
        struct entry *e = a->entries[i];
        if (e == NULL) {
            a->given[i] = a->used[i];
        } else if (e->transfer == NULL) {
            e->inner = a->used[i];
        }
    }
    free(a->used);
    free(a->entries);
}

static bool operations_done(const struct array *a)
{
    for (int i = 0; i < a->count; i++) {
        struct entry *e = find(a->used[i]);
        if ((e != NULL) && (e->op != NULL) && !__atomic_load_n(&e->op->done, __ATOMIC_ACQUIRE)) {
            return false;
        }
    }
    return true;
}

/* Until all of ours among them are over; MPI waits for its own requests itself. */
static void wait_for_ours(struct array *a)
{
    struct xm_wait wait = xm_wait_begin("for requests of calls on device memory");

    for (;;) {
        hide_transfers(a);
        if ((a->hidden == 0) && operations_done(a)) {
            return;
        }
        xm_ops_progress();
        xm_wait_step(&wait);
    }
}

/* MPI found nothing that is active, because it did not see what is hidden. */
static bool saw_nothing(enum xm_function function, const struct array *a, const long *args)
{
    if (a->hidden == 0) {
        return false;
    }
    switch (function) {
    case XM_FN_MPI_Testany:
        return *(const int *)args[3] && (*(const int *)args[2] == MPI_UNDEFINED);
    case XM_FN_MPI_Testsome:
        return *(const int *)args[2] == MPI_UNDEFINED;
    default:
        return false;
    }
}

/* A function that tests, among those that are over. flag: where it says that it found one. */
static int test_visible(enum xm_function function, struct array *a, const long *args, int *flag)
{
    hide_transfers(a);
    int code = (int)xm_invoke(xm_mpi_functions[function], xm_mpi_arguments(function), args);
    if ((code == MPI_SUCCESS) && saw_nothing(function, a, args)) {
        *flag = 0;
    }
    return code;
}

/* Call a function again and again until its flag is set. */
static int repeat(enum xm_function function, struct array *a, const long *args, int *flag)
{
    struct xm_wait wait = xm_wait_begin("for one of several requests");

    for (;;) {
        xm_ops_progress();
        int code = test_visible(function, a, args, flag);
        if ((code != MPI_SUCCESS) || *flag) {
            return code;
        }
        xm_wait_step(&wait);
    }
}

/* (count, requests, index, status): the first that is over. */
static int wait_any(struct array *a, const long *args)
{
    int  flag = 0;
    long test_args[XM_MAX_ARGUMENTS] = {a->count, (long)a->used, args[2], (long)&flag, args[3]};

    return repeat(XM_FN_MPI_Testany, a, test_args, &flag);
}

/* (count, requests, outcount, indices, statuses): MPI_UNDEFINED if none is active. */
static int wait_some(struct array *a, const long *args)
{
    long test_args[XM_MAX_ARGUMENTS] = {a->count, (long)a->used, args[2], args[3], args[4]};

    return repeat(XM_FN_MPI_Testsome, a, test_args, (int *)args[2]);
}

/* Of several that are all to be over, or of one: where it says so. */
static int *flag_of(enum xm_function function, const long *args)
{
    switch (function) {
    case XM_FN_MPI_Testall:
    case XM_FN_MPI_Testsome:
        return (int *)args[2];
    case XM_FN_MPI_Testany:
        return (int *)args[3];
    default: /* MPI_Test, MPI_Request_get_status */
        return (int *)args[1];
    }
}

static int test(enum xm_function function, int profiling, struct array *a, const long *args)
{
    bool several = (function == XM_FN_MPI_Testany) || (function == XM_FN_MPI_Testsome);
    int *flag = flag_of(function, args);

    xm_ops_progress();
    hide_transfers(a);
    if ((a->hidden > 0) && several) {
        return test_visible(function, a, args, flag);
    }
    if (a->hidden > 0) {
        *flag = 0;
        return MPI_SUCCESS;
    }
    return (int)xm_mpi_forward(function, profiling, args);
}

static int wait_or_test(enum xm_function function, int profiling, const long *args, struct array *a)
{
    long changed[XM_MAX_ARGUMENTS];
    bool single = (function == XM_FN_MPI_Wait) || (function == XM_FN_MPI_Test) ||
                  (function == XM_FN_MPI_Request_get_status);

    memcpy(changed, args, (size_t)xm_mpi_arguments(function) * sizeof(long));
    if (function == XM_FN_MPI_Request_get_status) {
        changed[0] = (long)a->used[0];
    } else {
        changed[single ? 0 : 1] = (long)a->used;
    }
    if (!a->ours) {
        return (int)xm_mpi_forward(function, profiling, changed);
    }
    switch (function) {
    case XM_FN_MPI_Waitany:
        return wait_any(a, changed);
    case XM_FN_MPI_Waitsome:
        return wait_some(a, changed);
    case XM_FN_MPI_Wait:
    case XM_FN_MPI_Waitall:
        wait_for_ours(a);
        return (int)xm_mpi_forward(function, profiling, changed);
    default:
        return test(function, profiling, a, changed);
    }
}

int xm_request_call(enum xm_function function, int profiling, const long *args)
{
    struct array a;
    MPI_Request  one;
    bool         opened;

    xm_requests_progress();
    switch (function) {
    case XM_FN_MPI_Start:
        return start_one((MPI_Request *)args[0], profiling);
    case XM_FN_MPI_Startall:
        return start_all((int)args[0], (MPI_Request *)args[1], profiling);
    case XM_FN_MPI_Pready:
        return ready(function, profiling, args, (MPI_Request)(intptr_t)args[1]);
    case XM_FN_MPI_Pready_range:
    case XM_FN_MPI_Pready_list:
        return ready(function, profiling, args, (MPI_Request)(intptr_t)args[2]);
    case XM_FN_MPI_Parrived:
        return arrived(profiling, args);
    case XM_FN_MPI_Request_free:
        return free_request((MPI_Request *)args[0], profiling, args);
    case XM_FN_MPI_Request_get_status:
        one = (MPI_Request)(intptr_t)args[0];
        opened = open_array(&a, 1, &one);
        break;
    case XM_FN_MPI_Wait:
    case XM_FN_MPI_Test:
        opened = open_array(&a, 1, (MPI_Request *)args[0]);
        break;
    default:
        opened = open_array(&a, (int)args[0], (MPI_Request *)args[1]);
        break;
    }
    if (!opened) {
        return xm_raise(XM_HANDLE(MPI_COMM_WORLD), xcclSystemError, "out of memory for requests");
    }
    int code = wait_or_test(function, profiling, args, &a);
    close_array(&a);
    return code;
}
