/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for requests and testing them, ours and MPI's own mixed. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "comms/mailbox.h"
#include "comms/wait.h"
#include "data/kernels.h"
#include "ops/array.h"
#include "ops/inside.h"
#include "ops/missing.h"
#include "ops/pending.h"
#include "ops/results.h"
#include "transfers/watcher.h"

/* In so many a message that is to be fetched is looked for each time. */
enum { AT_ONCE = 64 };
/* Of the collectives that a long wait is for. */
enum { MOST_NAMED = 2 };

static struct xm_transfer *transfer_at(const struct xm_array *a, int i)
{
    return (a->entries[i] != NULL) ? __atomic_load_n(&a->entries[i]->transfer, __ATOMIC_ACQUIRE)
                                   : NULL;
}

static struct xm_fix fix_of(const struct xm_transfer *t)
{
    const struct xm_rendezvous *r = &t->rendezvous;
    bool                        fetched = (r->fetch == XM_FETCH_OVER);
    struct xm_fix               fix = {.bytes = fetched ? r->came : XM_WHOLE,
                                       .code = fetched ? r->code : MPI_SUCCESS,
                                       .comm = t->comm_gone ? XM_HANDLE(MPI_COMM_WORLD) : xm_transfer_comm(t),
                                       .instead = t->instead,
                                       .kept = r->kept,
                                       .source = r->source,
                                       .tag = r->tag};

    if (r->kept && t->instead && !fetched) { /* of another request than MPI will complete */
        fix.bytes = t->bytes;
        fix.code = t->code;
        /* MPICH calls the world's handler for every message that was matched before. */
        fix.raised = !XM_OPENMPI && (fix.comm == XM_HANDLE(MPI_COMM_WORLD));
    }
    if (t->wrong != MPI_SUCCESS) {
        fix.code = t->wrong;
        fix.raised = true;
    }
    return fix;
}

static bool needs_fix(const struct xm_transfer *t)
{
    return (t->rendezvous.fetch == XM_FETCH_OVER) || t->rendezvous.kept || t->instead ||
           (t->wrong != MPI_SUCCESS);
}

/* What MPI completes for a transfer that is over. */
static MPI_Request visible(const struct xm_transfer *t, MPI_Request given)
{
    return t->instead ? t->inner : given;
}

static void glance(const struct xm_array *a, int i)
{
    struct xm_transfer *t = transfer_at(a, i);

    if ((t != NULL) && t->rendezvous.watched) {
        xm_rendezvous_glance(t);
    }
}

/* The messages that have come; or those that MPI is not to complete first. */
static void begin_fetches(const struct xm_array *a, bool all)
{
    int n = all ? a->count : a->num_hideable;

    for (int k = 0; k < n; k++) {
        glance(a, all ? k : a->hideable[k]);
    }
}

static bool poll(const struct xm_array *a, struct xm_transfer *t)
{
    return a->looks ? xm_transfer_poll_among_threads(t) : xm_transfer_poll(t);
}

/*
 * What is known of one that is over goes before MPI completes it: from then on another thread may
 * be given the same handle. Persistent requests stay, and those whose status MPI does not know.
 */
static void show(struct xm_array *a, int i, const struct xm_transfer *t)
{
    bool fix = needs_fix(t) || (t->form == 'P'); /* is it still there afterwards? */

    a->used[i] = visible(t, a->given[i]);
    if (t->simple && (t->rendezvous.fetch == XM_FETCH_OVER)) {
        xm_entries_are_offered();
    }
    if (fix && !t->generalised) {
        a->fixes[i] = fix_of(t);
        a->fixed[i] = true;
    } else if ((t->form != 'P') && !a->looks) {
        xm_entry_forget(a->entries[i]);
        a->entries[i] = NULL;
    }
}

/* MPI sees those that are over. */
static void look_after(struct xm_array *a)
{
    a->hidden = 0;
    for (int k = 0; k < a->num_hideable; k++) {
        int                 i = a->hideable[k];
        struct xm_transfer *t = transfer_at(a, i);
        if ((t != NULL) && poll(a, t)) {
            show(a, i, t);
        } else if (t != NULL) { /* another thread may be fetching it */
            a->used[i] = XM_HANDLE(MPI_REQUEST_NULL);
            a->hidden++;
        }
    }
}

/*
 * Look after the transfers but those that MPI may complete first. Copies that begin are collected;
 * where they are over at once, so are their messages.
 */
