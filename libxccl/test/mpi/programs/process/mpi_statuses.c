/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Request_get_status, and its relations of MPI 4.1, at receives whose messages were too long:
 * they fail where MPI's own do, beside the same on host memory. Usage: mpi_statuses cuda|rocm
 * failed
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

#include <xccl/mpix.h>

#include "support.h"

/* Long enough to be fetched. */
enum { COUNT = 1000, TAG = 1, LATER = 9, RECEIVES = 2, PATIENCE_S = 10 };

typedef int look_all(int, const MPI_Request *, int *, MPI_Status *);
typedef int look_some(int, const MPI_Request *, int *, int *, MPI_Status *);

static int next, previous;

/* The first of the two gets more than it has room for. */
struct messages {
    int          *in, *out[RECEIVES];
    enum mt_where where;
    MPI_Request   receives[RECEIVES], sends[RECEIVES];
};

static void begin(struct messages *m, enum mt_where where)
{
    m->where = where;
    m->in = mt_ints_make(where, COUNT, COUNT, 1);
    for (int i = 0; i < RECEIVES; i++) {
        int room = (i == 0) ? COUNT / 2 : COUNT;
        m->out[i] = mt_ints_make(where, COUNT, 0, 0);
        MPI_Irecv(m->out[i], room, MPI_INT, previous, TAG + i, MPI_COMM_WORLD, &m->receives[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < RECEIVES; i++) {
        MPI_Isend(m->in, COUNT, MPI_INT, next, TAG + i, MPI_COMM_WORLD, &m->sends[i]);
    }
}

static void end(struct messages *m)
{
    MPI_Wait(&m->receives[0], MPI_STATUS_IGNORE);
    MPI_Wait(&m->receives[1], MPI_STATUS_IGNORE);
    MPI_Waitall(RECEIVES, m->sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < RECEIVES; i++) {
        mt_free(m->where, m->out[i]);
    }
    mt_free(m->where, m->in);
}

/* Does a look at it say that it has failed? */
static int look_at_one(enum mt_where where)
{
    struct messages m;
    int             flag = 0, code = MPI_SUCCESS;

    begin(&m, where);
    while (!flag && (code == MPI_SUCCESS)) {
        code = MPI_Request_get_status(m.receives[0], &flag, MPI_STATUS_IGNORE);
    }
    end(&m);
    return mt_class_of(code);
}

static void expect_codes(const MPI_Status *statuses, int code, const char *what)
{
    mt_expect(mt_class_of(code) == MPI_ERR_IN_STATUS, "%s: class %d, and not MPI_ERR_IN_STATUS",
              what, mt_class_of(code));
    mt_expect(mt_class_of(statuses[0].MPI_ERROR) == MPI_ERR_TRUNCATE, "%s: class %d in its status",
              what, mt_class_of(statuses[0].MPI_ERROR));
    mt_expect(statuses[1].MPI_ERROR == MPI_SUCCESS, "%s: class %d in the status of the other", what,
              mt_class_of(statuses[1].MPI_ERROR));
}

static void poison(MPI_Status *statuses)
{
    for (int i = 0; i < RECEIVES; i++) {
        statuses[i].MPI_ERROR = MPI_ERR_OTHER;
    }
}

static void look_at_two(enum mt_where where, bool fails)
{
    look_all       *all = (look_all *)dlsym(RTLD_DEFAULT, "MPI_Request_get_status_all");
    look_some      *some = (look_some *)dlsym(RTLD_DEFAULT, "MPI_Request_get_status_some");
    struct messages m;
    MPI_Status      statuses[RECEIVES];
    int             flag = 0, code = MPI_SUCCESS, out = 0, indices[RECEIVES];

    if ((all == NULL) || (some == NULL)) {
        mt_expect(false, "nobody has MPI_Request_get_status_all and _some");
        return;
    }
    begin(&m, where);
    poison(statuses);
    while (!flag && (code == MPI_SUCCESS)) {
        code = all(RECEIVES, m.receives, &flag, statuses);
    }
    mt_expect(flag, "all: no flag");
    if (fails) {
        expect_codes(statuses, code, "all");
    }
    poison(statuses);
    code = some(RECEIVES, m.receives, &out, indices, statuses);
    mt_expect((out == RECEIVES) && (indices[0] == 0) && (indices[1] == 1), "some: %d of them", out);
    if (fails) {
        expect_codes(statuses, code, "some");
    }
    end(&m);
}

static void case_failed(void)
{
    int        *device = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
    MPI_Request live; /* one of xccl's beside those of MPI's own */

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN); /* where MPICH reports some */
    int host = look_at_one(MT_HOST), on_device = look_at_one(MT_DEVICE);
    mt_expect(on_device == host, "a look at device memory: class %d, at host memory %d", on_device,
              host);
    MPI_Irecv(device, COUNT, MPI_INT, previous, LATER, MPI_COMM_WORLD, &live);
    look_at_two(MT_HOST, host != MPI_SUCCESS);
    look_at_two(MT_DEVICE, host != MPI_SUCCESS);
    MPI_Send(device, COUNT, MPI_INT, next, LATER, MPI_COMM_WORLD);
    MPI_Wait(&live, MPI_STATUS_IGNORE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    mt_free(MT_DEVICE, device);
}

/* ---- waits by MPICH's look, in a loop with its progress ---- */

typedef int is_complete(MPI_Request);
typedef int stream_progress(MPIX_Stream);

static bool comes_to_its_end(MPI_Request request)
{
    is_complete     *complete = (is_complete *)dlsym(RTLD_DEFAULT, "MPIX_Request_is_complete");
    stream_progress *go_on = (stream_progress *)dlsym(RTLD_DEFAULT, "MPIX_Stream_progress");
    double           begin = MPI_Wtime();

    if ((complete == NULL) || (go_on == NULL)) {
        mt_expect(false, "nobody has MPIX_Request_is_complete and MPIX_Stream_progress");
        return false;
    }
    while (!complete(request)) {
        if (MPI_Wtime() - begin > PATIENCE_S) {
            return false;
        }
        go_on(MPIX_STREAM_NULL);
    }
    return true;
}

static void bcast_in_loop(enum mt_where where)
{
    int        *data = mt_ints_make(where, COUNT, (mt_rank() == 0) ? COUNT : 0, 1);
    MPI_Request request;

    MPI_Ibcast(data, COUNT, MPI_INT, 0, MPI_COMM_WORLD, &request);
    mt_expect(comes_to_its_end(request), "MPI_Ibcast does not come to its end");
    mt_ints_expect(data, where, COUNT, COUNT, 0, 1, "MPI_Ibcast");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_free(where, data);
}

/* Into memory of either kind, from a sender with a device's: the data is there at the end. */
static void exchange_in_loop(enum mt_where where, int count)
{
    int        *in = mt_ints_make(MT_DEVICE, count, count, 2);
    int        *out = mt_ints_make(where, count, 0, 0);
    MPI_Request receive, send;

    MPI_Irecv(out, count, MPI_INT, previous, TAG, MPI_COMM_WORLD, &receive);
    MPI_Isend(in, count, MPI_INT, next, TAG, MPI_COMM_WORLD, &send);
    mt_expect(comes_to_its_end(receive), "a receive of %d ints does not come to its end", count);
    mt_ints_expect(out, where, count, count, previous, 2, "a message");
    mt_expect(comes_to_its_end(send), "a send of %d ints does not come to its end", count);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    mt_free(MT_DEVICE, in);
    mt_free(where, out);
}

static void case_complete(void)
{
    enum { TIMES = 5, FEW = 4, MANY = 100 * 1000 };

    for (int i = 0; i < TIMES; i++) {
        bcast_in_loop(MT_DEVICE);
        bcast_in_loop(MT_HOST);
        exchange_in_loop(MT_DEVICE, COUNT);
        exchange_in_loop(MT_HOST, FEW);
        exchange_in_loop(MT_HOST, COUNT);
        exchange_in_loop(MT_HOST, MANY);
    }
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"failed", case_failed}, {"complete", case_complete}, {NULL, NULL}};

    mt_begin(&argc, &argv, true);
    next = (mt_rank() + 1) % mt_size();
    previous = (mt_rank() + mt_size() - 1) % mt_size();
    return mt_run_to_end(cases, argc, argv);
}
