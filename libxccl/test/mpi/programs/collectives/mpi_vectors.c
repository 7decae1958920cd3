/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives whose blocks have counts and places of their own: short and long ones, that begin at
 * any byte, in any order, with gaps between them, and on each rank another way. Every byte is
 * compared, those of the gaps too.
 * Usage: mpi_vectors cuda|rocm|none drawn|long|mismatch|fetched [PATH [FORM]]
 * PATH: that they take, or any. FORM: nonblocking or persistent, of those whose counts only their
 * ranks know.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { MOST_RANKS = 8, ROUNDS = 40, WARM_UP = 10, LONG_BYTES = 3 << 20 };
/* The second time nothing of the program's is left on the device, and a kernel may linger. */
enum { TIMES = 2 };

enum form { BLOCKING, NONBLOCKING, PERSISTENT };

static enum form   form;
static const char *expected_path;
static MPI_Comm    comm; /* of all ranks: one may be given up */

/* Blocks of bytes in one buffer. */
struct layout {
    int            counts[MOST_RANKS], displs[MOST_RANKS];
    size_t         bytes;
    unsigned char *host, *device;
};

static uint64_t mine; /* each rank's own generator, and one that is alike on all */
static uint64_t common;
static bool     alike; /* blocks of one length, in order and side by side on some ranks */

static int draw(uint64_t *state, int below)
{
    return (int)(mt_next(state) % (uint64_t)below);
}

static unsigned char value(int from, int to, int i)
{
    return (unsigned char)(from * 31 + to * 7 + i * 3 + (i >> 8) + 1);
}

/* The blocks in any order, some bytes apart, at multiples of `unit` from an address like that. */
static struct layout lay_out(const int *counts, int unit)
{
    struct layout l = {.bytes = 64};
    int           order[MOST_RANKS];
    bool          plain = alike && (draw(&mine, 2) == 0);

    for (int i = 0; i < mt_size(); i++) {
        order[i] = i;
    }
    for (int i = mt_size() - 1; !plain && (i > 0); i--) {
        int k = draw(&mine, i + 1), keep = order[i];
        order[i] = order[k];
        order[k] = keep;
    }
    int at = plain ? 0 : unit * draw(&mine, 4);
    for (int i = 0; i < mt_size(); i++) {
        l.counts[order[i]] = counts[order[i]];
        l.displs[order[i]] = at;
        at += counts[order[i]] + (plain ? 0 : unit * draw(&mine, 5));
    }
    l.bytes += (size_t)at;
    l.host = malloc(l.bytes);
    l.device = mt_alloc(MT_DEVICE, l.bytes);
    return l;
}

static void let_go(struct layout *l)
{
    free(l->host);
    mt_free(MT_DEVICE, l->device);
}

static void clear(struct layout *l)
{
    memset(l->host, 0xee, l->bytes);
    mt_put(l->device, MT_DEVICE, l->host, l->bytes);
}

/* What this rank has for each, or block `only` alone. */
static void fill(struct layout *l, int only)
{
    memset(l->host, 0xee, l->bytes);
    for (int to = 0; to < mt_size(); to++) {
        for (int i = 0; ((only < 0) || (to == only)) && (i < l->counts[to]); i++) {
            l->host[l->displs[to] + i] = value(mt_rank(), (only < 0) ? to : 0, i);
        }
    }
    mt_put(l->device, MT_DEVICE, l->host, l->bytes);
}

/* to: whom each block was for. */
static void expect(struct layout *l, int to, const char *what)
{
    unsigned char *wanted = malloc(l->bytes);

    memset(wanted, 0xee, l->bytes);
    for (int from = 0; from < mt_size(); from++) {
        for (int i = 0; i < l->counts[from]; i++) {
            wanted[l->displs[from] + i] = value(from, to, i);
        }
    }
    mt_get(l->host, l->device, MT_DEVICE, l->bytes);
    size_t wrong = 0, first = 0;
    for (size_t i = l->bytes; i-- > 0;) {
        if (l->host[i] != wanted[i]) {
            wrong++;
            first = i;
        }
    }
    mt_expect(wrong == 0, "%s: %zu of %zu bytes are wrong, the first at %zu", what, wrong, l->bytes,
              first);
    free(wanted);
}