static void hide_transfers(struct xm_array *a)
{
    bool many = (a->num_hideable > XM_FEW_TRANSFERS);

    xm_kernel_copies_collect(many ? XM_COLLECT_MANY : XM_COLLECT_FEW);
    if (a->entries != NULL) {
        if (!a->looks) {
            begin_fetches(a, (a->count <= AT_ONCE) || !a->any_first);
            if (many) { /* what has come does not wait for the others */
                xm_kernel_copies_collect(XM_COLLECT_SHORT);
            }
        }
        xm_watch_looked();
    }
    look_after(a);
    if (xm_kernel_copies_collect(XM_COLLECT_NONE)) {
        look_after(a);
    }
    if (a->hidden > 0) {
        xm_mailbox_looked();
        xm_watch_others(a->hidden);
    }
}

/* ---- statuses of messages that were fetched ---- */

/* Those that MPI may complete now are nobody's until it has returned. */
static void detach(struct xm_array *a)
{
    for (int k = 0; k < a->num_hideable; k++) {
        int i = a->hideable[k];
        if (a->fixed[i] && (a->entries[i]->transfer->form != 'P')) {
            xm_entry_take_out(a->given[i]);
        }
    }
}

/* Open MPI frees persistent requests that end with an error: their handle may become another's. */
static void attach_persistent(struct xm_array *a, int i)
{
    struct xm_entry *e = a->entries[i];

    if (a->fixes[i].instead) {
        e->transfer->inner = a->used[i];
    } else if (a->used[i] == XM_HANDLE(MPI_REQUEST_NULL)) {
        xm_entry_end(e);
        a->entries[i] = NULL;
        a->fixed[i] = false;
    }
}

static void attach(struct xm_array *a)
{
    for (int k = 0; k < a->num_hideable; k++) {
        int              i = a->hideable[k];
        struct xm_entry *e = a->entries[i];
        if (!a->fixed[i]) {
            continue;
        }
        if (e->transfer->form == 'P') {
            attach_persistent(a, i);
        } else if (a->used[i] == XM_HANDLE(MPI_REQUEST_NULL)) {
            xm_transfer_discard(e->transfer);
            xm_entry_free(e);
            a->entries[i] = NULL;
            a->fixed[i] = false;
        } else {
            xm_entry_put_back(e);
        }
    }
    for (int k = 0; k < a->num_ended; k++) {
        int i = a->ended[k].at;
        xm_entry_end(a->entries[i]);
        a->entries[i] = NULL;
    }
    a->num_ended = 0;
}

/* Of a generalised one, MPI asks for the status in every look, and keeps it in one place. */
static bool is_plain(const struct xm_array *a)
{
    const struct xm_transfer *t = (a->entries != NULL) ? transfer_at(a, 0) : NULL;

    return (t != NULL) && !t->generalised && !t->instead;
}

/*
 * MPI_Request_get_status: it has the request itself as an argument, which may be another by now.
 * MPI may call an error handler, which may look at another one, or never come back: whoever has the
 * lock then has it already.
 */
static int look(struct xm_array *a, const long *args, int profiling)
{
    static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;
    static __thread bool   looks;
    const enum xm_function function = XM_FN_MPI_Request_get_status;
    const long             now[] = {(long)a->used[0], args[1], args[2]};
    bool                   alone = !is_plain(a);

    if (alone && !looks) {
        pthread_mutex_lock(&looking);
        looks = true;
    }
    int code = (int)xm_mpi_forward(function, profiling, now);
    if (alone && looks) {
        looks = false;
        pthread_mutex_unlock(&looking);
    }
    return (a->entries != NULL) ? xm_results_fix(function, a, now, code) : code;
}

/* ---- requests that MPI has completed first ---- */

static int status_argument(enum xm_function function)
{
    switch (function) {
    case XM_FN_MPI_Wait:
        return 1;
    case XM_FN_MPI_Test:
    case XM_FN_MPI_Waitall:
        return 2;
    case XM_FN_MPI_Testall:
        return 3;
    default: /* Testany, Testsome, which Waitany and Waitsome become */
        return 4;
    }
}

/* MPI is to say how they ended also where the program does not want to know. */
static void want_statuses(enum xm_function function, const struct xm_array *a, long *args)
{
    int  at = status_argument(function);
    bool ignored = ((MPI_Status *)args[at] == MPI_STATUS_IGNORE) ||
                   ((MPI_Status *)args[at] == MPI_STATUSES_IGNORE);

    if (a->any_first && ignored) {
        args[at] = (long)a->statuses;
    }
}

static void note_ended(struct xm_array *a, int i, int code, const MPI_Status *status)
{
    xm_array_find_late(a, i);
    if (xm_array_is_mpi_first(a, i) && (a->used[i] == XM_HANDLE(MPI_REQUEST_NULL))) {
        a->ended[a->num_ended++] = (struct xm_ended){i, code, status};
    }
}

