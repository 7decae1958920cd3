/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Non-blocking collectives of several communicators, which each rank begins and ends in an order of
 * its own, amid blocking ones; communicators are freed while they are under way, and their
 * addresses and memory come again.
 * Usage: mpi_turns cuda|rocm|none SEED ROUNDS
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

enum { COMMS = 4, CALLS = 8, MOST_PAUSE_US = 600 };

enum form { SUM, BCAST, ALLGATHER, ALLTOALL, GATHER, SCATTER, SCATTERED_SUM, FORMS };

struct call {
    enum form     form;
    int           count, root, salt;
    bool          in_place;
    int           shift; /* of the buffers, in integers: no multiple of 16 bytes */
    enum mt_where from, to;
    int          *in, *out;
    MPI_Request   request;
    bool          ended;
};

static uint64_t shared; /* all ranks draw the same */
static uint64_t own;

static int draw(uint64_t *state, int limit)
{
    return (int)(mt_next(state) % (unsigned)limit);
}

/* In integers. */
static int sent(const struct call *c)
{
    bool each = (c->form == ALLTOALL) || (c->form == SCATTER) || (c->form == SCATTERED_SUM);

    return each ? c->count * mt_size() : c->count;
}

static int received(const struct call *c)
{
    bool each = (c->form == ALLTOALL) || (c->form == ALLGATHER) || (c->form == GATHER);

    return each ? c->count * mt_size() : c->count;
}

static bool reads_out(const struct call *c)
{
    return c->in_place || ((c->form == BCAST) && (mt_rank() == c->root));
}

static void make(struct call *c, int salt, bool may_be_managed)
{
    static const int counts[] = {0, 1, 100, 5000, 40000, 70001, 140000, 300000};

    memset(c, 0, sizeof(*c));
    c->form = (enum form)draw(&shared, FORMS);
    c->count = counts[draw(&shared, sizeof(counts) / sizeof(counts[0]))];
    c->root = draw(&shared, mt_size());
    c->in_place = (draw(&shared, 3) == 0) && (c->form == SUM);
    c->shift = (draw(&shared, 3 * mt_size()) == mt_rank()) ? 1 : 0;
    c->salt = salt;
    bool managed = (draw(&shared, 4) == 0) && may_be_managed;
    c->from = (managed && (draw(&own, 8) == 0)) ? MT_MANAGED : MT_DEVICE;
    c->to = (managed && (draw(&own, 8) == 0)) ? MT_MANAGED : MT_DEVICE;
    c->request = MPI_REQUEST_NULL;

    int  ins = sent(c), outs = received(c);
    int *host = malloc(sizeof(int) * (size_t)(ins + outs + 1));
    c->in = mt_alloc(c->from, sizeof(int) * (size_t)(ins + 4));
    c->out = mt_alloc(c->to, sizeof(int) * (size_t)(outs + 4));
    for (int i = 0; i < ins; i++) {
        host[i] = mt_value(mt_rank(), salt, i);
    }
    mt_put(c->in + c->shift, c->from, host, sizeof(int) * (size_t)ins);
    for (int i = 0; i < outs; i++) {
        host[i] = reads_out(c) ? mt_value(mt_rank(), salt, i) : MT_UNTOUCHED;
    }
    mt_put(c->out + c->shift, c->to, host, sizeof(int) * (size_t)outs);
    free(host);
}

static void begin(struct call *c, MPI_Comm comm)
{
    int         *in = c->in + c->shift, *out = c->out + c->shift, n = c->count;
    MPI_Request *r = &c->request;

    switch (c->form) {
    case SUM:
        MPI_Iallreduce(c->in_place ? MPI_IN_PLACE : in, out, n, MPI_INT, MPI_SUM, comm, r);
        break;
    case BCAST:
        MPI_Ibcast(out, n, MPI_INT, c->root, comm, r);
        break;
    case ALLGATHER:
        MPI_Iallgather(in, n, MPI_INT, out, n, MPI_INT, comm, r);
        break;
    case ALLTOALL:
        MPI_Ialltoall(in, n, MPI_INT, out, n, MPI_INT, comm, r);
        break;
    case GATHER:
        MPI_Igather(in, n, MPI_INT, out, n, MPI_INT, c->root, comm, r);
        break;
    case SCATTER:
        MPI_Iscatter(in, n, MPI_INT, out, n, MPI_INT, c->root, comm, r);
        break;
    default:
        MPI_Ireduce_scatter_block(in, out, n, MPI_INT, MPI_SUM, comm, r);
    }
}

