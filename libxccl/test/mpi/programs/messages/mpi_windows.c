/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided communication with buffers in device memory and the window in host memory.
 * Usage: mpi_windows cuda|rocm|none CASE
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

enum { SLOTS = 16, UNTOUCHED = -77 };

/* A window of SLOTS integers on each rank, and the ranks to reach and to be reached from. */
struct window {
    MPI_Win win;
    int    *memory;
    int     next;
    int     last;
};

static struct window open_window(int what)
{
    struct window w = {.next = (mt_rank() + 1) % mt_size(),
                       .last = (mt_rank() + mt_size() - 1) % mt_size()};

    MPI_Win_allocate(sizeof(int) * SLOTS, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &w.memory,
                     &w.win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, mt_rank(), 0, w.win);
    for (int i = 0; i < SLOTS; i++) {
        w.memory[i] = what;
    }
    MPI_Win_unlock(mt_rank(), w.win);
    MPI_Barrier(MPI_COMM_WORLD);
    return w;
}

static void fill(int *buffer, int what)
{
    int host[SLOTS];

    for (int i = 0; i < SLOTS; i++) {
        host[i] = what;
    }
    mt_put(buffer, MT_DEVICE, host, sizeof(host));
}

/* A device buffer of SLOTS integers, all the same. */
static int *slots_of(int what)
{
    int *buffer = mt_alloc(MT_DEVICE, sizeof(int) * SLOTS);

    fill(buffer, what);
    return buffer;
}

static void expect_slots(const int *buffer, int wanted, const char *what)
{
    int host[SLOTS], wrong = 0;

    mt_get(host, buffer, MT_DEVICE, sizeof(host));
    for (int i = 0; i < SLOTS; i++) {
        wrong += (host[i] != wanted);
    }
    mt_expect(wrong == 0, "%s: %d integers are wrong", what, wrong);
}

