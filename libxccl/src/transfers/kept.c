/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A probe that finds a message of a descriptor's size has to say how long the message is that the
 * descriptor stands for; so it must be taken out of MPI's queue and be read. So that no message
 * overtakes another, all that came before it from the same rank are taken as well, and are kept
 * here in their order: those that need not be read as matched messages of MPI's, the others as
 * messages of this process to itself with the same bytes. So each is received with MPI_Mrecv.
 */
#include "transfers/kept.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/params.h"
#include "comms/mailbox.h"
#include "comms/wait.h"
#include "transfers/fetch.h"
#include "transfers/rendezvous.h"
#include "transfers/transfer.h"

enum { KEPT_TAG = 1 };

struct kept {
    MPI_Comm     comm;
    int          source, tag;
    MPI_Count    bytes;
    MPI_Message  message;
    bool         matched; /* the program has it */
    bool         resent;  /* it came, and was sent to this process again */
    struct kept *next;
    MPI_Request  sent; /* of a message to this process */
    char         copy[XM_DESCRIPTOR_BYTES];
};

/* The program may be given its memory to receive into, and a descriptor in it may still be open. */
static void drop(struct kept *k)
{
    explicit_bzero(k->copy, sizeof(k->copy));
    free(k);
}

/*
 * Between MPI's queue and ours a message is in neither. A thread that looked for it in ours, and
 * then gave its receive to MPI, would wait for ever, or get a later one. So messages are moved, and
 * receives that were not served from here are given to MPI, by one thread at a time.
 */
static pthread_mutex_t matching = PTHREAD_MUTEX_INITIALIZER;
static __thread bool   inside;
static bool            moving; /* atomic: threads share communicators, and messages are moved */

/*
 * Receives that began before that and may not be MPI's yet. A message that fits one of them is left
 * to it: were the receive MPI's, the message would not be in the queue. Not for ever: a receive in
 * MPI_Sendrecv may have its message, and wait for something else. One that finds no place here
 * looks for its message under the lock.
 */
enum { RECEIVES = 64 };
static struct receive { /* all atomic */
    int      used;      /* 0: no, 1: it is being filled, 2: yes */
    MPI_Comm comm;
    int      source, tag;
} receives[RECEIVES];
static const uint64_t patience_ns = 1000000000;
/* A machine may stand still for longer than that: such a pause counts as one look. */
static const uint64_t most_per_look_ns = 20000000;
static uint64_t       waited_ns, looked_ns; /* with `matching` held */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept    *first, **end = &first;
static struct kept    *leaving; /* received, but perhaps not sent yet */
static int             count;   /* atomic: of those that are kept or matched */

bool xm_kept_by_threads(void)
{
    return __atomic_load_n(&moving, __ATOMIC_RELAXED);
}

void xm_kept_enter(void)
{
    if (!inside) {
        pthread_mutex_lock(&matching);
        inside = true;
    }
}

void xm_kept_leave(void)
{
    if (inside) {
        inside = false;
        pthread_mutex_unlock(&matching);
    }
}

bool xm_kept_has_threads(void)
{
    return __atomic_load_n(xm_rendezvous_watched(), __ATOMIC_RELAXED) == XM_WATCHED_ALL;
}

/* Where large messages may come in pieces, probes move messages before a device is in use, too. */
bool xm_kept_lets_pass(void)
{
    return !xm_kept_any() && !xm_kept_by_threads() &&
           !(xm_kept_has_threads() && (xc_params()->threads == XC_THREADS_MULTIPLE));
}

int xm_kept_register(MPI_Comm comm, int source, int tag)
{
    static __thread int next;

    for (int i = 0; (i < RECEIVES) && !xm_kept_by_threads(); i++) {
        int             slot = (next + i) % RECEIVES, unused = 0;
        struct receive *r = &receives[slot];
        if (!__atomic_compare_exchange_n(&r->used, &unused, 1, false, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED)) {
            continue;
        }
        next = slot;
        __atomic_store_n(&r->comm, comm, __ATOMIC_RELAXED);
        __atomic_store_n(&r->source, source, __ATOMIC_RELAXED);
        __atomic_store_n(&r->tag, tag, __ATOMIC_RELAXED);
        __atomic_store_n(&r->used, 2, __ATOMIC_SEQ_CST);
        if (!__atomic_load_n(&moving, __ATOMIC_SEQ_CST)) {
            return slot;
        }
        xm_kept_unregister(slot);
    }
    return -1;
}