/* Where one failed, MPI may have freed more than it says. */
static void find_ended(enum xm_function function, struct xm_array *a, const long *args, int code)
{
    bool several = xm_is_in_status(code);

    if ((code != MPI_SUCCESS) && !several) {
        for (int i = 0; i < a->count; i++) {
            note_ended(a, i, code, NULL);
        }
        return;
    }
    struct xm_results r = xm_results_of(function, a, args, several);
    for (int k = 0; k < r.count; k++) {
        note_ended(a, (r.indices != NULL) ? r.indices[k] : k,
                   several ? r.statuses[k].MPI_ERROR : MPI_SUCCESS, &r.statuses[k]);
    }
}

/* Of most short messages to host memory nothing is left to do: the others stay. */
static void end_simple(struct xm_array *a)
{
    int left = 0;

    for (int k = 0; k < a->num_ended; k++) {
        int i = a->ended[k].at;
        if ((a->entries[i]->first == XM_FIRST_SIMPLE) &&
            xm_entry_end_simply(a->entries[i], a->ended[k].code)) {
            a->entries[i] = NULL;
        } else {
            a->ended[left++] = a->ended[k];
        }
    }
    a->num_ended = left;
}

/* Fetch those messages of which a descriptor has come, and others that have come by now. */
static void begin_ended(const struct xm_array *a)
{
    bool fetches = false;

    for (int k = 0; k < a->num_ended; k++) {
        glance(a, a->ended[k].at);
    }
    for (int k = 0; (k < a->num_ended) && !fetches; k++) {
        const struct xm_rendezvous *r = &transfer_at(a, a->ended[k].at)->rendezvous;
        fetches = (__atomic_load_n(&r->fetch, __ATOMIC_RELAXED) != XM_FETCH_NONE);
    }
    if (fetches && (a->count > AT_ONCE)) {
        begin_fetches(a, true);
    }
}

static void finish_ended(enum xm_function function, struct xm_array *a, const long *args, int code)
{
    find_ended(function, a, args, code);
    if (a->num_ended == 0) {
        if (a->hidden == 0) {
            xm_mailbox_looked();
            xm_watch_others((a->count <= AT_ONCE) && xm_completes_some(function) ? a->count : 0);
        }
        return;
    }
    end_simple(a);
    bool many = (a->num_ended > XM_FEW_TRANSFERS);
    xm_kernel_copies_collect(many ? XM_COLLECT_MANY : XM_COLLECT_FEW);
    begin_ended(a);
    if (many) {
        xm_kernel_copies_collect(XM_COLLECT_SHORT);
    }
    for (int k = 0; k < a->num_ended; k++) {
        const struct xm_ended *ended = &a->ended[k];
        xm_transfer_completed(a->entries[ended->at]->transfer, ended->code, ended->status);
    }
    xm_kernel_copies_collect(XM_COLLECT_NONE);
    for (int k = 0; k < a->num_ended; k++) {
        int                 i = a->ended[k].at;
        struct xm_transfer *t = a->entries[i]->transfer;
        xm_transfer_finish(t);
        a->fixed[i] = needs_fix(t);
        if (a->fixed[i]) {
            a->fixes[i] = fix_of(t);
        }
    }
}

/* A persistent receive that MPI has ended, and of which the program does not know; -1: none. */
static int ended_at(const struct xm_array *a)
{
    for (int k = 0; XM_OPENMPI && (k < a->num_hideable); k++) {
        int                       i = a->hideable[k];
        const struct xm_transfer *t = transfer_at(a, i);
        if ((t != NULL) && t->started && (a->used[i] == t->request) &&
            xm_transfer_receives(t->function)) {
            return i;
        }
    }
    return -1;
}

/* Open MPI's MPI_Testany says that a persistent request that failed ended well: MPI_Wait does not.
 */
static int forward(enum xm_function function, struct xm_array *a, const long *args, int profiling)
{
    int i = (function == XM_FN_MPI_Testany) ? ended_at(a) : -1;

    if (i < 0) {
        return (int)xm_mpi_forward(function, profiling, args);
    }
    const long one[] = {(long)&a->used[i], args[4]};
    *(int *)args[2] = i;
    *(int *)args[3] = 1;
    transfer_at(a, i)->started = false;
    return (int)xm_mpi_forward(XM_FN_MPI_Wait, profiling, one);
}

