/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows on device memory, under XCCL_WINDOWS=separate: MPI has a window of host memory, and at
 * each call by which MPI's separate memory model makes the public and the private copy meet, they
 * do.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/params.h"
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

/*
 * Device memory that MPI cannot reach gets host memory in its place; *w_p stays NULL where the
 * window is MPI's alone. t has the arguments.
 */
static xcclResult_t stand_in(struct xm_transfer *t, struct window **w_p)
{
    if (t->scattered) {
        return xc_fail(xcclUnsupported, "the memory of a window is of several kinds, and this MPI "
                                        "is not GPU-aware; use memory of one kind");
    }
    if (xc_params()->windows != XC_WINDOWS_SEPARATE) {
        return xc_fail(xcclUnsupported,
                       "the memory of a window is a device's, and this MPI is not "
                       "GPU-aware; use host memory (MPI_Win_allocate), a GPU-aware MPI, or "
                       "XCCL_WINDOWS=separate, for programs that keep to MPI_WIN_SEPARATE");
    }
    struct window *w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return xc_fail(xcclSystemError, "out of memory for a window");
    }
    xcclResult_t res = xm_shadow_make(&t->parts[0].buffer, &w->shadow);
    if (res != xcclSuccess) {
        free(w);
        return res;
    }
    t->args[0] = (long)xm_shadow_public(w->shadow);
    *w_p = w;
    return xcclSuccess;
}

static void free_window(struct window *w)
{
    if (w != NULL) {
        xm_shadow_free(w->shadow);
        free(w);
    }
}

/*
 * The first rank that cannot make its part of the window, or -1. Only ranks that have agreed on
 * something before are known to have xccl all of them, and ask each other; else each knows of
 * itself.
 */
static int first_failed(MPI_Comm comm, bool failed, bool *agreed_p)
{
    struct xm_comm *xm = xm_comm_known(comm);
    int             rank = -1, size = 0, least;

    xm_pmpi.Comm_rank(comm, &rank);
    xm_pmpi.Comm_size(comm, &size);
    *agreed_p = (xm != NULL) && !xm->inter && (xm_comm_state_now(xm) != XM_COMM_NEW);
    if (xm != NULL) {
        xm_comm_unuse(xm);
    }
    int mine = failed ? rank : size;
    if (!*agreed_p || (xm_pmpi.Allreduce(&mine, &least, 1, XM_HANDLE(MPI_INT), XM_HANDLE(MPI_MIN),
                                         comm) != MPI_SUCCESS)) {
        least = mine;
    }
    return (least < size) ? least : -1;
}

/* Where the others do not know, they come to MPI's function: this rank has no memory there. */
static void join_without_memory(enum xm_function function, const long *args)
{
    long changed[XM_MAX_ARGUMENTS];

    memcpy(changed, args, sizeof(long) * (size_t)xm_mpi_arguments(function));
    changed[0] = changed[1] = 0;
    xm_mpi_forward(function, 1, changed);
}

static int raise_failed(enum xm_function function, const long *args, const char *why, int failed,
                        bool agreed)
{
    char     text[400];
    int      rank = -1;
    MPI_Comm comm = (MPI_Comm)(intptr_t)args[4];

    xm_pmpi.Comm_rank(comm, &rank);
    if (!agreed) {
        join_without_memory(function, args);
    }
    if (failed != rank) {
        snprintf(text, sizeof(text),
                 "no window was made: rank %d cannot make its part; the reason is in its output",
                 failed);
    } else {
        snprintf(text, sizeof(text), "%s", why);
    }
    return xm_raise(comm, xcclUnsupported, text);
}

int xm_window_create(enum xm_function function, int profiling, const long *args)
{
    struct xm_transfer t;
    struct window     *w = NULL;
    char               why[400];
    xcclResult_t       res = xcclSuccess;
    bool               agreed;
    MPI_Comm           comm = (MPI_Comm)(intptr_t)args[4];

    if (xm_config.faulty || (comm == XM_HANDLE(MPI_COMM_NULL))) {
        return (int)xm_mpi_forward(function, profiling, args);
    }
    bool own =
        (xm_transfer_way(function, args) != XM_WAY_PLAIN) && xm_transfer_read(&t, function, args);
    if (own) {
        res = stand_in(&t, &w);
        snprintf(why, sizeof(why), "%s", xc_last_detail());
    }
    int failed = first_failed(comm, res != xcclSuccess, &agreed);
    if (failed >= 0) {
        free_window(w);
        return raise_failed(function, args, why, failed, agreed);
    }
    int code = (int)xm_mpi_forward(function, profiling, own ? t.args : args);
    if ((w != NULL) && (code == MPI_SUCCESS)) {
        xm_pmpi.Comm_rank(comm, &w->rank);
        w->win = *(MPI_Win *)args[5];
        add(w);
    } else {
        free_window(w);
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

static bool returns_errors(MPI_Win win)
{
    MPI_Errhandler handler;

    if (xm_pmpi.Win_get_errhandler(win, &handler) != MPI_SUCCESS) {
        return false;
    }
    bool returns = (handler == XM_HANDLE(MPI_ERRORS_RETURN));
    xm_pmpi.Errhandler_free(&handler); /* Open MPI counts those who ask for it */
    return returns;
}

/*
 * A freed window has no error handler any more: where the program wanted errors as codes, it gets
 * one, and else MPI_COMM_WORLD's handler hears of it.
 */
static int raise_without_window(bool returns, xcclResult_t res, const char *text)
{
    if (!returns) {
        return xm_raise(XM_HANDLE(MPI_COMM_WORLD), res, text);
    }
    xc_error("%s", text);
    return xm_error_code(res, text);
}

/* A rank whose copies fail calls MPI all the same: the others may wait for it there. */
static int forward(const struct row *row, struct window *w, int profiling, const long *args)
{
    char         text[400] = "";
    bool         frees = (row->function == XM_FN_MPI_Win_free);
    bool         returns = frees && returns_errors(w->win);
    xcclResult_t res = row->before ? xm_shadow_exchange(w->shadow) : xcclSuccess;

    if (res != xcclSuccess) {
        snprintf(text, sizeof(text), "%s", xc_last_detail());
    }
    int code = (int)xm_mpi_forward(row->function, profiling, args);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (row->function == XM_FN_MPI_Win_get_attr) {
        get_attr(w, args);
    }
    bool over = (row->function != XM_FN_MPI_Win_test) || *(const int *)args[1];
    if ((res == xcclSuccess) && row->after && over) {
        res = row->before ? xm_shadow_fetch(w->shadow) : xm_shadow_exchange(w->shadow);
        snprintf(text, sizeof(text), "%s", (res != xcclSuccess) ? xc_last_detail() : "");
    }
    if (res == xcclSuccess) {
        return code;
    }
    return frees ? raise_without_window(returns, res, text) : xm_raise_on_window(w->win, res, text);
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
    if (*(const MPI_Win *)args[0] == w->win) {
        add(w); /* MPI has kept it */
    } else {
        free_window(w);
    }
    return code;
}
