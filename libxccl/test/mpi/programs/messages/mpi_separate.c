/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows on device memory, in programs that keep to MPI's separate memory model: every way to
 * synchronise. In each step ranks put, accumulate and store into disjoint parts of one window.
 * Usage: mpi_separate cuda|rocm|none CASE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { STEPS = 2, COUNT = 3 * 100001, PARTS = 3, ODD = 7 };

/* Of place i the remainder by PARTS: who writes it. */
enum { STORED, PUT, ADDED };

static MPI_Win      win;
static int         *memory; /* the window, on the device */
static int         *host;   /* what it has to hold */
static int         *seen;   /* what it holds */
static MPI_Datatype third;  /* every third integer, so the parts are interleaved */
static int         *origin; /* on the device */
static int          next, last;

static int value(int rank, int step, int i)
{
    return (rank + 1) * 100000 + step * 1000 + i % 997;
}

static void open_window(MPI_Comm comm)
{
    next = (mt_rank() + 1) % mt_size();
    last = (mt_rank() + mt_size() - 1) % mt_size();
    memory = mt_alloc(MT_DEVICE, sizeof(int) * COUNT);
    origin = mt_alloc(MT_DEVICE, sizeof(int) * COUNT);
    host = malloc(sizeof(int) * COUNT);
    seen = malloc(sizeof(int) * COUNT);
    for (int i = 0; i < COUNT; i++) {
        host[i] = ODD * i;
    }
    mt_put(memory, MT_DEVICE, host, sizeof(int) * COUNT);
    MPI_Type_vector(COUNT / PARTS, 1, PARTS, MPI_INT, &third);
    MPI_Type_commit(&third);
    MPI_Win_create(memory, sizeof(int) * COUNT, sizeof(int), MPI_INFO_NULL, comm, &win);
}

static void close_window(void)
{
    MPI_Win_free(&win);
    MPI_Type_free(&third);
    mt_free(MT_DEVICE, memory);
    mt_free(MT_DEVICE, origin);
    free(host);
    free(seen);
}

static void expect_window(const char *what, int step)
{
    int wrong = 0, first = -1;

    mt_get(seen, memory, MT_DEVICE, sizeof(int) * COUNT);
    for (int i = 0; i < COUNT; i++) {
        if (seen[i] != host[i]) {
            first = (wrong++ == 0) ? i : first;
        }
    }
    mt_expect(wrong == 0, "%s, step %d: %d integers are wrong, the first at %d: %d, not %d", what,
              step, wrong, first, (first >= 0) ? seen[first] : 0, (first >= 0) ? host[first] : 0);
}

static bool on_device(void)
{
    return strcmp(mt_runtime(), "none") != 0;
}

/* This rank's own part. On the device nobody else writes in between: others write to a copy. */
static void store(int step)
{
    mt_get(seen, memory, MT_DEVICE, sizeof(int) * COUNT);
    for (int i = STORED; i < COUNT; i += PARTS) {
        seen[i] = host[i] = value(mt_rank(), step, i);
        if (!on_device()) {
            memory[i] = seen[i];
        }
    }
    if (on_device()) {
        mt_put(memory, MT_DEVICE, seen, sizeof(int) * COUNT);
    }
}

/* What the rank before this one writes here. */
static void expect_access(int step)
{
    for (int i = PUT; i < COUNT; i += PARTS) {
        host[i] = value(last, step, i - PUT);
    }
    for (int i = ADDED; i < COUNT; i += PARTS) {
        host[i] += value(last, step, i - ADDED);
    }
}

static void fill_origin(int step)
{
    for (int i = 0; i < COUNT; i++) {
        seen[i] = value(mt_rank(), step, i);
    }
    mt_put(origin, MT_DEVICE, seen, sizeof(int) * COUNT);
}

static void access_next(void)
{
    MPI_Put(origin, 1, third, next, PUT, 1, third, win);
    MPI_Accumulate(origin, 1, third, next, ADDED, 1, third, MPI_SUM, win);
}