/* Call MPI's function. */
static int complete(enum xm_function function, struct xm_array *a, const long *args, int profiling)
{
    long all[XM_MAX_ARGUMENTS];

    if (function == XM_FN_MPI_Request_get_status) {
        return look(a, args, profiling);
    }
    xm_requests_listen();
    if (a->entries == NULL) {
        int code = (int)xm_mpi_forward(function, profiling, args);
        return xm_results_tell(function, a, args, code);
    }
    memcpy(all, args, (size_t)xm_mpi_arguments(function) * sizeof(long));
    if (a->any_first) {
        want_statuses(function, a, all);
    }
    detach(a);
    int code = forward(function, a, all, profiling);
    if (a->any_first) {
        finish_ended(function, a, all, code);
    }
    code = xm_results_fix(function, a, all, code);
    attach(a);
    return xm_results_tell(function, a, all, code);
}

static bool operations_done(const struct xm_array *a)
{
    if (!xm_entries_of_more()) {
        return true;
    }
    for (int i = 0; i < a->count; i++) {
        struct xm_entry *e = xm_entry_find(a->used[i]);
        if ((e != NULL) && (e->op != NULL) && !__atomic_load_n(&e->op->done, __ATOMIC_ACQUIRE)) {
            return false;
        }
    }
    return true;
}

/* Those that an error handler has left, or that it waits for itself: see pending.h. */
static void await_claimed(const struct xm_array *a)
{
    for (int i = 0; (i < a->count) && xm_pending_has_claims(); i++) {
        struct xm_entry *e = xm_entry_find(a->used[i]);
        if ((e != NULL) && (e->op != NULL)) {
            xm_pending_await(e->op, NULL);
        }
    }
}

/* MPI is asked for none of them again, and delivers nothing while nobody asks it. */
static bool are_sends(const struct xm_array *a)
{
    for (int k = 0; k < a->num_hideable; k++) {
        const struct xm_transfer *t = transfer_at(a, a->hideable[k]);
        if ((t != NULL) && t->rendezvous.looks) {
            return false;
        }
    }
    return a->num_hideable > 0;
}

/* The collectives among them that are not over; returns how many it names, the first ones. */
static int describe_operations(const struct xm_array *a, char *buf, size_t len)
{
    size_t n = 0;
    int    told = 0;

    for (int i = 0; (i < a->count) && (i < AT_ONCE) && (told < MOST_NAMED) && (n < len); i++) {
        struct xm_entry *e = xm_entry_peek(a->used[i]);
        if ((e == NULL) || (e->op == NULL) || __atomic_load_n(&e->op->done, __ATOMIC_ACQUIRE)) {
            continue;
        }
        n += (size_t)snprintf(buf + n, len - n, "%s", (told > 0) ? "; " : "");
        if (n < len) {
            xm_missing_describe(e->op, buf + n, len - n);
            n += strlen(buf + n);
        }
        told++;
    }
    return told;
}

static void describe(void *arg, char *buf, size_t len)
{
    const struct xm_array *a = arg;
    char                   text[640] = "";

    int count = describe_operations(a, text, sizeof(text));
    xm_inside_waits(a->count, a->given, a->entries);
    xm_inside_describe(text, count, buf, len);
}

/* Which are over changes: whoever asks for the file of a long wait is to know of the others. */
static void step(struct xm_wait *wait, const struct xm_array *a)
{
    if (xm_wait_step(wait) == XM_WAIT_LOOK) {
        xm_inside_waits(a->count, a->given, a->entries);
    }
}

/* Until all of ours among them are over; MPI waits for its own requests itself. */
static void wait_for_ours(struct xm_array *a)
{
    struct xm_wait wait = xm_wait_begin_for_ever("for requests of calls on device memory");
    bool           sends = are_sends(a);

    wait.describe = describe;
    wait.arg = a;

    for (;;) {
        if (sends && (xm_watched_receives() > 0)) { /* their receivers may wait for this rank's */
            xm_progress();
        }
        hide_transfers(a);
        if ((a->hidden == 0) && operations_done(a)) {
            return;
        }
        xm_ops_progress();
        step(&wait, a);
    }
}

/* MPI found nothing that is active, because it did not see what is hidden. */
static bool saw_nothing(enum xm_function function, const struct xm_array *a, const long *args)
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
static int test_visible(enum xm_function function, struct xm_array *a, const long *args, int *flag)
{
    hide_transfers(a);
    int code = complete(function, a, args, 1);
    if ((code == MPI_SUCCESS) && saw_nothing(function, a, args)) {
        *flag = 0;
    }
    return code;
}

