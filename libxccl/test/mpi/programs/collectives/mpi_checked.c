/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sums of integers of 8 and 16 bits on device memory: the same bits as this MPI makes of them on
 * host memory, whatever leaves the type's range; and by the kernels where nothing can.
 *
 *   mpi_checked RUNTIME forms|large|repeated|burst|waiting|long|started|restarted|early
 * Paths are looked at by xccl_mpi_last_path(). An MPI whose sums wrap around has nothing done over.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "support.h"

static const struct type {
    const char  *name;
    MPI_Datatype type;
    int          bytes;
    bool         is_signed;
} types[] = {
    {"MPI_CHAR", MPI_CHAR, 1, true},
    {"MPI_UNSIGNED_CHAR", MPI_UNSIGNED_CHAR, 1, false},
    {"MPI_INT16_T", MPI_INT16_T, 2, true},
    {"MPI_UNSIGNED_SHORT", MPI_UNSIGNED_SHORT, 2, false},
};
enum { TYPES = sizeof(types) / sizeof(types[0]), GUARD = 64 };

enum form { ALLREDUCE, REDUCE, BLOCKS, UNEVEN, SCAN, EXSCAN, FORMS };
static const char *const form_names[] = {"allreduce",      "reduce", "reduce_scatter_block",
                                         "reduce_scatter", "scan",   "exscan"};

/* Where two ranks' values add up to more than the type holds. */
enum where { NOWHERE, FIRST, MIDDLE, LAST, BORDER, ANYWHERE, WHERES };
static const char *const where_names[] = {"nowhere", "first",  "middle",
                                          "last",    "border", "anywhere"};

/* A call, the same on all ranks. */
struct what {
    enum form          form;
    const struct type *type;
    int                count; /* of a block where there are blocks */
    bool               in_place;
    int                root;
    enum where         where;
    int                shard; /* of so many as there are ranks: where ANYWHERE is */
    bool               persistent;
};

static uint64_t state = 4711; /* the same on all ranks */

/* Does a sum of this type leave its range otherwise than by wrapping around? */
static bool differs(const struct type *t)
{
    unsigned char in[256] = {0}, inout[256] = {0}, wrapped[256] = {0};

    for (int i = 0; i < 256; i += t->bytes) {
        /* The largest value, and one; little end first. */
        memset(in + i, 0xff, (size_t)t->bytes);
        in[i + t->bytes - 1] = t->is_signed ? 0x7f : 0xff;
        inout[i] = 1;
        wrapped[i + t->bytes - 1] = t->is_signed ? 0x80 : 0;
    }
    PMPI_Reduce_local(in, inout, 256 / t->bytes, t->type, MPI_SUM);
    return memcmp(inout, wrapped, sizeof(wrapped)) != 0;
}

static void put(unsigned char *buffer, const struct type *t, long i, long value)
{
    buffer[i * t->bytes] = (unsigned char)value; /* little end first */
    if (t->bytes > 1) {
        buffer[i * t->bytes + 1] = (unsigned char)(value >> 8);
    }
}

static long total_count(const struct what *w)
{
    switch (w->form) {
    case BLOCKS:
        return (long)w->count * mt_size();
    case UNEVEN: /* the first block is the largest: others would overlap it in place */
        return (long)w->count * mt_size() - mt_size() / 2;
    default:
        return w->count;
    }
}

static void uneven_counts(const struct what *w, int *counts)
{
    for (int i = 0; i < mt_size(); i++) {
        counts[i] = w->count - (i >= (mt_size() + 1) / 2);
    }
}

static long offset_of(const struct what *w)
{
    long n = total_count(w), each = (n + mt_size() - 1) / mt_size();
    long at = w->shard * each + (long)(mt_next(&state) % (uint64_t)each);

    switch (w->where) {
    case FIRST:
        return 0;
    case MIDDLE:
    case BORDER:
        return n / 2;
    case LAST:
        return n - 1;
    default:
        return (at < n) ? at : n - 1;
    }
}