static int sum_of(int salt, int i)
{
    int sum = 0;

    for (int from = 0; from < mt_size(); from++) {
        sum += mt_value(from, salt, i);
    }
    return sum;
}

static int expected(const struct call *c, int i)
{
    int block = i / c->count, at = i % c->count, own_at = mt_rank() * c->count + at;

    switch (c->form) {
    case SUM:
        return sum_of(c->salt, i);
    case BCAST:
        return mt_value(c->root, c->salt, i);
    case ALLGATHER:
        return mt_value(block, c->salt, at);
    case ALLTOALL:
        return mt_value(block, c->salt, own_at);
    case GATHER:
        return (mt_rank() == c->root) ? mt_value(block, c->salt, at) : MT_UNTOUCHED;
    case SCATTER:
        return mt_value(c->root, c->salt, own_at);
    default:
        return sum_of(c->salt, own_at);
    }
}

/* Its memory is given back at once, so that its addresses come again. */
static void end(struct call *c)
{
    int  outs = received(c), wrong = 0;
    int *host = malloc(sizeof(int) * (size_t)(outs + 1));

    MPI_Wait(&c->request, MPI_STATUS_IGNORE);
    mt_get(host, c->out + c->shift, c->to, sizeof(int) * (size_t)outs);
    for (int i = 0; i < outs; i++) {
        wrong += host[i] != expected(c, i);
    }
    mt_expect(wrong == 0, "form %d, %d integers, salt %d: %d wrong", (int)c->form, c->count,
              c->salt, wrong);
    mt_free(c->from, c->in);
    mt_free(c->to, c->out);
    free(host);
    c->ended = true;
}

static void block(int salt)
{
    struct call c;

    make(&c, salt, true);
    begin(&c, MPI_COMM_WORLD);
    end(&c);
}

/*
 * A call whose communicator is freed meanwhile. On device memory alone: MPI carries some calls on
 * managed memory by itself, and Open MPI 4.1 then crashes, as it does on host memory without xccl.
 */
static void begin_and_free(struct call *c, int salt)
{
    MPI_Comm comm;

    make(c, salt, false);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    begin(c, comm);
    MPI_Comm_free(&comm);
}

static void begin_all(struct call calls[COMMS][CALLS], const MPI_Comm *comms, int salt)
{
    int begun[COMMS] = {0}, left = COMMS * CALLS, blocking = 1 + draw(&shared, 3), flag;

    while ((left > 0) || (blocking > 0)) {
        if ((blocking > 0) && ((left == 0) || (draw(&own, 20) == 0))) {
            block(salt + --blocking);
            continue;
        }
        int which = draw(&own, COMMS);
        if (begun[which] == CALLS) {
            continue;
        }
        begin(&calls[which][begun[which]++], comms[which]);
        left--;
        if (draw(&own, 10) == 0) {
            usleep((useconds_t)draw(&own, MOST_PAUSE_US));
        }
        struct call *c = &calls[draw(&own, COMMS)][draw(&own, CALLS)];
        if (draw(&own, 10) == 0) {
            MPI_Test(&c->request, &flag, MPI_STATUS_IGNORE);
        }
    }
}

static void end_all(struct call calls[COMMS][CALLS])
{
    int left = COMMS * CALLS;

    while (left > 0) {
        struct call *c = &calls[draw(&own, COMMS)][draw(&own, CALLS)];
        if (!c->ended) {
            end(c);
            left--;
        }
    }
}

int main(int argc, char **argv)
{
    enum { SALTS = 1000 };
    MPI_Comm    comms[COMMS];
    struct call calls[COMMS][CALLS], freed;

    mt_begin(&argc, &argv, true);
    uint64_t seed = (argc > 2) ? strtoull(argv[2], NULL, 10) : 1;
    int      rounds = (argc > 3) ? atoi(argv[3]) : 3;
    shared = seed * 977 + 5;
    own = shared * 31 + (uint64_t)mt_rank();
    for (int i = 0; i < COMMS; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    }
    for (int round = 0; round < rounds; round++) {
        int salt = round * SALTS;
        for (int i = 0; i < COMMS * CALLS; i++) {
            make(&calls[i / CALLS][i % CALLS], salt + i, true);
        }
        begin_and_free(&freed, salt + SALTS - 1);
        begin_all(calls, comms, salt + COMMS * CALLS);
        end_all(calls);
        end(&freed);
        int which = draw(&shared, COMMS);
        MPI_Comm_free(&comms[which]);
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[which]);
    }
    for (int i = 0; i < COMMS; i++) {
        MPI_Comm_free(&comms[i]);
    }
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
