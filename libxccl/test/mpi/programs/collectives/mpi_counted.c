/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Non-blocking collectives whose counts only the ranks themselves know: many at once, on several
 * communicators, in other orders on other ranks, and on memory of any kind.
 * Usage: mpi_counted cuda|rocm|none orders|changes|unlike|managed|freed [any]
 * Their path is direct, or any.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

enum { MOST_RANKS = 8, COMMS = 2 };
enum kind { ALLTOALLV, GATHERV, SCATTERV, KINDS };

/* A block for each rank and one of each, at multiples of `most` bytes. */
struct call {
    enum kind      kind;
    int            root, number, most;
    enum mt_where  in_where, out_where;
    unsigned char *in, *out;
    MPI_Request    request;
};

static const char *expected_path = "direct";
static uint64_t    mine; /* each rank's own generator */

static int draw(int below)
{
    return (int)(mt_next(&mine) % (uint64_t)below);
}

/* The same on all ranks. */
static int count_of(const struct call *c, int from, int to)
{
    uint64_t seed = (uint64_t)(c->number * 4099 + from * 67 + to * 11 + (int)c->kind + 1);
    uint64_t drawn = mt_next(&seed) >> 16;

    return (drawn % 4 == 0) ? 0 : (int)((drawn >> 8) % (uint64_t)(c->most + 1));
}

static unsigned char value(const struct call *c, int from, int to, int i)
{
    return (unsigned char)(from * 31 + to * 7 + c->number * 5 + i * 3 + (i >> 8) + 1);
}

static struct call make(int most, enum mt_where in, enum mt_where out)
{
    struct call c = {.most = most, .in_where = in, .out_where = out};

    c.in = mt_alloc(in, (size_t)most * (size_t)mt_size());
    c.out = mt_alloc(out, (size_t)most * (size_t)mt_size());
    return c;
}

static void let_go(struct call *c)
{
    mt_free(c->in_where, c->in);
    mt_free(c->out_where, c->out);
}

static void fill(struct call *c)
{
    size_t         bytes = (size_t)c->most * (size_t)mt_size();
    unsigned char *host = malloc(bytes);

    memset(host, 0xee, bytes);
    mt_put(c->out, c->out_where, host, bytes);
    for (int to = 0; to < mt_size(); to++) {
        int n = count_of(c, mt_rank(), to);
        for (int i = 0; i < n; i++) {
            host[to * c->most + i] = value(c, mt_rank(), to, i);
        }
    }
    mt_put(c->in, c->in_where, host, bytes);
    free(host);
}

/* The arrays are the call's until it returns. */
static void begin(struct call *c, MPI_Comm comm)
{
    int sent[MOST_RANKS], received[MOST_RANKS], at[MOST_RANKS], rank = mt_rank();

    for (int i = 0; i < mt_size(); i++) {
        sent[i] = count_of(c, rank, i);
        received[i] = count_of(c, i, rank);
        at[i] = i * c->most;
    }
    if (c->kind == ALLTOALLV) {
        MPI_Ialltoallv(c->in, sent, at, MPI_BYTE, c->out, received, at, MPI_BYTE, comm,
                       &c->request);
    } else if (c->kind == GATHERV) {
        bool root = (rank == c->root);
        MPI_Igatherv(c->in + c->root * c->most, sent[c->root], MPI_BYTE, root ? c->out : NULL,
                     root ? received : NULL, root ? at : NULL, MPI_BYTE, c->root, comm,
                     &c->request);
    } else {
        bool root = (rank == c->root);
        MPI_Iscatterv(root ? c->in : NULL, root ? sent : NULL, root ? at : NULL, MPI_BYTE,
                      c->out + c->root * c->most, received[c->root], MPI_BYTE, c->root, comm,
                      &c->request);
    }
    memset(sent, 0x7f, sizeof(sent));
    memset(received, 0x7f, sizeof(received));
    memset(at, 0x7f, sizeof(at));
}

static bool receives(const struct call *c, int from)
{
    return (c->kind == ALLTOALLV) || ((c->kind == GATHERV) && (mt_rank() == c->root)) ||
           ((c->kind == SCATTERV) && (from == c->root));
}