/*
 * Of every element the absolute values add up to the type's largest value, or to less; but for one
 * element, of which ranks 0 and 1 have more. BORDER: just that one adds up to the largest value, of
 * which rank 0 has all but one.
 */
static void fill(const struct what *w, unsigned char *in)
{
    long     most = (1l << (8 * w->type->bytes - (w->type->is_signed ? 1 : 0))) - 1;
    long     share = most / mt_size(), n = total_count(w), at = offset_of(w);
    uint64_t seed = mt_next(&state), own = seed + (uint64_t)mt_rank() * 77777 + 1;

    /* Hundreds of millions of elements are drawn: one number each, and no division. */
    for (long i = 0, third = 0; i < n; i++, third = (third == 2) ? 0 : third + 1) {
        uint64_t drawn = mt_next(&own);
        long     value = (long)(((drawn >> 33) * (uint64_t)(share + 1)) >> 31);
        value = (third == 0) ? share : value;
        put(in, w->type, i, (w->type->is_signed && ((drawn & 1) == 0)) ? -value : value);
    }
    long beyond = (mt_rank() == 0) ? most - (w->where == BORDER) : 0;
    beyond = (mt_rank() == 1) ? ((w->where == BORDER) ? 1 : 2) : beyond;
    if (w->where != NOWHERE) {
        put(in, w->type, at, (w->type->is_signed && (seed % 2 == 0)) ? -beyond : beyond);
    }
}

static bool leaves_range(const struct what *w)
{
    /* Of two ranks an exscan adds nothing. */
    return (w->where != NOWHERE) && (w->where != BORDER) && (mt_size() > 1) &&
           ((w->form != EXSCAN) || (mt_size() > 2));
}

typedef int reduce_init(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                        MPI_Request *);
typedef int to_root_init(const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm, MPI_Info,
                         MPI_Request *);
typedef int scatter_init(const void *, void *, const int *, MPI_Datatype, MPI_Op, MPI_Comm,
                         MPI_Info, MPI_Request *);

static void make_request(const struct what *w, const void *send, void *out, const int *counts,
                         MPI_Request *request)
{
    static const char *const names[] = {
        "MPI_Allreduce_init",      "MPI_Reduce_init", "MPI_Reduce_scatter_block_init",
        "MPI_Reduce_scatter_init", "MPI_Scan_init",   "MPI_Exscan_init"};
    MPI_Datatype  t = w->type->type;
    reduce_init  *reduce;
    to_root_init *to_root;
    scatter_init *scatter;
    void         *found = mt_find(names[w->form]);

    if (w->form == REDUCE) {
        *(void **)&to_root = found;
        to_root(send, out, w->count, t, MPI_SUM, w->root, MPI_COMM_WORLD, MPI_INFO_NULL, request);
    } else if (w->form == UNEVEN) {
        *(void **)&scatter = found;
        scatter(send, out, counts, t, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request);
    } else {
        *(void **)&reduce = found;
        reduce(send, out, w->count, t, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, request);
    }
}

/* As MPI does that of a persistent request. */
static void begin_on_host(const struct what *w, const void *send, void *out, const int *counts,
                          MPI_Request *request)
{
    MPI_Datatype t = w->type->type;

    switch (w->form) {
    case ALLREDUCE:
        MPI_Iallreduce(send, out, w->count, t, MPI_SUM, MPI_COMM_WORLD, request);
        break;
    case REDUCE:
        MPI_Ireduce(send, out, w->count, t, MPI_SUM, w->root, MPI_COMM_WORLD, request);
        break;
    case BLOCKS:
        MPI_Ireduce_scatter_block(send, out, w->count, t, MPI_SUM, MPI_COMM_WORLD, request);
        break;
    case UNEVEN:
        MPI_Ireduce_scatter(send, out, counts, t, MPI_SUM, MPI_COMM_WORLD, request);
        break;
    case SCAN:
        MPI_Iscan(send, out, w->count, t, MPI_SUM, MPI_COMM_WORLD, request);
        break;
    default:
        MPI_Iexscan(send, out, w->count, t, MPI_SUM, MPI_COMM_WORLD, request);
        break;
    }
}

