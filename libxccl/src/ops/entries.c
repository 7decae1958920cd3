/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests that the program holds, found by their handles; and receives that are nothing more
 * than an entry here. A short receive into host memory most often brings what its sender has in
 * host memory, too, and costs a few hundred nanoseconds in MPI: a transfer would double that. It
 * becomes one if a descriptor comes, or where a call wants to know more of it.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "ops/entry.h"
#include "transfers/watcher.h"

enum { BUCKET_BITS = 12, BUCKETS = 1 << BUCKET_BITS };

static pthread_mutex_t  lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_entry *table[BUCKETS];
static int              live;      /* atomic: entries */
static int              transfers; /* atomic: of them, transfers' */
static int              simple;    /* atomic: of them, those that are nothing more */
static struct xm_entry *simples;   /* these */
static struct xm_entry *next_look; /* NULL: the first */

/* So many simple receives after one to which a descriptor came, one may come to, too. */
enum { LIKELY = 256 };
static int likely; /* atomic */

int xm_entries_hidden(void)
{
    return xm_persistent_requests() + __atomic_load_n(&transfers, __ATOMIC_ACQUIRE) +
           __atomic_load_n(&simple, __ATOMIC_ACQUIRE);
}

/* While one is put in or out it may be counted as such. */
bool xm_entries_of_more(void)
{
    return __atomic_load_n(&live, __ATOMIC_ACQUIRE) !=
           __atomic_load_n(&transfers, __ATOMIC_ACQUIRE) +
               __atomic_load_n(&simple, __ATOMIC_ACQUIRE);
}

bool xm_entries_are_simple(void)
{
    return (*xm_rendezvous_watched() < XM_WATCHED_ALL) &&
           (__atomic_load_n(&live, __ATOMIC_ACQUIRE) == __atomic_load_n(&simple, __ATOMIC_ACQUIRE));
}

int xm_requests_live(void)
{
    return __atomic_load_n(&live, __ATOMIC_ACQUIRE);
}

static struct xm_entry **bucket_of(MPI_Request handle)
{
    uint64_t hash = (uint64_t)(uintptr_t)handle * 0x9e3779b97f4a7c15u;

    return &table[hash >> (64 - BUCKET_BITS)];
}

/* The allocator takes as long as the rest of a call. With the lock held. */
enum { MOST_SPARE = 256 };
static struct xm_entry *spares;
static int              num_spares;

static struct xm_entry *take_spare(size_t cleared)
{
    struct xm_entry *e = spares;

    if (e == NULL) {
        return calloc(1, sizeof(*e));
    }
    spares = e->next;
    num_spares--;
    memset(e, 0, cleared);
    return e;
}

static void give_spare(struct xm_entry *e)
{
    if (num_spares >= MOST_SPARE) {
        free(e);
        return;
    }
    e->next = spares;
    spares = e;
    num_spares++;
}

struct xm_entry *xm_entry_new(void)
{
    pthread_mutex_lock(&lock);
    struct xm_entry *e = take_spare(sizeof(*e));
    pthread_mutex_unlock(&lock);
    return e;
}

void xm_entry_free(struct xm_entry *e)
{
    if (e != NULL) {
        pthread_mutex_lock(&lock);
        give_spare(e);
        pthread_mutex_unlock(&lock);
    }
}

/* With the lock held. */
static void put_in(struct xm_entry *e)
{
    struct xm_entry **bucket = bucket_of(e->handle);

    e->next = *bucket;
    *bucket = e;
}

void xm_entry_add(struct xm_entry *e)
{
    pthread_mutex_lock(&lock);
    put_in(e);
    pthread_mutex_unlock(&lock);
    __atomic_add_fetch(&live, 1, __ATOMIC_RELEASE);
}

/* With the lock held. */
static struct xm_entry *find(MPI_Request handle)
{
    struct xm_entry *e = *bucket_of(handle);

    while ((e != NULL) && ((e->handle != handle) || e->completing)) {
        e = e->next;
    }
    return e;
}

/* With the lock held. */
static void unlink_entry(struct xm_entry *e)
{
    struct xm_entry **at = bucket_of(e->handle);

    while (*at != e) {
        at = &(*at)->next;
    }
    *at = e->next;
}

/* ---- receives that are nothing more ---- */

static bool is_nothing_more(const struct xm_entry *e)
{
    return (e->first == XM_FIRST_SIMPLE) && (e->transfer == NULL);
}

/* With the lock held. */
static void unlist(struct xm_entry *e)
{
    next_look = (next_look == e) ? e->after : next_look;
    if (e->before != NULL) {
        e->before->after = e->after;
    } else {
        simples = e->after;
    }
    if (e->after != NULL) {
        e->after->before = e->before;
    }
    __atomic_sub_fetch(&simple, 1, __ATOMIC_RELEASE);
}