static bool any(const int *counts)
{
    for (int i = 0; i < mt_size(); i++) {
        if (counts[i] > 0) {
            return true;
        }
    }
    return false;
}

/* The vendor's library needs to know more than a rank does, but in alltoallv. */
static bool is_left_to_mpi(void)
{
    return (form == NONBLOCKING) && (expected_path != NULL) && (strcmp(expected_path, "ccl") == 0);
}

static void on_path(bool has_data, const char *what)
{
    if (has_data) {
        mt_expect_path(expected_path, what);
    }
}

typedef int alltoallv_init(const void *, const int *, const int *, MPI_Datatype, void *,
                           const int *, const int *, MPI_Datatype, MPI_Comm, MPI_Info,
                           MPI_Request *);
typedef int gatherv_init(const void *, int, MPI_Datatype, void *, const int *, const int *,
                         MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request *);
typedef int scatterv_init(const void *, const int *, const int *, MPI_Datatype, void *, int,
                          MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request *);

/* A request that was made, or started, as often as a blocking call would be made. */
static void complete(MPI_Request *request)
{
    for (int i = 1; (form == PERSISTENT) && (i < TIMES); i++) {
        MPI_Start(request);
        MPI_Wait(request, MPI_STATUS_IGNORE);
    }
    if (form == PERSISTENT) {
        MPI_Start(request);
    }
    MPI_Wait(request, MPI_STATUS_IGNORE);
    if (form == PERSISTENT) {
        MPI_Request_free(request);
    }
}

static void call_alltoallv(const void *in, const int *sent, const int *from, void *out,
                           const int *received, const int *to)
{
    alltoallv_init *make;
    MPI_Request     request;

    if (form == PERSISTENT) {
        *(void **)&make = mt_find("MPI_Alltoallv_init");
        make(in, sent, from, MPI_BYTE, out, received, to, MPI_BYTE, comm, MPI_INFO_NULL, &request);
        complete(&request);
    }
    for (int i = 0; (form != PERSISTENT) && (i < TIMES); i++) {
        if (form == NONBLOCKING) {
            MPI_Ialltoallv(in, sent, from, MPI_BYTE, out, received, to, MPI_BYTE, comm, &request);
            complete(&request);
        } else {
            MPI_Alltoallv(in, sent, from, MPI_BYTE, out, received, to, MPI_BYTE, comm);
        }
    }
}

static void call_gatherv(const void *in, int sent, const struct layout *out, int root)
{
    gatherv_init *make;
    MPI_Request   request;

    if (form == PERSISTENT) {
        *(void **)&make = mt_find("MPI_Gatherv_init");
        make(in, sent, MPI_BYTE, out->device, out->counts, out->displs, MPI_BYTE, root, comm,
             MPI_INFO_NULL, &request);
        complete(&request);
    }
    for (int i = 0; (form != PERSISTENT) && (i < TIMES); i++) {
        if (form == NONBLOCKING) {
            MPI_Igatherv(in, sent, MPI_BYTE, out->device, out->counts, out->displs, MPI_BYTE, root,
                         comm, &request);
            complete(&request);
        } else {
            MPI_Gatherv(in, sent, MPI_BYTE, out->device, out->counts, out->displs, MPI_BYTE, root,
                        comm);
        }
    }
}

static void call_scatterv(const struct layout *in, void *out, int received, int root)
{
    scatterv_init *make;
    MPI_Request    request;

    if (form == PERSISTENT) {
        *(void **)&make = mt_find("MPI_Scatterv_init");
        make(in->device, in->counts, in->displs, MPI_BYTE, out, received, MPI_BYTE, root, comm,
             MPI_INFO_NULL, &request);
        complete(&request);
    }
    for (int i = 0; (form != PERSISTENT) && (i < TIMES); i++) {
        if (form == NONBLOCKING) {
            MPI_Iscatterv(in->device, in->counts, in->displs, MPI_BYTE, out, received, MPI_BYTE,
                          root, comm, &request);
            complete(&request);
        } else {
            MPI_Scatterv(in->device, in->counts, in->displs, MPI_BYTE, out, received, MPI_BYTE,
                         root, comm);
        }
    }
}

