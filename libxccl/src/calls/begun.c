/* SPDX-License-Identifier: BSD-3-Clause */
#include "calls/begun.h"

#include <pthread.h>
#include <string.h>

#include "transfers/access.h"
#include "transfers/staging.h"

static pthread_mutex_t     lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_transfer *begun;
static int                 num_begun; /* atomic */

bool xm_begun_any(void)
{
    return __atomic_load_n(&num_begun, __ATOMIC_ACQUIRE) > 0;
}

void xm_begun_add(struct xm_transfer *t)
{
    pthread_mutex_lock(&lock);
    t->number = xm_access_next();
    t->next = begun;
    begun = t;
    __atomic_add_fetch(&num_begun, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
}

static long argument(const struct xm_transfer *t, char kind)
{
    return t->args[xm_transfer_argument(t->function, kind)];
}

static bool is_file(const struct xm_transfer *t, long file)
{
    return (strchr(t->kinds, 'h') != NULL) &&
           ((MPI_File)(intptr_t)argument(t, 'h') == (MPI_File)(intptr_t)file);
}

struct xm_transfer *xm_begun_take_split(long file)
{
    struct xm_transfer **at = &begun, *t;

    pthread_mutex_lock(&lock);
    while (((t = *at) != NULL) && !is_file(t, file)) {
        at = &t->next;
    }
    if (t != NULL) {
        *at = t->next;
    }
    pthread_mutex_unlock(&lock);
    return t;
}

/* All of a window, to a rank of it, or to any (rank < 0), up to a number: in one pass. */
static struct xm_transfer *take_accesses(long window, int rank, uint64_t most)
{
    struct xm_transfer **at = &begun, *taken = NULL, **end = &taken, *t;

    pthread_mutex_lock(&lock);
    while ((t = *at) != NULL) {
        if ((t->number <= most) && xm_access_is(t, window, rank)) {
            *at = t->next;
            *end = t;
            end = &t->next;
        } else {
            at = &t->next;
        }
    }
    *end = NULL;
    pthread_mutex_unlock(&lock);
    return taken;
}

static void put_back(struct xm_transfer *left)
{
    struct xm_transfer **end = &left;

    if (left == NULL) {
        return;
    }
    pthread_mutex_lock(&lock);
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = begun;
    begun = left;
    pthread_mutex_unlock(&lock);
}

void xm_begun_end(struct xm_transfer *t)
{
    xm_transfer_discard(t);
    __atomic_sub_fetch(&num_begun, 1, __ATOMIC_RELEASE);
}

xcclResult_t xm_begun_deliver(long window, int rank, uint64_t most)
{
    static pthread_mutex_t delivering = PTHREAD_MUTEX_INITIALIZER;
    xcclResult_t           res = xcclSuccess;

    pthread_mutex_lock(&delivering);
    struct xm_transfer *left = take_accesses(window, rank, most);
    while ((res == xcclSuccess) && (left != NULL)) {
        struct xm_transfer *t = left;
        left = t->next;
        res = xm_transfer_copy_out(t, XM_WHOLE);
        if (res == xcclSuccess) { /* else the device may still be using what it holds */
            xm_begun_end(t);
        }
    }
    put_back(left);
    pthread_mutex_unlock(&delivering);
    /* Without the lock: it may wait, and MPI call a handler that synchronises as well. */
    return ((res == xcclSuccess) && xm_accesses_any())
               ? xm_accesses_synchronised(window, rank, most)
               : res;
}