/* With the lock held. */
static void make_transfer(struct xm_entry *e)
{
    struct xm_transfer *t = xm_transfer_new();

    if (t == NULL) {
        xc_error("MPI_Irecv: %s", xc_last_detail());
        return;
    }
    xm_transfer_read_looked(t, XM_FN_MPI_Irecv, e->args);
    t->request = e->handle;
    t->comm_gone = e->comm_gone;
    xm_watch(t);
    __atomic_add_fetch(&transfers, 1, __ATOMIC_RELEASE);
    unlist(e);
    __atomic_store_n(&e->transfer, t, __ATOMIC_RELEASE);
}

/* With the lock held. */
static void count_unlikely(void)
{
    int now = __atomic_load_n(&likely, __ATOMIC_RELAXED);

    if (now > 0) {
        __atomic_store_n(&likely, now - 1, __ATOMIC_RELAXED);
    }
}

void xm_entries_are_offered(void)
{
    if (__atomic_load_n(&likely, __ATOMIC_RELAXED) != LIKELY) {
        __atomic_store_n(&likely, LIKELY, __ATOMIC_RELAXED);
    }
}

bool xm_entries_may_be_offered(void)
{
    return (__atomic_load_n(&likely, __ATOMIC_RELAXED) > 0) &&
           (__atomic_load_n(&simple, __ATOMIC_RELAXED) +
                __atomic_load_n(&transfers, __ATOMIC_RELAXED) >
            1);
}

static bool has_descriptor(const struct xm_entry *e)
{
    uint64_t first;

    memcpy(&first, (const void *)e->args[0], sizeof(first));
    return xm_descriptor_is_magic(first);
}

/* Some of those that are there; true at the end of the list. */
static bool look_at_some(void)
{
    enum { SOME = 64 };

    pthread_mutex_lock(&lock);
    struct xm_entry *e = (next_look != NULL) ? next_look : simples;
    for (int i = 0; (i < SOME) && (e != NULL); i++) {
        struct xm_entry *after = e->after;
        if (has_descriptor(e)) {
            make_transfer(e);
            xm_entries_are_offered();
        }
        e = after;
    }
    next_look = e;
    pthread_mutex_unlock(&lock);
    return e == NULL;
}

static int count_simple(void)
{
    return __atomic_load_n(&simple, __ATOMIC_SEQ_CST);
}

int xm_request_keep_simple(const long *args)
{
    static const struct xm_watch_too too = {count_simple, look_at_some};

    pthread_mutex_lock(&lock);
    struct xm_entry *e = take_spare(offsetof(struct xm_entry, call));
    if (e != NULL) {
        e->handle = *(const MPI_Request *)args[XM_SIMPLE_ARGS - 1];
        e->first = XM_FIRST_SIMPLE;
        memcpy(e->args, args, sizeof(e->args));
        put_in(e);
        e->after = simples;
        if (simples != NULL) {
            simples->before = e;
        }
        simples = e;
        __atomic_add_fetch(&simple, 1, __ATOMIC_SEQ_CST);
    }
    pthread_mutex_unlock(&lock);
    if (e == NULL) {
        return xm_raise(XM_HANDLE(MPI_COMM_WORLD), xcclSystemError, "out of memory for a request");
    }
    __atomic_add_fetch(&live, 1, __ATOMIC_RELEASE);
    xm_watch_too(&too);
    return MPI_SUCCESS;
}

bool xm_entry_end_simply(struct xm_entry *e, int code)
{
    bool over = false;

    pthread_mutex_lock(&lock);
    if (is_nothing_more(e) && (code == MPI_SUCCESS) && has_descriptor(e)) {
        make_transfer(e);
        xm_entries_are_offered();
    }
    if (is_nothing_more(e)) {
        count_unlikely();
        unlist(e);
        unlink_entry(e);
        give_spare(e);
        over = true;
    }
    pthread_mutex_unlock(&lock);
    if (over) {
        __atomic_sub_fetch(&live, 1, __ATOMIC_RELEASE);
    } else if ((code == MPI_SUCCESS) && xm_transfer_is_over_simply(e->transfer)) {
        xm_entry_end(e);
        over = true;
    }
    return over;
}

/* ---- to find them ---- */

/* As who does not know of simple ones wants it. With the lock held. */
static struct xm_entry *find_more(MPI_Request handle)
{
    struct xm_entry *e = find(handle);

    if ((e != NULL) && is_nothing_more(e)) {
        make_transfer(e);
        count_unlikely();
    }
    return e;
}

struct xm_entry *xm_entry_peek(MPI_Request handle)
{
    pthread_mutex_lock(&lock);
    struct xm_entry *e = find(handle);
    pthread_mutex_unlock(&lock);
    return e;
}