static void case_fenced(void)
{
    struct window w = open_window(0);
    int          *in = slots_of(100 + mt_rank()), *out = slots_of(UNTOUCHED);

    MPI_Win_fence(0, w.win);
    MPI_Put(in, SLOTS, MPI_INT, w.next, 0, SLOTS, MPI_INT, w.win);
    MPI_Win_fence(0, w.win);
    mt_expect(w.memory[SLOTS - 1] == 100 + w.last, "MPI_Put gave %d", w.memory[SLOTS - 1]);
    MPI_Win_fence(0, w.win);
    MPI_Accumulate(in, SLOTS, MPI_INT, w.next, 0, SLOTS, MPI_INT, MPI_SUM, w.win);
    MPI_Win_fence(0, w.win);
    mt_expect(w.memory[0] == 2 * (100 + w.last), "MPI_Accumulate gave %d", w.memory[0]);
    MPI_Win_fence(0, w.win);
    MPI_Get(out, SLOTS, MPI_INT, w.next, 0, SLOTS, MPI_INT, w.win);
    MPI_Win_fence(0, w.win);
    expect_slots(out, 2 * (100 + mt_rank()), "MPI_Get");
    MPI_Win_free(&w.win);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

static void case_locked(void)
{
    struct window w = open_window(0);
    int          *one = slots_of(1), *out = slots_of(UNTOUCHED), *seven = slots_of(7);
    int          *fetched = slots_of(UNTOUCHED), host[SLOTS];
    MPI_Request   request;

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, w.next, 0, w.win);
    MPI_Put(seven, SLOTS, MPI_INT, w.next, 0, SLOTS, MPI_INT, w.win);
    MPI_Win_flush(w.next, w.win);
    MPI_Get_accumulate(one, SLOTS, MPI_INT, out, SLOTS, MPI_INT, w.next, 0, SLOTS, MPI_INT, MPI_SUM,
                       w.win);
    MPI_Win_flush(w.next, w.win);
    expect_slots(out, 7, "MPI_Get_accumulate");
    MPI_Fetch_and_op(one, fetched, MPI_INT, w.next, 0, MPI_SUM, w.win);
    MPI_Win_flush_all(w.win);
    mt_get(host, fetched, MT_DEVICE, sizeof(host));
    mt_expect((host[0] == 8) && (host[1] == UNTOUCHED), "MPI_Fetch_and_op gave %d", host[0]);
    MPI_Compare_and_swap(seven, fetched, out, MPI_INT, w.next, 1, w.win);
    MPI_Rput(seven, 2, MPI_INT, w.next, 2, 2, MPI_INT, w.win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_flush(w.next, w.win);
    mt_get(host, out, MT_DEVICE, sizeof(host));
    mt_expect(host[0] == 8, "MPI_Compare_and_swap gave %d", host[0]);
    MPI_Rget(out, SLOTS, MPI_INT, w.next, 0, SLOTS, MPI_INT, w.win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_get(host, out, MT_DEVICE, sizeof(host));
    mt_expect((host[0] == 9) && (host[1] == 7) && (host[3] == 7) && (host[4] == 8),
              "MPI_Rget gave %d, %d, %d, %d", host[0], host[1], host[3], host[4]);
    MPI_Win_unlock(w.next, w.win);
    MPI_Win_free(&w.win);
    mt_free(MT_DEVICE, one);
    mt_free(MT_DEVICE, out);
    mt_free(MT_DEVICE, seven);
    mt_free(MT_DEVICE, fetched);
}

/* What is synchronised for MPI_PROC_NULL ends no access. Rank 0 is late to serve one. */
static void case_flushed_nobody(void)
{
    enum { LONG = 200000, LATE_US = 300 * 1000 };
    int *memory = mt_ints_make(MT_HOST, LONG, LONG, 1), *out = mt_ints_make(MT_DEVICE, LONG, 0, 0);
    MPI_Win win;

    MPI_Win_create(memory, LONG * (MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                   &win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (mt_rank() == 0) {
        usleep(LATE_US);
    } else {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Get(out, LONG, MPI_INT, 0, 0, LONG, MPI_INT, win);
        MPI_Win_flush(MPI_PROC_NULL, win);
        MPI_Win_unlock(0, win);
        mt_ints_expect(out, MT_DEVICE, LONG, LONG, 0, 1, "MPI_Get");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_free(&win);
    mt_free(MT_DEVICE, out);
    mt_free(MT_HOST, memory);
}

/* With MPI_NO_OP the origin is ignored, whatever is passed for it. */
static void case_no_op(void)
{
    struct window w = open_window(3);
    int          *got = slots_of(UNTOUCHED), *fetched = slots_of(UNTOUCHED), host[SLOTS];
    MPI_Request   request;

    MPI_Win_lock(MPI_LOCK_SHARED, w.next, 0, w.win);
    MPI_Get_accumulate(NULL, 0, MPI_DATATYPE_NULL, got, SLOTS, MPI_INT, w.next, 0, SLOTS, MPI_INT,
                       MPI_NO_OP, w.win);
    MPI_Fetch_and_op(NULL, fetched, MPI_INT, w.next, 0, MPI_NO_OP, w.win);
    MPI_Win_flush(w.next, w.win);
    expect_slots(got, 3, "MPI_Get_accumulate with MPI_NO_OP");
    mt_get(host, fetched, MT_DEVICE, sizeof(host));
    mt_expect(host[0] == 3, "MPI_Fetch_and_op with MPI_NO_OP gave %d", host[0]);
    MPI_Rget_accumulate(NULL, 0, MPI_DATATYPE_NULL, fetched, SLOTS, MPI_INT, w.next, 0, SLOTS,
                        MPI_INT, MPI_NO_OP, w.win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock(w.next, w.win);
    expect_slots(fetched, 3, "MPI_Rget_accumulate with MPI_NO_OP");
    MPI_Win_free(&w.win);
    mt_free(MT_DEVICE, got);
    mt_free(MT_DEVICE, fetched);
}

/* The same with an origin in device memory, which Open MPI over UCX reads, and drops. */
static void case_no_op_on_device(void)
{
    struct window w = open_window(3);
    int          *got = slots_of(UNTOUCHED), *fetched = slots_of(UNTOUCHED);
    int          *origin = slots_of(77), one = UNTOUCHED, host[SLOTS];

    MPI_Win_lock(MPI_LOCK_SHARED, w.next, 0, w.win);
    MPI_Fetch_and_op(origin, fetched, MPI_INT, w.next, 0, MPI_NO_OP, w.win);
    MPI_Fetch_and_op(origin, &one, MPI_INT, w.next, 0, MPI_NO_OP, w.win);
    MPI_Get_accumulate(origin, SLOTS, MPI_INT, got, SLOTS, MPI_INT, w.next, 0, SLOTS, MPI_INT,
                       MPI_NO_OP, w.win);
    MPI_Win_unlock(w.next, w.win);
    mt_get(host, fetched, MT_DEVICE, sizeof(host));
    mt_expect((host[0] == 3) && (host[1] == UNTOUCHED), "MPI_Fetch_and_op gave %d %d", host[0],
              host[1]);
    mt_expect(one == 3, "MPI_Fetch_and_op gave %d on the host", one);
    expect_slots(got, 3, "MPI_Get_accumulate with an origin on the device");
    MPI_Win_free(&w.win);
    mt_free(MT_DEVICE, origin);
    mt_free(MT_DEVICE, got);
    mt_free(MT_DEVICE, fetched);
}

/* The access is over: its buffer has the data, and from here on it is the program's. */
static void expect_over(int *buffer, MPI_Request *request, const char *what)
{
    expect_slots(buffer, 4, what);
    fill(buffer, 9);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    expect_slots(buffer, 9, what);
    fill(buffer, UNTOUCHED);
}

/* What flushes or closes an epoch completes accesses that have requests, too. */
static void requests_in(struct window *w)
{
    int        *got = slots_of(UNTOUCHED), *two = slots_of(2);
    MPI_Request request;

    MPI_Win_lock_all(0, w->win);
    MPI_Rget(got, SLOTS, MPI_INT, w->next, 0, SLOTS, MPI_INT, w->win, &request);
    MPI_Win_flush(w->next, w->win);
    expect_slots(got, 4, "MPI_Rget and the first of two MPI_Win_flush");
    fill(got, 8);
    MPI_Win_flush(w->next, w->win);
    expect_slots(got, 8, "MPI_Rget and the second MPI_Win_flush");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Rget(got, SLOTS, MPI_INT, w->next, 0, SLOTS, MPI_INT, w->win, &request);
    MPI_Win_flush(w->next, w->win);
    expect_over(got, &request, "MPI_Rget and MPI_Win_flush");
    MPI_Rget(got, SLOTS, MPI_INT, w->next, 0, SLOTS, MPI_INT, w->win, &request);
    MPI_Win_flush_local_all(w->win);
    expect_over(got, &request, "MPI_Rget and MPI_Win_flush_local_all");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Rget_accumulate(two, SLOTS, MPI_INT, got, SLOTS, MPI_INT, w->next, 0, SLOTS, MPI_INT,
                        MPI_SUM, w->win, &request);
    MPI_Win_unlock_all(w->win);
    expect_over(got, &request, "MPI_Rget_accumulate and MPI_Win_unlock_all");
    MPI_Win_free(&w->win);
    mt_free(MT_DEVICE, got);
    mt_free(MT_DEVICE, two);
}

static void case_requests(void)
{
    struct window w = open_window(4);

    requests_in(&w);
}

/* One in two integers, here and there; after a flush they are in the buffer. */
static void get_every_second(const struct window *w, bool here, bool there)
{
    enum { COUNT = SLOTS / 2 };
    int         *got = slots_of(UNTOUCHED), host[SLOTS], wrong = 0;
    MPI_Datatype holes;
    MPI_Request  request;

    MPI_Type_vector(COUNT, 1, 2, MPI_INT, &holes);
    MPI_Type_commit(&holes);
    MPI_Win_lock(MPI_LOCK_SHARED, w->next, 0, w->win);
    MPI_Rget(got, here ? 1 : COUNT, here ? holes : MPI_INT, w->next, 0, there ? 1 : COUNT,
             there ? holes : MPI_INT, w->win, &request);
    MPI_Win_flush_local(w->next, w->win);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_get(host, got, MT_DEVICE, sizeof(host));
    for (int i = 0; i < SLOTS; i++) {
        wrong += host[i] != ((here ? (i % 2 == 0) : (i < COUNT)) ? 5 : UNTOUCHED);
    }
    mt_expect(wrong == 0, "MPI_Rget with holes %d, %d: %d integers are wrong", here, there, wrong);
    MPI_Win_unlock(w->next, w->win);
    MPI_Type_free(&holes);
    mt_free(MT_DEVICE, got);
}

static void case_holes(void)
{
    struct window w = open_window(5);

    for (int i = 0; i < 20; i++) {
        get_every_second(&w, true, false);
        get_every_second(&w, false, true);
        get_every_second(&w, true, true);
    }
    MPI_Win_free(&w.win);
}

/* A window of memory of the program's, which MPI may reach by messages alone. */
static void case_created(void)
{
    int           memory[SLOTS];
    struct window w = {.next = (mt_rank() + 1) % mt_size(), .memory = memory};

    for (int i = 0; i < SLOTS; i++) {
        memory[i] = 4;
    }
    MPI_Win_create(memory, sizeof(memory), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &w.win);
    requests_in(&w);
}

/* Device memory for a dynamic window is refused by the error handler of the window. */
static void refused_by_window(int *memory)
{
    int class = MPI_SUCCESS;
    MPI_Win win;

    /* Open MPI 4.1 has no such window where the kernel does not copy between processes. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (code != MPI_SUCCESS) {
        return;
    }
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    code = MPI_Win_attach(win, memory, sizeof(int) * SLOTS);
    MPI_Error_class(code, &class);
    mt_expect((class != MPI_SUCCESS) || (strcmp(mt_runtime(), "none") == 0),
              "device memory for a dynamic window: class %d", class);
    if (code == MPI_SUCCESS) {
        MPI_Win_detach(win, memory);
    }
    MPI_Win_free(&win);
}

/* A window on device memory is refused where it is made, by the communicator's error handler. */
static void case_refused(void)
{
    int      code, class;
    int     *memory = slots_of(0);
    MPI_Win  win = MPI_WIN_NULL;
    MPI_Comm comm;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    code = MPI_Win_create(memory, sizeof(int) * SLOTS, sizeof(int), MPI_INFO_NULL, comm, &win);
    MPI_Error_class(code, &class);
    mt_expect((class != MPI_SUCCESS) || (strcmp(mt_runtime(), "none") == 0),
              "a window on device memory: class %d", class);
    if (win != MPI_WIN_NULL) {
        MPI_Win_free(&win);
    }
    MPI_Comm_free(&comm);
    refused_by_window(memory);
    mt_free(MT_DEVICE, memory);
}

static int create(MPI_Comm comm, void *memory, MPI_Win *win)
{
    int class = MPI_SUCCESS;

    MPI_Error_class(
        MPI_Win_create(memory, sizeof(int) * SLOTS, sizeof(int), MPI_INFO_NULL, comm, win), &class);
    return class;
}

/*
 * The memory of rank 0 alone is refused. Ranks that have agreed before all get the error; else the
 * others get a window.
 */
static void case_refused_on_one(void)
{
    int      host[SLOTS], *memory = slots_of(0), *out = slots_of(0);
    MPI_Comm comm;

    for (int agreed = 0; agreed < 2; agreed++) {
        MPI_Win win = MPI_WIN_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        if (agreed) {
            MPI_Allreduce(memory, out, SLOTS, MPI_INT, MPI_SUM, comm);
        }
        /* Open MPI 4.1 has none where the kernel does not copy between processes. */
        bool has_none = (create(comm, host, &win) != MPI_SUCCESS);
        if (!has_none) {
            MPI_Win_free(&win);
        }
        int class = create(comm, (mt_rank() == 0) ? memory : host, &win);
        bool refused = (strcmp(mt_runtime(), "none") != 0) && (agreed || (mt_rank() == 0));
        mt_expect((class != MPI_SUCCESS) == (refused || has_none),
                  "a window on device memory of rank 0: class %d", class);
        if (win != MPI_WIN_NULL) {
            MPI_Win_free(&win);
        }
        MPI_Comm_free(&comm);
    }
    mt_free(MT_DEVICE, memory);
    mt_free(MT_DEVICE, out);
}

/* ---- threads that flush while others begin ---- */

enum { FLUSHERS = 3, FLUSHES = 150, LONG = 20000, SHORT = 64 };

struct flusher {
    MPI_Win win;
    int     number, next;
};

static void fetch(const struct flusher *f, int round, int *out, int count)
{
    MPI_Request request;

    if (round % 2 == 0) {
        MPI_Get(out, count, MPI_INT, f->next, 0, count, MPI_INT, f->win);
        MPI_Win_flush(f->next, f->win);
        return;
    }
    MPI_Rget(out, count, MPI_INT, f->next, 0, count, MPI_INT, f->win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void *flush_often(void *argument)
{
    const struct flusher *f = argument;
    int                   count = (f->number == 0) ? LONG : SHORT, ends[2], wrong = 0;

    mt_memory_enter();
    for (int i = 0; i < FLUSHES; i++) {
        int *out = mt_ints_make(MT_DEVICE, count, 0, 0);
        fetch(f, i, out, count);
        mt_get(&ends[0], out, MT_DEVICE, sizeof(ends[0]));
        mt_get(&ends[1], out + count - 1, MT_DEVICE, sizeof(ends[1]));
        wrong +=
            (ends[0] != mt_value(f->next, 0, 0)) || (ends[1] != mt_value(f->next, 0, count - 1));
        mt_free(MT_DEVICE, out);
    }
    mt_expect(wrong == 0, "%d of %d times the data is not there after a flush", wrong, FLUSHES);
    return NULL;
}

static void case_threads(void)
{
    struct flusher flushers[FLUSHERS];
    MPI_Win        win;
    int           *memory;

    MPI_Win_allocate(sizeof(int) * LONG, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < LONG; i++) {
        memory[i] = mt_value(mt_rank(), 0, i);
    }
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < FLUSHERS; i++) {
        flushers[i] = (struct flusher){win, i, (mt_rank() + 1) % mt_size()};
    }
    mt_in_threads(FLUSHERS, flush_often, flushers, sizeof(flushers[0]));
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
    const struct mt_named_case cases[] = {
        {"fenced", case_fenced},
        {"locked", case_locked},
        {"no-op", case_no_op},
        {"no-op-on-device", case_no_op_on_device},
        {"requests", case_requests},
        {"holes", case_holes},
        {"created", case_created},
        {"refused", case_refused},
        {"refused-on-one", case_refused_on_one},
        {"threads", case_threads},
        {"flushed-nobody", case_flushed_nobody},
        {NULL, NULL},
    };

    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