void xm_kept_unregister(int slot)
{
    __atomic_store_n(&receives[slot].used, 0, __ATOMIC_RELEASE);
}

static void begin_moving(void)
{
    if (xm_kept_has_threads() && !xm_kept_by_threads()) {
        __atomic_store_n(&moving, true, __ATOMIC_SEQ_CST);
        looked_ns = xm_now_ns();
    }
}

static bool fits_receive(const struct receive *r, MPI_Comm comm, const MPI_Status *status)
{
    int source = __atomic_load_n(&r->source, __ATOMIC_RELAXED);
    int tag = __atomic_load_n(&r->tag, __ATOMIC_RELAXED);

    return (__atomic_load_n(&r->comm, __ATOMIC_RELAXED) == comm) &&
           ((source == MPI_ANY_SOURCE) || (source == status->MPI_SOURCE)) &&
           ((tag == MPI_ANY_TAG) || (tag == status->MPI_TAG));
}

static bool is_patient(void)
{
    uint64_t now = xm_now_ns(), passed = now - looked_ns;

    waited_ns += (passed < most_per_look_ns) ? passed : most_per_look_ns;
    looked_ns = now;
    return waited_ns < patience_ns;
}

/* Does a message fit a receive that is on its way to MPI? */
static bool is_awaited(MPI_Comm comm, const MPI_Status *status)
{
    if ((waited_ns >= patience_ns) || !is_patient()) {
        return false;
    }
    for (int i = 0; i < RECEIVES; i++) {
        const struct receive *r = &receives[i];
        if ((__atomic_load_n(&r->used, __ATOMIC_SEQ_CST) == 2) && fits_receive(r, comm, status)) {
            return true;
        }
    }
    return false;
}

bool xm_kept_any(void)
{
    return __atomic_load_n(&count, __ATOMIC_ACQUIRE) > 0;
}

static void add(struct kept *k)
{
    pthread_mutex_lock(&lock);
    *end = k;
    end = &k->next;
    pthread_mutex_unlock(&lock);
    __atomic_add_fetch(&count, 1, __ATOMIC_RELEASE);
}

/* With the lock held. It is freed once MPI is ready with it too. */
static void take(struct kept **at)
{
    struct kept *k = *at;

    *at = k->next;
    if (k->next == NULL) {
        end = at;
    }
    k->next = leaving;
    leaving = k;
    __atomic_sub_fetch(&count, 1, __ATOMIC_RELEASE);
}

static void reap(bool all)
{
    pthread_mutex_lock(&lock);
    for (struct kept **at = &leaving; *at != NULL;) {
        struct kept *k = *at;
        int          flag = 1;
        if (k->sent != XM_HANDLE(MPI_REQUEST_NULL)) {
            if (all) {
                xm_pmpi.Wait(&k->sent, MPI_STATUS_IGNORE);
            } else {
                xm_pmpi.Test(&k->sent, &flag, MPI_STATUS_IGNORE);
            }
        }
        if (flag) {
            *at = k->next;
            drop(k);
        } else {
            at = &k->next;
        }
    }
    pthread_mutex_unlock(&lock);
}

void xm_kept_end(void)
{
    reap(true);
}

/* Read a message and send it to this process: what was matched can be matched again. */
static int read_and_send(struct kept *k)
{
    struct xm_descriptor d;
    int                  why;

    int code = xm_pmpi.Mrecv(k->copy, XM_DESCRIPTOR_BYTES, XM_HANDLE(MPI_BYTE), &k->message,
                             MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) {
        return code;
    }
    memcpy(&d, k->copy, sizeof(d));
    /* Its sender's memory may be out of reach for a moment only: to ask why opens it once more. */
    if (!xm_descriptor_bytes(&d, &k->bytes) && !xm_descriptor_is_hidden(&d, &why)) {
        xm_descriptor_bytes(&d, &k->bytes);
    }
    code = xm_pmpi.Isend(k->copy, XM_DESCRIPTOR_BYTES, XM_HANDLE(MPI_BYTE), 0, KEPT_TAG,
                         xm_rendezvous_self(), &k->sent);
    return (code == MPI_SUCCESS)
               ? xm_pmpi.Mprobe(0, KEPT_TAG, xm_rendezvous_self(), &k->message, MPI_STATUS_IGNORE)
               : code;
}