struct xm_entry *xm_entry_of_simple(MPI_Request handle)
{
    struct xm_entry *e = xm_entry_peek(handle);

    return ((e != NULL) && (e->first == XM_FIRST_SIMPLE)) ? e : NULL;
}

struct xm_entry *xm_entry_find(MPI_Request handle)
{
    pthread_mutex_lock(&lock);
    struct xm_entry *e = find_more(handle);
    pthread_mutex_unlock(&lock);
    return e;
}

bool xm_entries_any(int count, const MPI_Request *handles)
{
    bool any = false;

    pthread_mutex_lock(&lock);
    for (int i = 0; (i < count) && !any; i++) {
        any = (find(handles[i]) != NULL);
    }
    pthread_mutex_unlock(&lock);
    return any;
}

void xm_entries_find(int count, const MPI_Request *handles, enum xm_first first,
                     struct xm_entry **entries)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++) {
        struct xm_entry *e = (first == XM_FIRST_NONE) ? find_more(handles[i]) : find(handles[i]);
        entries[i] = e;
        if ((e != NULL) && xm_entry_is_first(e, first)) {
            e->completing = true;
        }
    }
    pthread_mutex_unlock(&lock);
}

void xm_entries_found_again(int count, struct xm_entry *const *entries)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++) {
        if (entries[i] != NULL) {
            entries[i]->completing = false;
        }
    }
    pthread_mutex_unlock(&lock);
}

static void count_out(const struct xm_entry *e)
{
    __atomic_sub_fetch(&live, 1, __ATOMIC_RELEASE);
    __atomic_sub_fetch(&transfers, (e->transfer != NULL), __ATOMIC_RELEASE);
}

void xm_entry_put_back(struct xm_entry *e)
{
    xm_entry_add(e);
    __atomic_add_fetch(&transfers, (e->transfer != NULL), __ATOMIC_RELEASE);
}

struct xm_entry *xm_entry_take_out(MPI_Request handle)
{
    pthread_mutex_lock(&lock);
    struct xm_entry *e = find_more(handle);
    if (e != NULL) {
        unlink_entry(e);
    }
    pthread_mutex_unlock(&lock);
    if (e != NULL) {
        count_out(e);
    }
    return e;
}

void xm_entry_end(struct xm_entry *e)
{
    struct xm_transfer *t = e->transfer;

    pthread_mutex_lock(&lock);
    unlink_entry(e);
    give_spare(e);
    pthread_mutex_unlock(&lock);
    __atomic_sub_fetch(&live, 1, __ATOMIC_RELEASE);
    __atomic_sub_fetch(&transfers, 1, __ATOMIC_RELEASE);
    xm_transfer_discard(t);
}

/* Open MPI may give a persistent request another handle when it is started again. */
void xm_entry_follow(struct xm_entry *e, MPI_Request handle)
{
    if (handle != e->handle) {
        pthread_mutex_lock(&lock);
        unlink_entry(e);
        e->handle = e->transfer->request = handle;
        put_in(e);
        pthread_mutex_unlock(&lock);
    }
}

void xm_requests_comm_freeing(MPI_Comm comm)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; (i < BUCKETS) && (xm_requests_live() > 0); i++) {
        for (struct xm_entry *e = table[i]; e != NULL; e = e->next) {
            if ((e->transfer != NULL) && (xm_transfer_comm(e->transfer) == comm)) {
                e->transfer->comm_gone = true;
            }
        }
    }
    for (struct xm_entry *e = simples; e != NULL; e = e->after) {
        e->comm_gone = e->comm_gone || ((MPI_Comm)(intptr_t)e->args[XM_SIMPLE_COMM] == comm);
    }
    pthread_mutex_unlock(&lock);
}

int xm_request_keep(struct xm_transfer *t)
{
    enum xm_first first = t->simple                     ? XM_FIRST_SIMPLE
                          : xm_transfer_is_mpi_first(t) ? XM_FIRST_SHORT
                                                        : XM_FIRST_NONE;

    pthread_mutex_lock(&lock);
    struct xm_entry *e = take_spare(offsetof(struct xm_entry, call));
    if (e != NULL) {
        e->handle = t->request;
        e->transfer = t;
        e->first = first;
        put_in(e);
    }
    pthread_mutex_unlock(&lock);
    if (e == NULL) {
        return xm_raise(XM_HANDLE(MPI_COMM_WORLD), xcclSystemError, "out of memory for a request");
    }
    __atomic_add_fetch(&live, 1, __ATOMIC_RELEASE);
    __atomic_add_fetch(&transfers, 1, __ATOMIC_RELEASE);
    return MPI_SUCCESS;
}