static void expect(struct call *c, const char *what)
{
    size_t         bytes = (size_t)c->most * (size_t)mt_size(), wrong = 0;
    unsigned char *host = malloc(bytes);

    mt_get(host, c->out, c->out_where, bytes);
    for (int from = 0; from < mt_size(); from++) {
        int n = receives(c, from) ? count_of(c, from, mt_rank()) : 0;
        for (int i = 0; i < c->most; i++) {
            unsigned char wanted = (i < n) ? value(c, from, mt_rank(), i) : 0xee;
            wrong += (host[from * c->most + i] != wanted);
        }
    }
    mt_expect(wrong == 0, "%s: call %d, kind %d: %zu bytes are wrong", what, c->number,
              (int)c->kind, wrong);
    free(host);
}

static void set(struct call *c, int number)
{
    c->number = number;
    c->kind = (enum kind)(number % KINDS);
    c->root = (number / KINDS) % mt_size();
    fill(c);
}

static void one(struct call *c, int number, MPI_Comm comm, const char *what)
{
    set(c, number);
    begin(c, comm);
    MPI_Wait(&c->request, MPI_STATUS_IGNORE);
    expect(c, what);
}

/* The ranks join the direct path, and change over to it. */
static void warm_up(MPI_Comm comm)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, 100);
    struct call    c = make(100, MT_DEVICE, MT_DEVICE);

    for (int i = 0; i < 12; i++) {
        mt_pair_allreduce(&pair, 100, comm, i);
        one(&c, i, comm, "warm up");
    }
    let_go(&c);
    mt_pair_free(&pair);
}

/* More than a rank may show at once, in another order of the communicators on each rank. */
static void case_orders(void)
{
    enum { ROUNDS = 30, CALLS = 12 };
    MPI_Comm       comms[COMMS];
    struct call    calls[COMMS][CALLS];
    struct mt_pair pair = mt_pair_make(MT_DEVICE, 3000);
    MPI_Request    sum;

    for (int k = 0; k < COMMS; k++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[k]);
        warm_up(comms[k]);
        for (int i = 0; i < CALLS; i++) {
            int most = (i == 5) ? 600 << 10 : (i % 4 == 3) ? 40000 : 700;
            calls[k][i] = make(most, MT_DEVICE, MT_DEVICE);
        }
    }
    for (int round = 0; round < ROUNDS; round++) {
        int next[COMMS] = {0};
        for (int k = 0; k < COMMS; k++) {
            for (int i = 0; i < CALLS; i++) {
                set(&calls[k][i], round * 100 + i);
            }
        }
        mt_pair_fill(&pair, 3000, MPI_COMM_WORLD, round);
        MPI_Iallreduce(pair.in, pair.out, 3000, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &sum);
        while ((next[0] < CALLS) || (next[1] < CALLS)) {
            int k = draw(COMMS);
            k = (next[k] < CALLS) ? k : 1 - k;
            begin(&calls[k][next[k]++], comms[k]);
            mt_expect_path(expected_path, "in any order");
            if (draw(16) == 0) {
                usleep(1000);
            }
        }
        for (int i = COMMS * CALLS; i-- > 0;) {
            struct call *c = &calls[(i + mt_rank()) % COMMS][i / COMMS];
            MPI_Wait(&c->request, MPI_STATUS_IGNORE);
            expect(c, "in any order");
        }
        MPI_Wait(&sum, MPI_STATUS_IGNORE);
        mt_pair_expect_sum(&pair, 3000, mt_size(), round, "before calls with counts");
    }
    for (int k = 0; k < COMMS; k++) {
        for (int i = 0; i < CALLS; i++) {
            let_go(&calls[k][i]);
        }
        MPI_Comm_free(&comms[k]);
    }
    mt_pair_free(&pair);
}