/* Call a function again and again until its flag is set. */
static int repeat(enum xm_function function, struct xm_array *a, const long *args, int *flag)
{
    struct xm_wait wait = xm_wait_begin_for_ever("for one of several requests");

    wait.describe = describe;
    wait.arg = a;
    for (;;) {
        xm_ops_progress();
        int code = test_visible(function, a, args, flag);
        if ((code != MPI_SUCCESS) || *flag) {
            return code;
        }
        step(&wait, a);
    }
}

/* (count, requests, index, status): the first that is over. */
static int wait_any(struct xm_array *a, const long *args)
{
    int  flag = 0;
    long test_args[XM_MAX_ARGUMENTS] = {a->count, (long)a->used, args[2], (long)&flag, args[3]};

    int code = repeat(XM_FN_MPI_Testany, a, test_args, &flag);
    if ((code == MPI_SUCCESS) && (*(int *)args[2] == MPI_UNDEFINED)) {
        /* None is active: MPICH 4.0 gives the status of that here only. */
        const long wait_args[XM_MAX_ARGUMENTS] = {a->count, (long)a->used, args[2], args[3]};
        code = (int)xm_mpi_forward(XM_FN_MPI_Waitany, 1, wait_args);
    }
    return code;
}

/* (count, requests, outcount, indices, statuses): MPI_UNDEFINED if none is active. */
static int wait_some(struct xm_array *a, const long *args)
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

/* In xm_test_alone(). */
static __thread bool alone;

static int test(enum xm_function function, int profiling, struct xm_array *a, const long *args)
{
    bool several = (function == XM_FN_MPI_Testany) || (function == XM_FN_MPI_Testsome);
    int *flag = flag_of(function, args);

    if (!alone) {
        xm_ops_progress();
    }
    hide_transfers(a);
    if (a->hidden > 0) {
        xm_progress_all(); /* MPI sees nothing of these, and its own test might move nothing */
    }
    if ((a->hidden > 0) && several) {
        return test_visible(function, a, args, flag);
    }
    if (a->hidden > 0) {
        *flag = 0;
        return MPI_SUCCESS;
    }
    return complete(function, a, args, profiling);
}

static int wait_or_test(enum xm_function function, int profiling, const long *args,
                        struct xm_array *a)
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
    await_claimed(a);
    switch (function) {
    case XM_FN_MPI_Waitany:
        return wait_any(a, changed);
    case XM_FN_MPI_Waitsome:
        return wait_some(a, changed);
    case XM_FN_MPI_Wait:
    case XM_FN_MPI_Waitall:
        wait_for_ours(a);
        return complete(function, a, changed, profiling);
    default:
        return test(function, profiling, a, changed);
    }
}

/*
 * A start that MPI carries on its own has no operation. Nobody has heard of its error if MPI raised
 * that on the communicator that the request has for itself. Of any of several requests MPICH raises
 * errors on MPI_COMM_WORLD.
 */
static void look_for_unheard(enum xm_function function, struct xm_array *a)
{
    bool one = (function == XM_FN_MPI_Wait) || (function == XM_FN_MPI_Test);

    if (a->raises || !xm_persistent_is_unheard() || !(one || XM_OPENMPI)) {
        return;
    }
    for (int i = 0; (a->entries != NULL) && !a->late && (i < a->count); i++) {
        const struct xm_entry *e = a->entries[i];
        if ((e != NULL) && xm_entry_is_persistent(e) && (a->ops[i] == NULL) &&
            (e->held.comm != XM_HANDLE(MPI_COMM_NULL)) && (e->inner != a->used[i])) {
            a->raises = true;
            a->raises_on = e->call.comm;
            return;
        }
    }
}

int xm_wait_or_test(enum xm_function function, int profiling, const long *args, int count,
                    MPI_Request *requests)
{
    struct xm_array a;

    if (!xm_array_open(&a, function, count, requests)) {
        return xm_raise(XM_HANDLE(MPI_COMM_WORLD), xcclSystemError, "out of memory for requests");
    }
    xm_persistent_listen();
    int code = wait_or_test(function, profiling, args, &a);
    if (code != MPI_SUCCESS) {
        look_for_unheard(function, &a);
    }
    xm_array_close(&a);
    if (a.raises) { /* last: the handler may not return */
        xm_pmpi.Comm_call_errhandler(a.raises_on, code);
    }
    return code;
}

int xm_test_alone(int count, MPI_Request *requests, int *flag, MPI_Status *statuses)
{
    const long args[] = {count, (long)requests, (long)flag, (long)statuses};

    alone = true;
    int code = xm_wait_or_test(XM_FN_MPI_Testall, 1, args, count, requests);
    alone = false;
    return code;
}