/* Keep a message that was matched. */
static int keep(MPI_Comm comm, MPI_Message message, const MPI_Status *status, struct kept **kept_p)
{
    struct kept *k = calloc(1, sizeof(*k));

    if (k == NULL) {
        return MPI_ERR_OTHER;
    }
    k->comm = comm;
    k->source = status->MPI_SOURCE;
    k->tag = status->MPI_TAG;
    k->bytes = xm_transfer_bytes(status);
    k->message = message;
    k->sent = XM_HANDLE(MPI_REQUEST_NULL);
    k->resent = (k->bytes == XM_DESCRIPTOR_BYTES);
    int code = k->resent ? read_and_send(k) : MPI_SUCCESS;
    if (code != MPI_SUCCESS) {
        drop(k);
        return code;
    }
    *kept_p = k;
    return MPI_SUCCESS;
}

/* The message that was probed, and what came before it from its rank. */
static int keep_all(MPI_Comm comm, const MPI_Status *probed)
{
    begin_moving();
    for (;;) {
        MPI_Message  message;
        MPI_Status   status;
        struct kept *k;
        int          flag = 0;
        int          tag = MPI_ANY_TAG, code = MPI_SUCCESS;
        if (xm_kept_by_threads()) { /* the first is left there, or it is the one that is taken */
            code = xm_pmpi.Iprobe(probed->MPI_SOURCE, tag, comm, &flag, &status);
            if ((code != MPI_SUCCESS) || !flag || is_awaited(comm, &status)) {
                return code;
            }
            tag = status.MPI_TAG;
        }
        code = xm_pmpi.Improbe(probed->MPI_SOURCE, tag, comm, &flag, &message, &status);
        if ((code != MPI_SUCCESS) || !flag) {
            return code; /* another thread has it */
        }
        code = keep(comm, message, &status, &k);
        if (code != MPI_SUCCESS) {
            return code;
        }
        add(k);
        if (status.MPI_TAG == probed->MPI_TAG) {
            return MPI_SUCCESS;
        }
    }
}

static void tell(const struct kept *k, MPI_Status *status)
{
    if (status != MPI_STATUS_IGNORE) {
        xm_pmpi.Status_set_elements_x(status, XM_HANDLE(MPI_BYTE), k->bytes);
        xm_pmpi.Status_set_cancelled(status, 0);
        status->MPI_SOURCE = k->source;
        status->MPI_TAG = k->tag;
    }
}

static bool fits(const struct kept *k, MPI_Comm comm, int source, int tag)
{
    return !k->matched && (k->comm == comm) &&
           ((source == MPI_ANY_SOURCE) || (source == k->source)) &&
           ((tag == MPI_ANY_TAG) || (tag == k->tag));
}

/* What a function that probes gives the program; message: NULL if it does not match. */
struct answer {
    MPI_Message *message;
    int         *flag;
    MPI_Status  *status;
};

static struct answer answer_of(enum xm_function function, const long *args)
{
    switch (function) {
    case XM_FN_MPI_Probe:
        return (struct answer){NULL, NULL, (MPI_Status *)args[3]};
    case XM_FN_MPI_Iprobe:
        return (struct answer){NULL, (int *)args[3], (MPI_Status *)args[4]};
    case XM_FN_MPI_Mprobe:
        return (struct answer){(MPI_Message *)args[3], NULL, (MPI_Status *)args[4]};
    default: /* MPI_Improbe */
        return (struct answer){(MPI_Message *)args[4], (int *)args[3], (MPI_Status *)args[5]};
    }
}