/* What the next rank stored in this step. */
static void expect_got(const int *got, int step)
{
    int wrong = 0;

    mt_get(seen, got, MT_DEVICE, sizeof(int) * COUNT);
    for (int i = STORED; i < COUNT; i += PARTS) {
        wrong += seen[i] != value(next, step, i);
    }
    mt_expect(wrong == 0, "step %d: %d integers of MPI_Get are wrong", step, wrong);
}

static void case_fence(void)
{
    open_window(MPI_COMM_WORLD);
    MPI_Win_fence(0, win);
    for (int step = 0; step < STEPS; step++) {
        fill_origin(step);
        access_next();
        store(step); /* while others put */
        MPI_Win_fence(0, win);
        expect_access(step);
        expect_window("MPI_Win_fence", step);
        MPI_Get(origin, 1, third, next, STORED, 1, third, win);
        MPI_Win_fence(0, win);
        expect_got(origin, step);
    }
    close_window();
}

static void end_exposure(int step)
{
    int flag = 0;

    if (step % 2 == 0) {
        MPI_Win_wait(win);
        return;
    }
    while (!flag) {
        MPI_Win_test(win, &flag);
    }
}

static void case_post(void)
{
    MPI_Group world, to, from;

    open_window(MPI_COMM_WORLD);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &next, &to);
    MPI_Group_incl(world, 1, &last, &from);
    for (int step = 0; step < STEPS; step++) {
        store(step);
        fill_origin(step);
        MPI_Win_post(from, 0, win);
        MPI_Win_start(to, 0, win);
        access_next();
        MPI_Win_complete(win);
        end_exposure(step);
        expect_access(step);
        expect_window("MPI_Win_post", step);
        MPI_Win_post(from, 0, win);
        MPI_Win_start(to, 0, win);
        MPI_Get(origin, 1, third, next, STORED, 1, third, win);
        MPI_Win_complete(win);
        end_exposure(step + 1);
        expect_got(origin, step);
    }
    MPI_Group_free(&to);
    MPI_Group_free(&from);
    MPI_Group_free(&world);
    close_window();
}

static void case_lock(void)
{
    open_window(MPI_COMM_WORLD);
    for (int step = 0; step < STEPS; step++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, mt_rank(), 0, win);
        store(step);
        MPI_Win_unlock(mt_rank(), win);
        MPI_Barrier(MPI_COMM_WORLD);
        fill_origin(step);
        MPI_Win_lock((step % 2 == 0) ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, next, 0, win);
        access_next();
        MPI_Win_unlock(next, win);
        MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win);
        MPI_Get(origin, 1, third, next, STORED, 1, third, win);
        MPI_Win_unlock(next, win);
        expect_got(origin, step);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_SHARED, mt_rank(), 0, win);
        expect_access(step);
        expect_window("MPI_Win_lock", step);
        MPI_Win_unlock(mt_rank(), win);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    close_window();
}

static void case_sync(void)
{
    open_window(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int step = 0; step < STEPS; step++) {
        store(step);
        MPI_Win_sync(win);
        MPI_Barrier(MPI_COMM_WORLD);
        fill_origin(step);
        access_next();
        MPI_Win_flush(next, win);
        MPI_Get(origin, 1, third, next, STORED, 1, third, win);
        MPI_Win_flush_all(win);
        expect_got(origin, step);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_sync(win);
        expect_access(step);
        expect_window("MPI_Win_sync", step);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(win);
    close_window();
}

/* All ranks add to counters of rank 0, which stores beside them. */
static void case_atomic(void)
{
    enum { EACH = 20 };
    int      *one = mt_alloc(MT_DEVICE, sizeof(int)), *got = mt_alloc(MT_DEVICE, sizeof(int));
    const int value_of_one = 1;
    int       sum = 0, zero = 0;

    open_window(MPI_COMM_WORLD);
    mt_put(one, MT_DEVICE, &value_of_one, sizeof(int));
    for (int i = 0; i < EACH; i++) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Fetch_and_op(one, got, MPI_INT, 0, 1, MPI_SUM, win);
        MPI_Win_unlock(0, win);
        mt_get(&sum, got, MT_DEVICE, sizeof(int));
        mt_expect((sum >= ODD + i) && (sum < ODD + EACH * mt_size()), "MPI_Fetch_and_op gave %d",
                  sum);
        if (mt_rank() == 0) {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
            mt_put(memory, MT_DEVICE, &i, sizeof(int));
            mt_put(memory + 2, MT_DEVICE, &i, sizeof(int));
            MPI_Win_unlock(0, win);
        }
    }
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Compare_and_swap(one, &zero, got, MPI_INT, 0, 0, win);
    MPI_Win_unlock(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, mt_rank(), 0, win);
    if (mt_rank() == 0) {
        host[0] = host[2] = EACH - 1;
        host[1] = ODD + EACH * mt_size();
        expect_window("counters", 0);
    }
    MPI_Win_unlock(mt_rank(), win);
    MPI_Barrier(MPI_COMM_WORLD);
    close_window();
    mt_free(MT_DEVICE, one);
    mt_free(MT_DEVICE, got);
}

