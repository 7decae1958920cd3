/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A probe that finds a message of a descriptor's size has to say how long the message is that the
 * descriptor stands for; so it must be taken out of MPI's queue and be read. So that no message
 * overtakes another, all that came before it from the same rank are taken as well, and are kept
 * here in their order: those that need not be read as matched messages of MPI's, the others as
 * messages of this process to itself with the same bytes. So each is received with MPI_Mrecv.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "comms/wait.h"
#include "transfers/rendezvous.h"
#include "transfers/transfer.h"

enum { KEPT_TAG = 1 };

struct kept {
    MPI_Comm     comm;
    int          source, tag;
    MPI_Count    bytes;
    MPI_Message  message;
    bool         matched; /* the program has it */
    struct kept *next;
    MPI_Request  sent; /* of a message to this process */
    char         copy[XM_DESCRIPTOR_BYTES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept    *first, **end = &first;
static struct kept    *leaving; /* received, but perhaps not sent yet */
static int             count;   /* atomic: of those that are kept or matched */

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
            free(k);
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

    int code = xm_pmpi.Mrecv(k->copy, XM_DESCRIPTOR_BYTES, XM_HANDLE(MPI_BYTE), &k->message,
                             MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS) {
        return code;
    }
    memcpy(&d, k->copy, sizeof(d));
    xm_descriptor_bytes(&d, &k->bytes);
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
    int code = (k->bytes == XM_DESCRIPTOR_BYTES) ? read_and_send(k) : MPI_SUCCESS;
    if (code != MPI_SUCCESS) {
        free(k);
        return code;
    }
    *kept_p = k;
    return MPI_SUCCESS;
}

/* The message that was probed, and what came before it from its rank. */
static int keep_all(MPI_Comm comm, const MPI_Status *probed)
{
    for (;;) {
        MPI_Message  message;
        MPI_Status   status;
        struct kept *k;
        int          flag = 0;
        int code = xm_pmpi.Improbe(probed->MPI_SOURCE, MPI_ANY_TAG, comm, &flag, &message, &status);
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

int xm_kept_probe(enum xm_function function, int profiling, const long *args)
{
    int           source = (int)args[0], tag = (int)args[1];
    MPI_Comm      comm = (MPI_Comm)(intptr_t)args[2];
    struct answer a = answer_of(function, args);
    long          changed[XM_MAX_ARGUMENTS];
    MPI_Status    own = {.MPI_SOURCE = MPI_ANY_SOURCE};
    int           at = xm_transfer_argument(function, 'S');

    reap(false);
    memcpy(changed, args, (size_t)xm_mpi_arguments(function) * sizeof(long));
    MPI_Status *status = (a.status != MPI_STATUS_IGNORE) ? a.status : &own;
    changed[at] = (long)status;
    for (;;) {
        if (xm_kept_any() && answer_from_kept(comm, source, tag, &a)) {
            return MPI_SUCCESS;
        }
        int code = (int)xm_mpi_forward(function, profiling, changed);
        if ((code != MPI_SUCCESS) || ((a.flag != NULL) && !*a.flag) || (source == MPI_PROC_NULL) ||
            (xm_transfer_bytes(status) != XM_DESCRIPTOR_BYTES)) {
            return code;
        }
        code = (a.message != NULL) ? read_matched(comm, status, &a) : keep_all(comm, status);
        if ((code != MPI_SUCCESS) || (a.message != NULL)) {
            return code;
        }
    }
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

bool xm_kept_matched(MPI_Message message, struct xm_rendezvous *r)
{
    struct wanted w = {.matched = &message};
    MPI_Message   same;

    return take_wanted(&w, &same, r);
}
