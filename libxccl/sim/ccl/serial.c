/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XCCL_SIM_SERIAL: one hardware queue per device. The operations of all communicators on a device
 * run in the order in which this process issued them, one after the other. Two communicators that
 * are used in different orders on two ranks then wait for each other for ever, as kernels on a GPU
 * do that share a queue or fill the device.
 */
#include "ccl/ccl.h"

static struct xs_task *first[XS_MAX_DEVICES]; /* running or next to run */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  changed = PTHREAD_COND_INITIALIZER;

static void append(struct xs_task *task)
{
    struct xs_task **link = &first[task->comm->device];

    while (*link != NULL) {
        link = &(*link)->behind;
    }
    task->behind = NULL;
    *link = task;
}

static void erase(struct xs_task *task)
{
    struct xs_task **link = &first[task->comm->device];

    while ((*link != NULL) && (*link != task)) {
        link = &(*link)->behind;
    }
    if (*link != NULL) {
        *link = task->behind;
    }
}

/* In one step: two threads that use one stream must get the same order in both queues. */
enum xs_error xs_serial_enqueue(struct xs_stream *stream, xs_work_fn *work, struct xs_task *task)
{
    if (!xs_config()->serial) {
        return xs_stream_enqueue(stream, work, NULL, task);
    }
    pthread_mutex_lock(&lock);
    append(task);
    enum xs_error res = xs_stream_enqueue(stream, work, NULL, task);
    if (res != XS_OK) {
        erase(task);
    }
    pthread_mutex_unlock(&lock);
    return res;
}

/* Of a graph that is launched now: it goes to its stream next. */
void xs_serial_append(struct xs_task *task)
{
    if (xs_config()->serial) {
        pthread_mutex_lock(&lock);
        append(task);
        pthread_mutex_unlock(&lock);
    }
}

bool xs_serial_begin(struct xs_task *task)
{
    struct xs_comm *comm = task->comm;
    bool            good = true;

    if (!xs_config()->serial) {
        return true;
    }
    pthread_mutex_lock(&lock);
    while (good && (first[comm->device] != task)) {
        good = (__atomic_load_n(&comm->aborted, __ATOMIC_ACQUIRE) == 0);
        if (good) {
            pthread_cond_wait(&changed, &lock);
        }
    }
    pthread_mutex_unlock(&lock);
    return good;
}

void xs_serial_end(struct xs_task *task)
{
    if (!xs_config()->serial) {
        return;
    }
    pthread_mutex_lock(&lock);
    erase(task);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void xs_serial_wake(void)
{
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}