/* It is MPI's from the beginning where MPI may have to do it over. */
static const char *started_path(const struct what *w)
{
    return differs(w->type) ? "mpi-staged" : "direct";
}

static int call_later(const struct what *w, void *send, void *out, const int *counts, bool on_host)
{
    MPI_Request request = MPI_REQUEST_NULL;

    if (on_host) {
        begin_on_host(w, send, out, counts, &request);
        return MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    make_request(w, send, out, counts, &request);
    MPI_Start(&request);
    mt_expect_path((mt_size() > 1) ? started_path(w) : NULL, form_names[w->form]);
    int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    return code;
}

static int call(const struct what *w, void *in, void *out, bool on_host)
{
    MPI_Datatype t = w->type->type;
    bool         alone = w->in_place && ((w->form != REDUCE) || (w->root == mt_rank()));
    void        *send = alone ? MPI_IN_PLACE : in;
    int          counts[64];

    uneven_counts(w, counts);
    if (w->persistent) {
        return call_later(w, send, out, counts, on_host);
    }
    switch (w->form) {
    case ALLREDUCE:
        return MPI_Allreduce(send, out, w->count, t, MPI_SUM, MPI_COMM_WORLD);
    case REDUCE:
        return MPI_Reduce(send, out, w->count, t, MPI_SUM, w->root, MPI_COMM_WORLD);
    case BLOCKS:
        return MPI_Reduce_scatter_block(send, out, w->count, t, MPI_SUM, MPI_COMM_WORLD);
    case UNEVEN:
        return MPI_Reduce_scatter(send, out, counts, t, MPI_SUM, MPI_COMM_WORLD);
    case SCAN:
        return MPI_Scan(send, out, w->count, t, MPI_SUM, MPI_COMM_WORLD);
    default:
        return MPI_Exscan(send, out, w->count, t, MPI_SUM, MPI_COMM_WORLD);
    }
}

/* What of the result counts, in bytes. Nothing is written of the first rank's of an exscan. */
static size_t result_bytes(const struct what *w)
{
    int counts[64];

    uneven_counts(w, counts);
    if ((w->form == REDUCE) && (w->root != mt_rank())) {
        return 0;
    }
    return (size_t)((w->form == UNEVEN) ? counts[mt_rank()] : w->count) * (size_t)w->type->bytes;
}

struct memory {
    size_t         bytes;
    unsigned char *in, *out;                                /* device */
    unsigned char *host, *reference, *host_out, *untouched; /* host */
};

static struct memory make(long elements)
{
    size_t        bytes = (size_t)elements * 2 + GUARD;
    struct memory m = {.bytes = bytes};

    m.in = mt_alloc(MT_DEVICE, bytes);
    m.out = mt_alloc(MT_DEVICE, bytes);
    m.host = malloc(bytes);
    m.reference = malloc(bytes);
    m.host_out = malloc(bytes);
    m.untouched = malloc(bytes);
    return m;
}

static void drop(struct memory *m)
{
    mt_free(MT_DEVICE, m->in);
    mt_free(MT_DEVICE, m->out);
    free(m->host);
    free(m->reference);
    free(m->host_out);
    free(m->untouched);
}

static void describe(const struct what *w, char *text, size_t len)
{
    snprintf(text, len, "%s of %d %s%s, root %d, %s, shard %d", form_names[w->form], w->count,
             w->type->name, w->in_place ? " in place" : "", w->root, where_names[w->where],
             w->shard);
}

/* MPICH 4.0.2 takes MPI_IN_PLACE of a reduce for an address; where sums wrap around, this is as
 * good. */
static int reference_call(const struct what *w, void *in, void *out)
{
    struct what apart = *w;

    apart.in_place = w->in_place && ((w->form != REDUCE) || differs(w->type));
    return call(&apart, in, out, true);
}

static const char *right_path(const struct what *w)
{
    return (leaves_range(w) && differs(w->type)) ? "mpi-staged" : "direct";
}

/* path: that is expected, or NULL. */
static void one_call(struct memory *m, const struct what *w, const char *path)
{
    char   text[160];
    size_t data = (size_t)total_count(w) * (size_t)w->type->bytes, result = result_bytes(w);

    describe(w, text, sizeof(text));
    memset(m->host, 0x55, m->bytes);
    fill(w, m->host);
    if (w->in_place) {
        memcpy(m->reference, m->host, m->bytes);
    } else {
        memset(m->reference, 0x33, m->bytes);
    }
    mt_put(m->in, MT_DEVICE, m->host, m->bytes);
    mt_put(m->out, MT_DEVICE, m->reference, m->bytes);
    int code = call(w, m->in, m->out, false);
    if ((path != NULL) && (mt_size() > 1)) {
        mt_expect_path(path, text);
    }
    int expected = reference_call(w, m->host, m->reference);
    mt_get(m->host_out, m->out, MT_DEVICE, m->bytes);
    mt_expect((code == MPI_SUCCESS) && (expected == MPI_SUCCESS), "%s: code %d", text, code);
    mt_expect(memcmp(m->host_out, m->reference, result) == 0, "%s: other bits", text);
    mt_expect(memcmp(m->host_out + data, m->reference + data, m->bytes - data) == 0,
              "%s: written behind the buffer", text);
    mt_get(m->untouched, m->in, MT_DEVICE, m->bytes);
    mt_expect(memcmp(m->untouched, m->host, m->bytes) == 0, "%s: the input was written", text);
}

/* Every way of a call, with blocks of so many elements. */
static void all_ways(struct memory *m, int count, enum form form, bool look_at_path,
                     bool persistent)
{
    for (int t = 0; t < TYPES; t++) {
        for (int i = 0; i < 2 * WHERES; i++) {
            struct what w = {.form = form,
                             .type = &types[t],
                             .count = count,
                             .in_place = (i >= WHERES),
                             .root = (form == REDUCE) ? (i + t) % mt_size() : 0,
                             .where = (enum where)(i % WHERES),
                             .shard = (i + t) % mt_size(),
                             .persistent = persistent};
            one_call(m, &w, look_at_path ? right_path(&w) : NULL);
        }
    }
}

static void forms(void)
{
    static const int counts[] = {1, 3, 16, 63, 500, 4097, 40000};
    struct memory    m = make(40000l * mt_size());

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        for (enum form f = ALLREDUCE; f < FORMS; f++) {
            /* Blocks of different sizes have no data of their own for every rank. */
            all_ways(&m, counts[i], f, (f != UNEVEN) || (counts[i] > 1), false);
        }
    }
    drop(&m);
}