static void alltoallv(int counts[MOST_RANKS][MOST_RANKS], int unit)
{
    int  received[MOST_RANKS];
    bool has_data = false;

    for (int i = 0; i < mt_size(); i++) {
        received[i] = counts[i][mt_rank()];
        has_data = has_data || any(counts[i]);
    }
    struct layout in = lay_out(counts[mt_rank()], unit), out = lay_out(received, unit);
    fill(&in, -1);
    clear(&out);
    call_alltoallv(in.device, in.counts, in.displs, out.device, out.counts, out.displs);
    expect(&out, mt_rank(), "MPI_Alltoallv");
    on_path(has_data, "MPI_Alltoallv");
    let_go(&in);
    let_go(&out);
}

static void allgatherv(const int *counts, int unit, bool in_place)
{
    struct layout out = lay_out(counts, unit);
    int           own[MOST_RANKS] = {0};

    own[0] = counts[mt_rank()];
    struct layout in = lay_out(own, 1); /* where the others write may be aligned alone */
    fill(&in, 0);
    if (in_place) {
        fill(&out, mt_rank());
    } else {
        clear(&out);
    }
    const void *from = in_place ? MPI_IN_PLACE : in.device + in.displs[0];
    if (draw(&common, 3) == 0) {
        MPI_Request request;
        MPI_Iallgatherv(from, own[0], MPI_BYTE, out.device, out.counts, out.displs, MPI_BYTE, comm,
                        &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        for (int i = 0; i < TIMES; i++) {
            MPI_Allgatherv(from, own[0], MPI_BYTE, out.device, out.counts, out.displs, MPI_BYTE,
                           comm);
        }
        on_path(any(counts), "MPI_Allgatherv");
    }
    expect(&out, 0, in_place ? "MPI_Allgatherv in place" : "MPI_Allgatherv");
    let_go(&in);
    let_go(&out);
}

static void gatherv(const int *counts, int unit, int root, bool in_place)
{
    struct layout out = lay_out(counts, unit);
    int           own[MOST_RANKS] = {0};

    own[0] = counts[mt_rank()];
    struct layout in = lay_out(own, unit);
    in_place = in_place && (mt_rank() == root);
    fill(&in, 0);
    if (in_place) {
        fill(&out, root);
    } else {
        clear(&out);
    }
    call_gatherv(in_place ? MPI_IN_PLACE : in.device + in.displs[0], own[0], &out, root);
    if (mt_rank() == root) {
        expect(&out, 0, in_place ? "MPI_Gatherv in place" : "MPI_Gatherv");
    }
    on_path(any(counts) && !is_left_to_mpi(), "MPI_Gatherv");
    let_go(&in);
    let_go(&out);
}

static void scatterv(const int *counts, int unit, int root, bool in_place)
{
    struct layout in = lay_out(counts, unit);
    int           own[MOST_RANKS] = {0};

    own[0] = counts[mt_rank()];
    struct layout out = lay_out(own, unit);
    in_place = in_place && (mt_rank() == root);
    fill(&in, -1);
    clear(&out);
    call_scatterv(&in, in_place ? MPI_IN_PLACE : out.device + out.displs[0], own[0], root);
    if (!in_place) {
        int wrong = 0;
        mt_get(out.host, out.device, MT_DEVICE, out.bytes);
        for (int i = 0; i < own[0]; i++) {
            wrong += (out.host[out.displs[0] + i] != value(root, mt_rank(), i));
        }
        mt_expect(wrong == 0, "MPI_Scatterv: %d of %d bytes are wrong", wrong, own[0]);
    }
    on_path(any(counts) && !is_left_to_mpi(), "MPI_Scatterv");
    let_go(&in);
    let_go(&out);
}

/* All blocks of a sender begin at the same place, and only their lengths differ. */
static void from_one_place(int counts[MOST_RANKS][MOST_RANKS], int unit, int root)
{
    int        most[MOST_RANKS] = {0}, none[MOST_RANKS] = {0}, received[MOST_RANKS];
    const int *sent = counts[mt_rank()], *roots = counts[root];
    bool       has_data = false;

    for (int i = 0; i < mt_size(); i++) {
        most[0] = (sent[i] > most[0]) ? sent[i] : most[0];
        received[i] = counts[i][mt_rank()];
        has_data = has_data || any(counts[i]);
    }
    struct layout  in = lay_out(most, unit), out = lay_out(received, unit);
    unsigned char *from = in.device + in.displs[0];
    fill(&in, 0);
    clear(&out);
    call_alltoallv(from, sent, none, out.device, out.counts, out.displs);
    expect(&out, 0, "MPI_Alltoallv from one place");
    on_path(has_data, "MPI_Alltoallv from one place");
    clear(&out);
    for (int i = 0; i < mt_size(); i++) {
        out.counts[i] = (i == root) ? roots[mt_rank()] : 0;
    }
    MPI_Scatterv(from, sent, none, MPI_BYTE, out.device + out.displs[root], out.counts[root],
                 MPI_BYTE, root, comm);
    expect(&out, 0, "MPI_Scatterv from one place");
    let_go(&in);
    let_go(&out);
}

/* Of integers: counts are numbers of them. Kernels do not take up long parts anywhere. */
static void reduce_scatter(const int *counts, bool in_place)
{
    int  all = 0, before = 0, wrong = 0;
    bool aligned = true;

    for (int i = 0; i < mt_size(); i++) {
        aligned = aligned && (counts[i] % 4 == 0);
        before += (i < mt_rank()) ? counts[i] : 0;
        all += counts[i];
    }
    size_t bytes = sizeof(int) * (size_t)(all + 1);
    int   *host = malloc(bytes);
    int   *in = mt_alloc(MT_DEVICE, bytes), *out = mt_alloc(MT_DEVICE, bytes);
    for (int i = 0; i < all; i++) {
        host[i] = mt_value(mt_rank(), 3, i);
    }
    mt_put(in, MT_DEVICE, host, bytes);
    if (in_place) {
        MPI_Request request;
        mt_put(out, MT_DEVICE, host, bytes);
        MPI_Ireduce_scatter(MPI_IN_PLACE, out, counts, MPI_INT, MPI_SUM, comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, comm);
        on_path(aligned && any(counts), "MPI_Reduce_scatter");
    }
    mt_get(host, out, MT_DEVICE, bytes);
    for (int i = 0; i < counts[mt_rank()]; i++) {
        int sum = 0;
        for (int r = 0; r < mt_size(); r++) {
            sum += mt_value(r, 3, before + i);
        }
        wrong += (host[i] != sum);
    }
    mt_expect(wrong == 0, "%s: %d of %d elements are wrong",
              in_place ? "MPI_Ireduce_scatter in place" : "MPI_Reduce_scatter", wrong,
              counts[mt_rank()]);
    free(host);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

static void draw_counts(int counts[MOST_RANKS][MOST_RANKS], int most, int unit)
{
    int one = unit * draw(&common, most / unit + 1);

    for (int from = 0; from < mt_size(); from++) {
        for (int to = 0; to < mt_size(); to++) {
            bool none = (draw(&common, 4) == 0);
            int  other = none ? 0 : unit * draw(&common, most / unit + 1);
            counts[from][to] = alike ? one : other;
        }
    }
}

/* The ranks know only after some calls that these have device memory. */
static void warm_up(void)
{
    const char *kept = expected_path;
    int         counts[MOST_RANKS][MOST_RANKS];

    expected_path = NULL;
    for (int i = 0; i < WARM_UP; i++) {
        draw_counts(counts, 100, 1);
        allgatherv(counts[0], 1, false);
        alltoallv(counts, 1);
    }
    expected_path = kept;
}

static void draw_round(int most, int unit)
{
    int counts[MOST_RANKS][MOST_RANKS], root = draw(&common, mt_size());

    alike = (draw(&common, 4) == 0);
    draw_counts(counts, most, unit);
    alltoallv(counts, unit);
    allgatherv(counts[0], unit, draw(&common, 2) == 0);
    gatherv(counts[1 % mt_size()], unit, root, draw(&common, 2) == 0);
    scatterv(counts[0], unit, root, draw(&common, 2) == 0);
    from_one_place(counts, unit, root);
    reduce_scatter(counts[0], false);
    reduce_scatter(counts[0], true);
}

static void case_drawn(void)
{
    static const int most[] = {16, 300, 5000, 70000}, units[] = {1, 4, 8, 16};

    warm_up();
    for (int round = 0; round < ROUNDS; round++) {
        draw_round(most[draw(&common, 4)], units[draw(&common, 4)]);
    }
}

/* Much longer than the workspaces take. */
static void case_long(void)
{
    static const int units[] = {1, 4, 8, 16};

    warm_up();
    for (int i = 0; i < 4; i++) {
        draw_round(LONG_BYTES / mt_size(), units[i]);
    }
}

/* Counts that do not fit together are an error, and nothing is written beyond a block. */
static void case_mismatch(void)
{
    enum { MUCH = 2 << 20, LESS = MUCH - 16 };
    int counts[MOST_RANKS] = {0}, displs[MOST_RANKS] = {0};

    warm_up();
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    char *in = mt_alloc(MT_DEVICE, MUCH), *out = mt_alloc(MT_DEVICE, MUCH);
    char *host = calloc(1, MUCH);
    mt_put(out, MT_DEVICE, host, MUCH);
    memset(host, 1, MUCH);
    mt_put(in, MT_DEVICE, host, MUCH);
    int received[MOST_RANKS] = {0};
    counts[1] = (mt_rank() == 0) ? MUCH : 0;
    received[0] = (mt_rank() == 1) ? LESS : 0;
    int code = MPI_Alltoallv(in, counts, displs, MPI_BYTE, out, received, displs, MPI_BYTE, comm);
    mt_expect(code != MPI_SUCCESS, "rank 0 sends more than rank 1 expects");
    mt_get(host, out, MT_DEVICE, MUCH);
    mt_expect(host[MUCH - 1] == 0, "a byte behind the block was written");
    free(host);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

/* The same where a rank fetches its block: of three ranks, from the root. */
static void case_fetched(void)
{
    enum { MUCH = 2 << 20, LESS = MUCH - 16 };
    int counts[MOST_RANKS], displs[MOST_RANKS] = {0};

    warm_up();
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    char *in = mt_alloc(MT_DEVICE, MUCH), *out = mt_alloc(MT_DEVICE, MUCH);
    for (int i = 0; i < mt_size(); i++) {
        counts[i] = MUCH;
    }
    int received = (mt_rank() == mt_size() - 1) ? LESS : MUCH;
    int code = MPI_Scatterv(in, counts, displs, MPI_BYTE, out, received, MPI_BYTE, 0, comm);
    mt_expect(code != MPI_SUCCESS, "rank 0 sends more than the last rank expects");
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {{"drawn", case_drawn},
                                                 {"long", case_long},
                                                 {"mismatch", case_mismatch},
                                                 {"fetched", case_fetched},
                                                 {NULL, NULL}};

    mt_begin(&argc, &argv, true);
    expected_path = ((argc > 3) && (strcmp(argv[3], "any") != 0)) ? argv[3] : NULL;
    if (argc > 4) {
        form = (strcmp(argv[4], "persistent") == 0) ? PERSISTENT : NONBLOCKING;
    }
    common = 12345;
    mine = 99 + (uint64_t)mt_rank();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    return mt_run_to_end(cases, argc, argv);
}