/* Some time on device memory, and some on host memory, while ranks are ahead of others. */
static void case_changes(void)
{
    enum { PHASES = 8, CALLS = 40, AT_ONCE = 4 };
    struct call host[AT_ONCE], device[AT_ONCE];

    for (int i = 0; i < AT_ONCE; i++) {
        host[i] = make(900, MT_HOST, MT_HOST);
        device[i] = make(900, MT_DEVICE, MT_DEVICE);
    }
    warm_up(MPI_COMM_WORLD);
    for (int phase = 0; phase < PHASES; phase++) {
        struct call *calls = (phase % 2) ? host : device;
        for (int n = 0; n < CALLS; n += AT_ONCE) {
            for (int i = 0; i < AT_ONCE; i++) {
                set(&calls[i], phase * 1000 + n + i);
                begin(&calls[i], MPI_COMM_WORLD);
                if (n >= CALLS - AT_ONCE) {
                    mt_expect_path((phase % 2) && (expected_path != NULL) ? "host" : expected_path,
                                   "at the end of a phase");
                }
            }
            if (draw(4) == 0) {
                usleep(1000);
            }
            for (int i = 0; i < AT_ONCE; i++) {
                MPI_Wait(&calls[i].request, MPI_STATUS_IGNORE);
                expect(&calls[i], "of a phase");
            }
        }
    }
    for (int i = 0; i < AT_ONCE; i++) {
        let_go(&host[i]);
        let_go(&device[i]);
    }
}

/* Any rank on any memory. */
static void case_unlike(void)
{
    static const enum mt_where kinds[] = {MT_HOST, MT_DEVICE, MT_MANAGED};

    warm_up(MPI_COMM_WORLD);
    for (int i = 0; i < 60; i++) {
        struct call c = make((i % 9 == 8) ? 600 << 10 : 3000, kinds[draw(3)], kinds[draw(3)]);
        one(&c, i, MPI_COMM_WORLD, "on unlike memory");
        let_go(&c);
    }
}

/* Long blocks in memory that others cannot map: in rounds, of any number. */
static void case_managed(void)
{
    static const int bytes[] = {700 << 10, 1500 << 10, 2100 << 10, 5 << 20};
    struct call      around = make(2000, MT_DEVICE, MT_DEVICE);

    warm_up(MPI_COMM_WORLD);
    for (int i = 0; i < 24; i++) {
        bool        any = (mt_rank() == i % mt_size());
        struct call c = make(bytes[i % 4], MT_DEVICE, any ? MT_MANAGED : MT_DEVICE);
        set(&around, i);
        set(&c, i + i / 4);
        begin(&around, MPI_COMM_WORLD);
        begin(&c, MPI_COMM_WORLD);
        mt_expect_path(expected_path, "in managed memory");
        MPI_Wait(&c.request, MPI_STATUS_IGNORE);
        MPI_Wait(&around.request, MPI_STATUS_IGNORE);
        expect(&c, "in managed memory");
        one(&around, i + 1, MPI_COMM_WORLD, "behind it");
        let_go(&c);
    }
    let_go(&around);
}

/* The communicator is freed while calls are under way, and one rank comes late. */
static void case_freed(void)
{
    enum { ROUNDS = 12, CALLS = 5 };
    struct call calls[CALLS];

    for (int i = 0; i < CALLS; i++) {
        calls[i] = make(i == 2 ? 600 << 10 : 1000, MT_DEVICE, MT_DEVICE);
    }
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        warm_up(comm);
        if (mt_rank() == round % mt_size()) {
            usleep(3000);
        }
        for (int i = 0; i < CALLS; i++) {
            set(&calls[i], round * 10 + i);
            begin(&calls[i], comm);
            mt_expect_path(expected_path, "of a communicator that is freed");
        }
        MPI_Comm_free(&comm);
        for (int i = 0; i < CALLS; i++) {
            MPI_Wait(&calls[i].request, MPI_STATUS_IGNORE);
            expect(&calls[i], "of a communicator that was freed");
        }
    }
    for (int i = 0; i < CALLS; i++) {
        let_go(&calls[i]);
    }
}

static const struct mt_named_case cases[] = {{"orders", case_orders}, {"changes", case_changes},
                                             {"unlike", case_unlike}, {"managed", case_managed},
                                             {"freed", case_freed},   {NULL, NULL}};

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv, true);
    expected_path = (argc > 3) ? NULL : expected_path;
    mine = 77 + (uint64_t)mt_rank();
    return mt_run_to_end(cases, argc, argv);
}