/* On the ranks' own buffers. */
static void large(void)
{
    static const int counts[] = {(512 << 10) + 16, (512 << 10) + 4109};
    struct memory    m = make(((520l << 10) + 64) * mt_size());

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        all_ways(&m, counts[i], ALLREDUCE, true, false);
    }
    all_ways(&m, counts[1], REDUCE, true, false);
    all_ways(&m, counts[0], BLOCKS, false, false); /* in place it is too long */
    drop(&m);
}

/* One after the other, some of which leave the range, with others between and around, at any pace.
 */
static void repeated(void)
{
    enum { ROUNDS = 250, SMALL = 999 };
    struct memory  m = make(((600l << 10) + 64) * mt_size());
    struct mt_pair pair = mt_pair_make(MT_DEVICE, 200000), around = mt_pair_make(MT_DEVICE, SMALL);
    uint64_t       nap = (uint64_t)mt_rank() + 99;

    for (int i = 0; i < ROUNDS; i++) {
        struct what w = {.form = (enum form)(mt_next(&state) % FORMS),
                         .type = &types[mt_next(&state) % TYPES],
                         .count = 1 + (int)(mt_next(&state) % 3000),
                         .in_place = (mt_next(&state) % 3 == 0),
                         .root = (int)(mt_next(&state) % (uint64_t)mt_size()),
                         .where = (enum where)(mt_next(&state) % WHERES),
                         .shard = (int)(mt_next(&state) % (uint64_t)mt_size())};
        bool        is_large = (mt_next(&state) % 16 == 0) && (w.form <= REDUCE);
        w.count = is_large ? (600 << 10) + w.count % 64 : w.count;
        w.root = (w.form == REDUCE) ? w.root : 0;
        MPI_Request request = MPI_REQUEST_NULL;
        if (mt_next(&state) % 2 == 0) { /* the devices have something else to do first */
            mt_pair_fill(&around, SMALL, MPI_COMM_WORLD, i);
            MPI_Iallreduce(around.in, around.out, SMALL, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                           &request);
        }
        one_call(&m, &w, (w.count > 1) ? right_path(&w) : NULL);
        if (request != MPI_REQUEST_NULL) {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            mt_pair_expect_sum(&around, SMALL, mt_size(), i, "around a checked sum");
        }
        if (mt_next(&state) % 4 == 0) {
            mt_pair_allreduce(&pair, (mt_next(&state) % 2 == 0) ? 100 : 200000, MPI_COMM_WORLD, i);
        }
        if (mt_next(&nap) % 32 == 0) {
            usleep(2000);
        }
    }
    mt_pair_free(&around);
    mt_pair_free(&pair);
    drop(&m);
}

