/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/inside.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/params.h"
#include "transfers/offer.h"

enum { MESSAGES = 6, MOST_LOOKED_AT = 256 };

enum place { ELSEWHERE, WORLD, SELF };

/* One that is waited for. */
struct message {
    int32_t sends; /* else it is received */
    int32_t peer, tag;
    int32_t world; /* rank of MPI_COMM_WORLD, or -1 */
    int32_t place, comm_size;
};

struct call {
    struct timespec since;
    int32_t         function;
    int32_t         requests; /* -1: it is no call that waits for requests */
    int32_t         num_messages;
    int32_t         unknown; /* requests that are waited for, of MPI alone or too many */
    struct message  messages[MESSAGES];
};

union words {
    struct call c;
    uint64_t    word[sizeof(struct call) / sizeof(uint64_t)];
};
_Static_assert(sizeof(struct call) % sizeof(uint64_t) == 0, "words fill it");

/* One for each thread, for ever: a signal handler goes through them. */
struct thread {
    struct thread *next;
    int            owned;   /* atomic */
    uint64_t       version; /* atomic; odd: being written */
    int            active;  /* atomic: it is in the call */
    const void    *frame;   /* of the stack, at the call */
    union words    now;
};

static struct thread *threads; /* atomic */
static pthread_key_t  key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static __thread struct thread *own;

static void give_up(void *thread)
{
    struct thread *t = thread;

    own = NULL;
    __atomic_store_n(&t->active, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&t->owned, 0, __ATOMIC_RELEASE);
}

static void make_key(void)
{
    pthread_key_create(&key, give_up);
}

static struct thread *take_over(void)
{
    struct thread *t = __atomic_load_n(&threads, __ATOMIC_ACQUIRE);

    for (; t != NULL; t = t->next) {
        int free_one = 0;
        if (__atomic_compare_exchange_n(&t->owned, &free_one, 1, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            return t;
        }
    }
    return NULL;
}

/* NULL: out of memory; then nothing is known of this thread. */
static struct thread *own_thread(void)
{
    if (own != NULL) {
        return own;
    }
    pthread_once(&once, make_key);
    struct thread *t = take_over();
    if (t == NULL) {
        t = calloc(1, sizeof(*t));
        if (t == NULL) {
            return NULL;
        }
        t->owned = 1;
        t->next = __atomic_load_n(&threads, __ATOMIC_ACQUIRE);
        while (!__atomic_compare_exchange_n(&threads, &t->next, t, true, __ATOMIC_RELEASE,
                                            __ATOMIC_ACQUIRE)) {}
    }
    pthread_setspecific(key, t);
    own = t;
    return t;
}

/* Whoever reads any of these words sees the odd version too. (ThreadSanitizer knows no fences.) */
static void store(struct thread *t, const union words *w)
{
    uint64_t version = __atomic_load_n(&t->version, __ATOMIC_RELAXED);

    __atomic_store_n(&t->version, version + 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < sizeof(w->word) / sizeof(w->word[0]); i++) {
        __atomic_store_n(&t->now.word[i], w->word[i], __ATOMIC_RELEASE);
    }
    __atomic_store_n(&t->version, version + 2, __ATOMIC_RELEASE);
}

static bool load(const struct thread *t, union words *w)
{
    uint64_t version = __atomic_load_n(&t->version, __ATOMIC_ACQUIRE);

    for (size_t i = 0; i < sizeof(w->word) / sizeof(w->word[0]); i++) {
        w->word[i] = __atomic_load_n(&t->now.word[i], __ATOMIC_ACQUIRE);
    }
    return ((version & 1) == 0) && (__atomic_load_n(&t->version, __ATOMIC_RELAXED) == version);
}

/* ---- what a call waits for ---- */

static struct message message_of(bool sends, int peer, int tag, MPI_Comm comm)
{
    struct message m = {
        .sends = sends, .peer = peer, .tag = tag, .world = -1, .place = ELSEWHERE, .comm_size = 0};
    bool world = (comm == XM_HANDLE(MPI_COMM_WORLD));