/* The attributes are those of the program's memory, and what was put last is in it in the end. */
static void case_end(void)
{
    void *base = NULL;
    int  *model = NULL, flag = 0, first = -5;

    open_window(MPI_COMM_WORLD);
    MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag);
    mt_expect(flag && (base == memory), "MPI_WIN_BASE is %p, not %p", base, (void *)memory);
    MPI_Win_get_attr(win, MPI_WIN_MODEL, &model, &flag);
    mt_expect(flag && (!on_device() || (*model == MPI_WIN_SEPARATE)), "MPI_WIN_MODEL is %d",
              *model);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next, 0, win);
    MPI_Put(&first, 1, MPI_INT, next, COUNT - 1, 1, MPI_INT, win);
    MPI_Win_unlock(next, win);
    MPI_Win_free(&win);
    host[COUNT - 1] = first;
    expect_window("MPI_Win_free", 0);
    MPI_Win_create(memory, sizeof(int) * COUNT, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    close_window();
}

/* More than XCCL_STAGING allows; and memory of a dynamic window, whose address others have. */
static void case_refused(void)
{
    int      code;
    MPI_Win  dynamic, none = MPI_WIN_NULL;
    MPI_Comm comm;

    open_window(MPI_COMM_SELF);
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    code = MPI_Win_create(memory, sizeof(int) * COUNT, sizeof(int), MPI_INFO_NULL, comm, &none);
    mt_expect((code != MPI_SUCCESS) || !on_device(), "a second window is not refused");
    if (code == MPI_SUCCESS) {
        MPI_Win_free(&none);
    }
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &dynamic);
    MPI_Win_set_errhandler(dynamic, MPI_ERRORS_RETURN);
    code = MPI_Win_attach(dynamic, memory, sizeof(int) * COUNT);
    mt_expect((code != MPI_SUCCESS) || !on_device(), "memory of a dynamic window is not refused");
    if (code == MPI_SUCCESS) {
        MPI_Win_detach(dynamic, memory);
    }
    MPI_Win_free(&dynamic);
    MPI_Comm_free(&comm);
    close_window();
}

/* A copy of rank 1 fails in one of the calls: an error of the window's, and nobody waits for it. */
static void case_errors(void)
{
    enum { FENCES = 3 };
    int told = 0;

    open_window(MPI_COMM_WORLD);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    for (int i = 0; i < FENCES; i++) {
        told += (MPI_Win_fence(0, win) != MPI_SUCCESS);
    }
    if (MPI_Win_free(&win) != MPI_SUCCESS) {
        printf("rank %d: MPI_Win_free says so\n", mt_rank());
        told++;
    }
    mt_expect(win == MPI_WIN_NULL, "the window is not freed");
    mt_expect(told == ((mt_rank() == 1) ? 1 : 0), "%d errors", told);
    MPI_Win_create(memory, sizeof(int) * COUNT, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    close_window();
}

int main(int argc, char **argv)
{
    const struct mt_named_case cases[] = {
        {"fence", case_fence},     {"post", case_post},     {"lock", case_lock},
        {"sync", case_sync},       {"end", case_end},       {"atomic", case_atomic},
        {"refused", case_refused}, {"errors", case_errors}, {NULL, NULL},
    };

    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