static void expect_result(struct memory *m, const struct what *w, const char *note)
{
    char text[160];

    describe(w, text, sizeof(text));
    reference_call(w, m->host, m->reference);
    mt_get(m->host_out, m->out, MT_DEVICE, m->bytes);
    mt_expect(memcmp(m->host_out, m->reference, result_bytes(w)) == 0, "%s: %s: other bits", note,
              text);
}

/*
 * Several in a row, fast enough for a kernel that lingers; the last one leaves the range, with
 * memory that one rank has never passed before: its device may have something to do first.
 */
static void burst(void)
{
    enum { ROUNDS = 60, CALLS = 4, SMALL = 5000, LARGE = (512 << 10) + 48 };
    struct memory m = make((long)SMALL * mt_size() + LARGE), old = make(LARGE + SMALL * mt_size());

    for (int i = 0; i < ROUNDS; i++) {
        bool          is_large = (i % 2 == 0);
        bool          is_new = ((i / 2) % mt_size() == mt_rank());
        struct memory made = is_new ? make(LARGE + SMALL * mt_size()) : old;
        struct what w = {.form = is_large ? (enum form)((i / 4) % 2) : (enum form)((i / 2) % FORMS),
                         .type = &types[(i / 3) % TYPES],
                         .count = is_large ? LARGE : SMALL};
        fill(&w, m.host);
        mt_put(m.in, MT_DEVICE, m.host, m.bytes);
        struct what beyond = w;
        beyond.where = ANYWHERE;
        beyond.shard = i % mt_size();
        fill(&beyond, made.host);
        mt_put(made.in, MT_DEVICE, made.host, made.bytes);
        for (int k = 0; k < CALLS; k++) {
            call(&w, m.in, m.out, false);
        }
        call(&beyond, made.in, made.out, false);
        mt_expect_path(right_path(&beyond), "burst");
        expect_result(&m, &w, "before");
        expect_result(&made, &beyond, "last");
        if (is_new) {
            drop(&made);
        }
    }
    drop(&m);
    drop(&old);
}

/* Calls that do not wait are MPI's where it may have to do them over. */
static void waiting(void)
{
    enum { COUNT = 1001 };
    struct memory m = make(COUNT), other = make(COUNT);
    struct what   w = {.form = ALLREDUCE, .type = &types[0], .count = COUNT, .where = ANYWHERE};

    for (int i = 0; i < 20; i++) {
        MPI_Request request;
        fill(&w, m.host);
        mt_put(m.in, MT_DEVICE, m.host, COUNT);
        MPI_Iallreduce(m.in, m.out, COUNT, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD, &request);
        one_call(&other, &w, right_path(&w));
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_get(m.host_out, m.out, MT_DEVICE, COUNT);
        MPI_Iallreduce(m.host, m.reference, COUNT, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_expect(memcmp(m.host_out, m.reference, COUNT) == 0, "without waiting: other bits");
    }
    drop(&m);
    drop(&other);
}

static void started(void)
{
    static const int counts[] = {1, 500, 40000, (512 << 10) + 16};
    struct memory    m = make(((512l << 10) + 64) * mt_size());

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        for (enum form f = ALLREDUCE; f < FORMS; f++) {
            bool is_large = (counts[i] > 40000);
            if (!is_large || (f == ALLREDUCE) || (f == REDUCE)) {
                all_ways(&m, counts[i], f, false, true);
            }
        }
    }
    drop(&m);
}