    if (comm == XM_HANDLE(MPI_COMM_SELF)) {
        m.place = SELF;
    } else if (xm_mpi_has_world() && (comm != XM_HANDLE(MPI_COMM_NULL))) {
        m.place = world ? WORLD : ELSEWHERE;
        m.world = (peer < 0) ? -1 : xm_world_rank(comm, peer);
    }
    return m;
}

static void add(struct call *c, struct message m)
{
    if (m.peer == MPI_PROC_NULL) {
        return;
    }
    if (c->num_messages < MESSAGES) {
        c->messages[c->num_messages++] = m;
    } else {
        c->unknown++;
    }
}

/* Rank and tag stand behind a type, or first, where the call only asks for a message. */
static void add_messages(struct call *c, enum xm_function function, const long *args)
{
    const char *kinds = xm_transfer_kinds(function);
    int         comm = xm_transfer_argument(function, 'c');
    bool        sends = false, asks = (xm_transfer_form(function) == 'Q');

    if ((comm < 0) || (!asks && !xm_transfer_is_message(function))) {
        return;
    }
    for (int i = 0; kinds[i] != '\0'; i++) {
        sends = (kinds[i] == 's') || (kinds[i] == 'b') || (sends && (kinds[i] != 'r'));
        bool pair = (kinds[i] == '.') && (kinds[i + 1] == '.');
        if (pair) {
            add(c,
                message_of(sends, (int)args[i], (int)args[i + 1], (MPI_Comm)(intptr_t)args[comm]));
            sends = false; /* what follows at once is received: MPI_Sendrecv_replace */
            i++;
        }
        if (asks) {
            return;
        }
    }
}

/* Of a request of ours, that is not over. */
static void add_request(struct call *c, struct xm_entry *e)
{
    struct xm_transfer *t = __atomic_load_n(&e->transfer, __ATOMIC_ACQUIRE);

    if ((t != NULL) && t->comm_gone) {
        c->unknown++;
    } else if (t != NULL) {
        add_messages(c, t->function, t->args);
    } else if (e->first == XM_FIRST_SIMPLE) {
        add_messages(c, XM_FN_MPI_Irecv, e->args);
    } else {
        c->unknown++;
    }
}

static bool is_over(const struct xm_entry *e)
{
    const struct xm_transfer *t = __atomic_load_n(&e->transfer, __ATOMIC_ACQUIRE);

    return ((t != NULL) && __atomic_load_n(&t->done, __ATOMIC_ACQUIRE)) ||
           ((e->op != NULL) && __atomic_load_n(&e->op->done, __ATOMIC_ACQUIRE));
}

static void add_requests(struct call *c, int count, const MPI_Request *requests,
                         struct xm_entry *const *entries)
{
    c->num_messages = 0;
    c->unknown = 0;
    for (int i = 0; (requests != NULL) && (i < count); i++) {
        if (requests[i] == XM_HANDLE(MPI_REQUEST_NULL)) {
            continue;
        }
        struct xm_entry *e = (entries != NULL) ? entries[i] : NULL;
        e = ((e == NULL) && (i < MOST_LOOKED_AT)) ? xm_entry_peek(requests[i]) : e;
        if (e == NULL) {
            c->unknown++;
        } else if (!is_over(e)) {
            add_request(c, e);
        }
    }
}

/* Of a call that waits for requests: how many, and which. */
static int requests_of(enum xm_function function, const long *args, const MPI_Request **requests_p)
{
    switch (function) {
    case XM_FN_MPI_Wait:
        *requests_p = (const MPI_Request *)args[0];
        return 1;
    case XM_FN_MPI_Waitall:
    case XM_FN_MPI_Waitany:
    case XM_FN_MPI_Waitsome:
        *requests_p = (const MPI_Request *)args[1];
        return ((int)args[0] > 0) ? (int)args[0] : 0;
    default:
        *requests_p = NULL;
        return -1;
    }
}

/* ---- around calls ---- */

static bool is_within(const struct thread *t, const void *frame)
{
    return (__atomic_load_n(&t->active, __ATOMIC_RELAXED) != 0) && (frame < t->frame);
}

static void enter(struct thread *t, const void *frame, enum xm_function function, const long *args,
                  bool looks)
{
    union words        w = {.c = {.function = (int32_t)function}};
    const MPI_Request *requests;

    clock_gettime(CLOCK_REALTIME_COARSE, &w.c.since);
    w.c.requests = requests_of(function, args, &requests);
    if (xm_is_transfer(function)) {
        add_messages(&w.c, function, args);
    } else if (looks && (w.c.requests >= 0)) {
        add_requests(&w.c, w.c.requests, requests, NULL);
    }
    store(t, &w);
    t->frame = frame;
    __atomic_store_n(&t->active, 1, __ATOMIC_RELEASE);
}

void xm_inside_enter_at(const void *frame, enum xm_function function, const long *args)
{
    struct thread *t = own_thread();

    if ((t != NULL) && !is_within(t, frame)) {
        enter(t, frame, function, args, false);
    }
}

void xm_inside_leave_at(const void *frame)
{
    struct thread *t = own;

    if ((t != NULL) && !is_within(t, frame)) {
        __atomic_store_n(&t->active, 0, __ATOMIC_RELEASE);
    }
}

bool xm_inside_is_asked_for(void)
{
    return xc_params()->dump_dir != NULL;
}

/* May it wait for other ranks? */
static bool may_wait(enum xm_function f)
{
    if ((int)f < XM_NUM_COLLECTIVE_FUNCTIONS) {
        return xm_function_form(f) == XM_BLOCKING;
    }
    if (xm_is_transfer(f)) {
        return (strchr("BEQYZ", xm_transfer_form(f)) != NULL) && (f != XM_FN_MPI_Iprobe) &&
               (f != XM_FN_MPI_Improbe) && !xm_transfer_packs(f) && !xm_transfer_unpacks(f) &&
               (f != XM_FN_MPI_Reduce_local) && (f != XM_FN_MPI_Reduce_local_c);
    }
    switch (f) {
    case XM_FN_MPI_Finalize:
    case XM_FN_MPI_Session_finalize:
    case XM_FN_MPI_Wait:
    case XM_FN_MPI_Waitall:
    case XM_FN_MPI_Waitany:
    case XM_FN_MPI_Waitsome:
    case XM_FN_MPI_Win_wait:
    case XM_FN_MPI_Win_lock:
    case XM_FN_MPI_Win_lock_all:
    case XM_FN_MPI_Win_free:
    case XM_FN_MPI_Comm_spawn:
    case XM_FN_MPI_Comm_spawn_multiple:
    case XM_FN_MPI_Comm_free:
    case XM_FN_MPI_Comm_disconnect:
        return true;
    default:
        return false;
    }
}

long xm_inside_follow(enum xm_function function, int profiling, const long *args,
                      long (*serve)(enum xm_function function, int profiling, const long *args))
{
    struct thread *t = may_wait(function) ? own_thread() : NULL;
    const void    *frame = __builtin_frame_address(0);

    if ((t == NULL) || is_within(t, frame)) {
        return serve(function, profiling, args);
    }
    enter(t, frame, function, args, true);
    long res = serve(function, profiling, args);
    __atomic_store_n(&t->active, 0, __ATOMIC_RELEASE);
    return res;
}

/* calls/pairwise.h */
static bool consists_of_messages(const struct call *c)
{
    return (c->function < XM_NUM_COLLECTIVE_FUNCTIONS) &&
           xm_coll_is_pairwise(xm_function_coll((enum xm_function)c->function));
}

void xm_inside_waits(int count, const MPI_Request *requests, struct xm_entry *const *entries)
{
    struct thread *t = own;
    union words    w;

    if ((t != NULL) && (__atomic_load_n(&t->active, __ATOMIC_RELAXED) != 0) &&
        ((t->now.c.requests >= 0) || consists_of_messages(&t->now.c))) {
        w = t->now; /* nobody else writes it */
        add_requests(&w.c, count, requests, entries);
        store(t, &w);
    }
}

/* ---- as text ---- */

/* "PMPI_Recv" without its first letter. */
static const char *name_of(const struct call *c)
{
    return xm_mpi_function_name((enum xm_function)c->function);
}

static int describe_message(const struct message *m, char *buf, size_t len)
{
    char peer[64], tag[32];

    if (m->peer == MPI_ANY_SOURCE) {
        snprintf(peer, sizeof(peer), "any rank");
    } else if (m->world >= 0) {
        snprintf(peer, sizeof(peer), "rank %d of MPI_COMM_WORLD", m->world);
    } else {
        snprintf(peer, sizeof(peer), "rank %d of its communicator", m->peer);
    }
    if (m->tag == MPI_ANY_TAG) {
        snprintf(tag, sizeof(tag), "any tag");
    } else {
        snprintf(tag, sizeof(tag), "tag %d", m->tag);
    }
    return snprintf(buf, len, "a message %s %s, %s", m->sends ? "to" : "from", peer, tag);
}

void xm_inside_describe(const char *collectives, int count, char *buf, size_t len)
{
    const struct thread *t = own;
    size_t               n = 0;

    if ((t == NULL) || (__atomic_load_n(&t->active, __ATOMIC_RELAXED) == 0)) {
        snprintf(buf, len, "%s", (count > 0) ? collectives : "for messages of device memory");
        return;
    }
    const struct call *c = &t->now.c;
    int                more = c->unknown - count;
    n = (size_t)snprintf(buf, len, "%s", name_of(c));
    if (c->requests > 1) {
        n += (size_t)snprintf(buf + n, len - n, " of %d requests", c->requests);
    }
    if ((count > 0) && (n < len)) {
        n += (size_t)snprintf(buf + n, len - n, ": %s", collectives);
    }
    for (int i = 0; (i < c->num_messages) && (n < len); i++) {
        n += (size_t)snprintf(buf + n, len - n, ((i == 0) && (count == 0)) ? ": " : "; ");
        n += (n < len) ? (size_t)describe_message(&c->messages[i], buf + n, len - n) : 0;
    }
    if ((c->num_messages + count > 0) && (more > 0) && (n < len)) {
        snprintf(buf + n, len - n, "; and %d more", more);
    }
}

static int write_message(const struct message *m, bool first, char *buf, size_t len)
{
    static const char *const places[] = {[ELSEWHERE] = "other", [WORLD] = "world", [SELF] = "self"};

    return snprintf(buf, len,
                    "%s{\"sends\": %s, \"peer\": %d, \"rank\": %d, \"tag\": %d, \"comm\": \"%s\"}",
                    first ? "" : ", ", m->sends ? "true" : "false", m->peer, m->world, m->tag,
                    places[m->place]);
}

/* snprintf() of these formats needs no lock and no memory of the heap. */
static int write_call(const struct call *c, char *buf, size_t len)
{
    int n = snprintf(buf, len,
                     "{\"call\": \"%s\", \"since\": %lld.%06ld, \"requests\": %d, \"unknown\": %d, "
                     "\"messages\": [",
                     name_of(c), (long long)c->since.tv_sec, c->since.tv_nsec / 1000, c->requests,
                     c->unknown);

    for (int i = 0; (i < c->num_messages) && (n < (int)len); i++) {
        n += write_message(&c->messages[i], i == 0, buf + n, len - (size_t)n);
    }
    return (n < (int)len) ? n + snprintf(buf + n, len - (size_t)n, "]}") : n;
}

int xm_inside_write(int i, char *buf, size_t len)
{
    const struct thread *t = __atomic_load_n(&threads, __ATOMIC_ACQUIRE);
    union words          w;

    while ((t != NULL) && (i-- > 0)) {
        t = t->next;
    }
    if (t == NULL) {
        return -1;
    }
    if ((__atomic_load_n(&t->active, __ATOMIC_ACQUIRE) == 0) || !load(t, &w)) {
        return 0;
    }
    return write_call(&w.c, buf, len);
}
