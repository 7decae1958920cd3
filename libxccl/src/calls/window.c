/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows on device memory, under XCCL_WINDOWS=separate: MPI has a window of host memory, and at
 * each call by which MPI's separate memory model makes the public and the private copy meet, they
 * do.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/log.h"
#include "calls/calls.h"
#include "transfers/shadow.h"

struct window {
    MPI_Win           win;
    int               rank; /* of this process */
    struct xm_shadow *shadow;
    struct window    *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct window  *windows;
static int             number; /* atomic */

/*
 * Which calls synchronise the copies, before MPI's function or after it. At the end of an exposure
 * MPI says when all has been put; at its begin others may read at once what is there.
 */
struct row {
    enum xm_function function;
    int              window; /* argument */
    int              rank;   /* argument; only this process's own counts. -1: there is none */
    bool             before, after;
};

static const struct row rows[] = {
    {XM_FN_MPI_Win_fence, 1, -1, true, true},      {XM_FN_MPI_Win_post, 2, -1, true, false},
    {XM_FN_MPI_Win_wait, 0, -1, false, true},      {XM_FN_MPI_Win_test, 0, -1, false, true},
    {XM_FN_MPI_Win_lock, 3, 1, false, true},       {XM_FN_MPI_Win_unlock, 1, 0, true, true},
    {XM_FN_MPI_Win_lock_all, 1, -1, false, true},  {XM_FN_MPI_Win_unlock_all, 0, -1, true, true},
    {XM_FN_MPI_Win_sync, 0, -1, true, true},       {XM_FN_MPI_Win_free, 0, -1, true, true},
    {XM_FN_MPI_Win_get_attr, 0, -1, false, false},
};

bool xm_windows_any(void)
{
    return __atomic_load_n(&number, __ATOMIC_ACQUIRE) > 0;
}

static const struct row *row_of(enum xm_function function)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].function == function) {
            return &rows[i];
        }
    }
    return NULL;
}

static struct window *find(MPI_Win win)
{
    pthread_mutex_lock(&lock);
    struct window *w = windows;
    while ((w != NULL) && (w->win != win)) {
        w = w->next;
    }
    pthread_mutex_unlock(&lock);
    return w;
}

static void add(struct window *w)
{
    pthread_mutex_lock(&lock);
    w->next = windows;
    windows = w;
    pthread_mutex_unlock(&lock);
    __atomic_add_fetch(&number, 1, __ATOMIC_RELEASE);
}

/* Before MPI frees it: then another window may get its handle. */
static void take_out(struct window *w)
{
    struct window **at = &windows;

    pthread_mutex_lock(&lock);
    while (*at != w) {
        at = &(*at)->next;
    }
    *at = w->next;
    pthread_mutex_unlock(&lock);
    __atomic_sub_fetch(&number, 1, __ATOMIC_RELEASE);
}

int xm_window_create(struct xm_transfer *t, int profiling)
{
    MPI_Comm       comm = xm_transfer_comm(t);
    struct window *w = calloc(1, sizeof(*w));

    if (w == NULL) {
        return xm_raise(comm, xcclSystemError, "out of memory for a window");
    }
    xcclResult_t res = xm_shadow_make(&t->parts[0].buffer, &w->shadow);
    if (res != xcclSuccess) {
        free(w);
        return xm_raise(comm, res, xc_last_detail());
    }
    t->args[0] = (long)xm_shadow_public(w->shadow);
    int code = (int)xm_mpi_forward(t->function, profiling, t->args);
    if (code == MPI_SUCCESS) {
        xm_pmpi.Comm_rank(comm, &w->rank);
        w->win = *(MPI_Win *)t->args[5];
        add(w);
    } else {
        xm_shadow_free(w->shadow);
        free(w);
    }
    return code;
}

/* (window, keyval, value, flag): the program's own memory, and the model that it has to keep to. */
static void get_attr(const struct window *w, const long *args)
{
    static int model = MPI_WIN_SEPARATE;

    if (!*(const int *)args[3]) {
        return;
    }
    if ((int)args[1] == MPI_WIN_BASE) {
        *(void **)args[2] = xm_shadow_private(w->shadow);
    } else if ((int)args[1] == MPI_WIN_MODEL) {
        *(int **)args[2] = &model;
    }
}

static int forward(const struct row *row, struct window *w, int profiling, const long *args)
{
    xcclResult_t res = row->before ? xm_shadow_exchange(w->shadow) : xcclSuccess;

    if (res != xcclSuccess) {
        return xm_raise(XM_HANDLE(MPI_COMM_WORLD), res, xc_last_detail());
    }
    int code = (int)xm_mpi_forward(row->function, profiling, args);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (row->function == XM_FN_MPI_Win_get_attr) {
        get_attr(w, args);
    }
    bool over = (row->function != XM_FN_MPI_Win_test) || *(const int *)args[1];
    if (row->after && over) {
        res = row->before ? xm_shadow_fetch(w->shadow) : xm_shadow_exchange(w->shadow);
    }
    return (res == xcclSuccess) ? code : xm_raise(XM_HANDLE(MPI_COMM_WORLD), res, xc_last_detail());
}

int xm_window_call(enum xm_function function, int profiling, const long *args)
{
    const struct row *row = xm_windows_any() ? row_of(function) : NULL;
    struct window    *w = NULL;

    if (row != NULL) {
        bool frees = (function == XM_FN_MPI_Win_free);
        w = find(frees ? *(MPI_Win *)args[0] : (MPI_Win)(intptr_t)args[row->window]);
    }
    if ((w == NULL) || ((row->rank >= 0) && ((int)args[row->rank] != w->rank))) {
        return (int)xm_mpi_forward(function, profiling, args);
    }
    if (function != XM_FN_MPI_Win_free) {
        return forward(row, w, profiling, args);
    }
    take_out(w);
    int code = forward(row, w, profiling, args);
    if (code != MPI_SUCCESS) {
        add(w);
        return code;
    }
    xm_shadow_free(w->shadow);
    free(w);
    return code;
}