/* One request, some of whose starts leave the range, beside another one, in any order. */
static void restarted(void)
{
    enum { ROUNDS = 60, COUNT = 2001, REQUESTS = 2 };
    struct memory m[REQUESTS];
    struct what   w[REQUESTS];
    MPI_Request   requests[REQUESTS];

    for (int i = 0; i < REQUESTS; i++) {
        m[i] = make(COUNT);
        w[i] = (struct what){.form = ALLREDUCE, .type = &types[2 * i], .count = COUNT};
        make_request(&w[i], m[i].in, m[i].out, NULL, &requests[i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < REQUESTS; i++) {
            w[i].where = (enum where)(mt_next(&state) % WHERES);
            fill(&w[i], m[i].host);
            mt_put(m[i].in, MT_DEVICE, m[i].host, m[i].bytes);
        }
        for (int i = 0; i < REQUESTS; i++) {
            int k = (i + mt_rank() + round) % REQUESTS;
            MPI_Start(&requests[k]);
            mt_expect_path((mt_size() > 1) ? started_path(&w[k]) : NULL, "started again");
        }
        MPI_Waitall(REQUESTS, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < REQUESTS; i++) {
            w[i].persistent = true;
            expect_result(&m[i], &w[i], "started again");
        }
    }
    for (int i = 0; i < REQUESTS; i++) {
        MPI_Request_free(&requests[i]);
        drop(&m[i]);
    }
}

/* Rank 0 waits for the others in another call first: a start must not need its MPI_Wait. */
static void early(void)
{
    static const int counts[] = {500, (512 << 10) + 16};
    struct memory    m = make((512l << 10) + 64);

    for (size_t i = 0; i < 2 * sizeof(counts) / sizeof(counts[0]); i++) {
        struct what w = {.form = ALLREDUCE, .type = &types[2], .count = counts[i / 2]};
        MPI_Request request;
        w.where = (i % 2 == 0) ? MIDDLE : NOWHERE;
        fill(&w, m.host);
        mt_put(m.in, MT_DEVICE, m.host, m.bytes);
        make_request(&w, m.in, m.out, NULL, &request);
        MPI_Start(&request);
        if (mt_rank() == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (mt_rank() != 0) {
            MPI_Barrier(MPI_COMM_WORLD);
        }
        MPI_Request_free(&request);
        w.persistent = true;
        expect_result(&m, &w, "early");
    }
    drop(&m);
}

/* In place and longer than the scratch memory: MPI's, and other calls stay direct. */
static void too_long(void)
{
    enum { COUNT = (1 << 20) + 160 }; /* XCCL_SCRATCH=1 */
    struct memory m = make(COUNT);
    struct what   w = {.form = ALLREDUCE, .type = &types[0], .count = COUNT};

    for (int i = 0; i < 12; i++) {
        w.in_place = (i % 3 != 0);
        one_call(&m, &w, (w.in_place && differs(w.type)) ? "mpi-staged" : "direct");
    }
    drop(&m);
}

static const struct mt_named_case cases[] = {
    {"forms", forms},     {"large", large},   {"repeated", repeated}, {"burst", burst},
    {"waiting", waiting}, {"long", too_long}, {"started", started},   {"restarted", restarted},
    {"early", early},     {NULL, NULL}};

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv, true);
    if (mt_rank() == 0) {
        printf("done over here: %d types\n",
               differs(&types[0]) + differs(&types[1]) + differs(&types[2]) + differs(&types[3]));
    }
    return mt_run_to_end(cases, argc, argv);
}