static bool answer_from_kept(MPI_Comm comm, int source, int tag, const struct answer *a)
{
    bool found = false;

    pthread_mutex_lock(&lock);
    for (struct kept *k = first; (k != NULL) && !found; k = k->next) {
        found = fits(k, comm, source, tag);
        if (found) {
            tell(k, a->status);
            if (a->message != NULL) {
                k->matched = true;
                *a->message = k->message;
            }
            if (a->flag != NULL) {
                *a->flag = 1;
            }
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* The program has matched a message of a descriptor's size. */
static int read_matched(MPI_Comm comm, const MPI_Status *status, const struct answer *a)
{
    struct kept *k;
    int          code = keep(comm, *a->message, status, &k);

    if (code == MPI_SUCCESS) {
        k->matched = true;
        *a->message = k->message;
        tell(k, a->status);
        add(k);
    }
    return code;
}

/* Those of streams: what is enqueued on them is received by MPI alone. */
static bool has_no_offers(MPI_Comm comm)
{
    return (xm_rendezvous_excludes != NULL) && xm_rendezvous_excludes(comm);
}

/* Nobody sends these to a process that fetches none and takes none in pieces. */
static bool may_be_descriptor(void)
{
    return xm_mailbox_is_announced() || (xc_params()->threads == XC_THREADS_MULTIPLE);
}

/*
 * One look: MPI's code, and whether that is the answer. Where threads share a communicator, another
 * one may keep the message that a function of MPI's waits for, so those that wait look again.
 */
static int probe_once(enum xm_function function, int profiling, const long *args,
                      const struct answer *a, bool *over_p)
{
    int         source = (int)args[0], flag = 1, at = xm_transfer_argument(function, 'S');
    MPI_Comm    comm = (MPI_Comm)(intptr_t)args[2];
    MPI_Status  own = {.MPI_SOURCE = MPI_ANY_SOURCE};
    MPI_Status *status = (a->status != MPI_STATUS_IGNORE) ? a->status : &own;
    bool        looks = xm_kept_has_threads() && (a->flag == NULL);
    long        changed[XM_MAX_ARGUMENTS];
    int         code;

    *over_p = true;
    if (xm_kept_any() && answer_from_kept(comm, source, (int)args[1], a)) {
        return MPI_SUCCESS;
    }
    if (looks) {
        code = (a->message != NULL)
                   ? xm_pmpi.Improbe(source, (int)args[1], comm, &flag, a->message, status)
                   : xm_pmpi.Iprobe(source, (int)args[1], comm, &flag, status);
    } else {
        memcpy(changed, args, (size_t)xm_mpi_arguments(function) * sizeof(long));
        changed[at] = (long)status;
        code = (int)xm_mpi_forward(function, profiling, changed);
        flag = (a->flag != NULL) ? *a->flag : 1;
    }
    *over_p = flag || !looks;
    if ((code != MPI_SUCCESS) || !flag || (source == MPI_PROC_NULL) ||
        (xm_transfer_bytes(status) != XM_DESCRIPTOR_BYTES) || has_no_offers(comm) ||
        !may_be_descriptor()) {
        return code;
    }
    *over_p = (a->message != NULL);
    return (a->message != NULL) ? read_matched(comm, status, a) : keep_all(comm, status);
}

int xm_kept_probe(enum xm_function function, int profiling, const long *args)
{
    struct answer a = answer_of(function, args);
    bool          over = false;
    int           code = MPI_SUCCESS;

    reap(false);
    while (!over && (code == MPI_SUCCESS)) {
        xm_kept_enter();
        code = probe_once(function, profiling, args, &a, &over);
        xm_kept_leave();
        if (!over) {
            sched_yield();
        }
    }
    return code;
}

/* The message that the program has matched, or the first that fits a receive. */
struct wanted {
    const MPI_Message *matched; /* NULL: one that fits */
    MPI_Comm           comm;
    int                source, tag;
};

static bool take_wanted(const struct wanted *w, MPI_Message *message_p, struct xm_rendezvous *r)
{
    bool found = false;

    pthread_mutex_lock(&lock);
    for (struct kept **at = &first; (*at != NULL) && !found; at = found ? at : &(*at)->next) {
        struct kept *k = *at;
        found = (w->matched != NULL) ? (k->matched && (k->message == *w->matched))
                                     : fits(k, w->comm, w->source, w->tag);
        if (found) {
            *message_p = k->message;
            r->kept = true;
            r->source = k->source;
            r->tag = k->tag;
            r->comm = k->comm;
            r->resent = k->resent;
            take(at);
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

bool xm_kept_match(MPI_Comm comm, int source, int tag, MPI_Message *message_p,
                   struct xm_rendezvous *r)
{
    struct wanted w = {NULL, comm, source, tag};

    return take_wanted(&w, message_p, r);
}

bool xm_kept_has(MPI_Comm comm, int source, int tag)
{
    const struct kept *k;

    pthread_mutex_lock(&lock);
    for (k = first; (k != NULL) && !fits(k, comm, source, tag);) {
        k = k->next;
    }
    pthread_mutex_unlock(&lock);
    return k != NULL;
}

bool xm_kept_matched(MPI_Message message, struct xm_rendezvous *r)
{
    struct wanted w = {.matched = &message};
    MPI_Message   same;

    return take_wanted(&w, &same, r);
}
