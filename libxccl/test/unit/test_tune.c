/* SPDX-License-Identifier: BSD-3-Clause */
/* What xccl-tune measures next and makes of it, on costs that are computed: no clock, no MPI. */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "check.h"
#include "tune/rows.h"
#include "tune/store.h"

static const struct tune_limits limits = {.least = 8,
                                          .most = 1 << 20,
                                          .factor = 4,
                                          .resolution = 1.1,
                                          .granularity = 4,
                                          .fewest_samples = 3,
                                          .most_samples = 9};
static const struct tune_shape  shape = {1, 4};

/* Microseconds of sample number i; negative: not carried. */
typedef double cost_fn(const struct tune_request *request, int i);

/* A number from -1 to 1 that looks like chance, the same for the same sample. */
static double jitter(const struct tune_request *r, int i)
{
    uint64_t x = (r->bytes * 31 + (uint64_t)r->path * 7 + (uint64_t)i + 1) * 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    return (double)((x >> 33) % 2001) / 1000 - 1;
}

/* Measure at most so many; how many there were. */
static int run(struct tune_store *store, cost_fn *cost, int most, FILE *state)
{
    struct tune_request r;
    int                 n = 0;

    for (; n < most; n++) {
        struct tune_series *s = tune_series_of(store, shape, XM_ALLREDUCE);
        if (!tune_next(&s->points, &limits, &r)) {
            s->whole = true;
            return n;
        }
        double us = cost(&r, tune_point_at(&s->points, r.bytes)->paths[r.path].count);
        CHECK(tune_sample_add(store, shape, XM_ALLREDUCE, &r, us), "out of memory");
        if (state != NULL) {
            CHECK(tune_state_write(state, shape, XM_ALLREDUCE, &r, us), "state");
        }
    }
    return n;
}

static struct xm_table *table_of(const struct tune_store *store)
{
    struct tune_origin origin = {.measured = "2026-11-22",
                                 .where = "here",
                                 .gpu = "Some Model",
                                 .driver = "1",
                                 .library = "nccl 2.28.3",
                                 .mpi_library = "some",
                                 .raw = "raw.json",
                                 .memory = "cuda"};
    struct xm_table   *table = NULL;
    char              *text = NULL;
    size_t             len;
    FILE              *f = open_memstream(&text, &len);

    CHECK(tune_table_write(f, store, 1, &origin), "nothing to write");
    fclose(f);
    CHECK(xm_table_parse("MADE", text, true, &table) == xcclSuccess, "%s:\n%s", xc_last_detail(),
          text);
    free(text);
    return table;
}

static const char *row_text(const struct xm_table *table, size_t i)
{
    return (i < table->count) ? strchr(table->rows[i].text, ' ') + 1 : "no such row";
}

/* Direct is best below 15000 bytes, the vendor's library from there on, MPI and copies never. */
static double crossing(const struct tune_request *r, int i)
{
    double base[] = {200 + (double)r->bytes / 500, 15 + (double)r->bytes / 3000,
                     5 + (double)r->bytes / 1000, 300 + (double)r->bytes / 500};

    return base[r->path] * (1 + 0.002 * jitter(r, i));
}

static void test_crossing(void)
{
    struct tune_store store = {0};
    int               n = run(&store, crossing, 10000, NULL);

    CHECK(n < 250, "%d measurements", n);
    struct xm_table *t = table_of(&store);
    CHECK(t->count == 2, "%zu rows", t->count);
    double border = (t->count == 2) ? (double)t->rows[1].bytes_low : 0;
    CHECK((border > 15000 / 1.12) && (border < 15000 * 1.12), "the border is at %g", border);
    CHECK((t->rows[0].path == XM_PATH_DIRECT) && (t->rows[0].bytes_low == 0), "%s", row_text(t, 0));
    CHECK((t->rows[1].path == XM_PATH_CCL) && (t->rows[1].bytes_high == XM_INF), "%s",
          row_text(t, 1));
    CHECK((t->rows[0].ranks_low == 4) && (t->rows[0].ranks_high == 4), "ranks");
    CHECK(strcmp(t->head.gpu, "Some Model") == 0, "gpu %s", t->head.gpu);
    CHECK((t->head.nodes.low == 1) && (t->head.nodes.high == 1), "nodes");
    /* The state it ended in asks for nothing. */
    CHECK(run(&store, crossing, 10, NULL) == 0, "it goes on");
    CHECK(tune_left(&store.series[0].points, &limits) == 0, "something is left");
    xm_table_free(t);
    tune_store_free(&store);
}

/* Two paths that differ by chance alone: no rows may come of it. */
static double level(const struct tune_request *r, int i)
{
    double base[] = {40, 10 + (double)r->bytes / 4000, 10 + (double)r->bytes / 4000, 80};

    return base[r->path] * (1 + 0.05 * jitter(r, i));
}

static void test_level(void)
{
    struct tune_store store = {0};

    run(&store, level, 10000, NULL);
    const struct tune_points *points = &store.series[0].points;
    for (size_t i = 0; i < points->count; i++) {
        const struct tune_point *p = &points->points[i];
        bool both = tune_is_level(p, XM_PATH_CCL) && tune_is_level(p, XM_PATH_DIRECT);
        CHECK(!both ||
                  ((p->paths[XM_PATH_CCL].count == 9) && (p->paths[XM_PATH_DIRECT].count == 9)),
              "level at %llu bytes after %d samples", (unsigned long long)p->bytes,
              p->paths[XM_PATH_CCL].count);
        CHECK((p->bytes > 65536) || (p->paths[XM_PATH_MPI].count == 3),
              "MPI is far off: %d samples", p->paths[XM_PATH_MPI].count);
    }
    struct xm_table *t = table_of(&store);
    int              between = 0;
    for (size_t i = 0; i < t->count; i++) {
        between += (t->rows[i].path != XM_PATH_MPI);
    }
    CHECK(between == 1, "%d rows of two paths that are level", between);
    xm_table_free(t);
    tune_store_free(&store);
}

/* The vendor's library is best in the middle alone, and the copies' path, best below, ends at 64
 * KiB. */
static double three(const struct tune_request *r, int i)
{
    double b = (double)r->bytes;

    if ((r->path == XM_PATH_DIRECT) || ((r->path == XM_PATH_STAGED) && (b > 65536))) {
        return -1;
    }
    double base[] = {30 + b / 10000, 20 + b / 2000, 0, 5 + b / 500};
    return base[r->path] * (1 + 0.001 * jitter(r, i));
}

static void test_three(void)
{
    struct tune_store store = {0};

    run(&store, three, 10000, NULL);
    struct xm_table *t = table_of(&store);
    CHECK(t->count == 3, "%zu rows", t->count);
    CHECK((t->count == 3) && (t->rows[0].path == XM_PATH_STAGED) &&
              (t->rows[1].path == XM_PATH_CCL) && (t->rows[2].path == XM_PATH_MPI),
          "%s %s %s", row_text(t, 0), row_text(t, 1), row_text(t, 2));
    for (size_t i = 1; i < t->count; i++) {
        double wanted = (i == 1) ? 10000 : 25000, border = (double)t->rows[i].bytes_low;
        CHECK((border > wanted / 1.12) && (border < wanted * 1.12), "border %zu at %g", i, border);
    }
    const struct tune_points *points = &store.series[0].points;
    for (size_t i = 0; i < points->count; i++) {
        const struct tune_samples *s = &points->points[i].paths[XM_PATH_STAGED];
        CHECK(s->missing == (points->points[i].bytes > 65536), "staged at %llu",
              (unsigned long long)points->points[i].bytes);
    }
    xm_table_free(t);
    tune_store_free(&store);
}

static double none(const struct tune_request *r, int i)
{
    (void)i;
    return (r->path == XM_PATH_MPI) ? 10 : -1;
}

static void test_one_path(void)
{
    struct tune_store store = {0};
    int               n = run(&store, none, 10000, NULL);
    struct xm_table  *t = table_of(&store);

    CHECK((t->count == 1) && (strcmp(row_text(t, 0), "allreduce:0-inf:cuda:4:mpi") == 0), "%s",
          row_text(t, 0));
    CHECK(n == (3 + XM_NUM_PATHS - 1) * (int)store.series[0].points.count, "%d measurements", n);
    xm_table_free(t);
    tune_store_free(&store);
}

static size_t samples_in(const struct tune_store *store)
{
    size_t n = 0;

    for (size_t i = 0; i < store->series[0].points.count; i++) {
        for (int p = 0; p < XM_NUM_PATHS; p++) {
            n += (size_t)store->series[0].points.points[i].paths[p].count;
        }
    }
    return n;
}

/* Stopped again and again, it measures what it measures in one go. */
static void test_resume(void)
{
    char              path[] = "/tmp/xccl-state-XXXXXX", text[600];
    struct tune_store whole = {0};
    int               total = run(&whole, crossing, 10000, NULL), steps = 0;

    close(mkstemp(path));
    for (int done = 1; (done > 0) && (steps < 100); steps++) {
        struct tune_store part = {0};
        FILE             *f = tune_state_open(path, "a key", &part, text, sizeof(text));
        CHECK(f != NULL, "%s", text);
        done = (f != NULL) ? run(&part, crossing, 10, f) : 0;
        if (done == 0) {
            CHECK(samples_in(&part) == (size_t)total, "%zu of %d", samples_in(&part), total);
            struct xm_table *a = table_of(&whole), *b = table_of(&part);
            CHECK(tune_compare(stderr, a, b) == 0, "another table");
            xm_table_free(a);
            xm_table_free(b);
        } else {
            fputs("1 4 allreduce 8 ccl 1", f); /* cut off in the middle of a line */
        }
        if (f != NULL) {
            fclose(f);
        }
        tune_store_free(&part);
    }
    CHECK(steps == (total + 9) / 10 + 1, "%d steps for %d", steps, total);
    unlink(path);
    tune_store_free(&whole);
}

/* Rows follow from what was measured to the end; a sample that follows takes the end back. */
static void test_whole(void)
{
    char                      path[] = "/tmp/xccl-state-XXXXXX", text[600];
    const struct tune_request request = {8, XM_PATH_CCL};

    close(mkstemp(path));
    for (int step = 0; step < 4; step++) {
        struct tune_store store = {0};
        FILE             *f = tune_state_open(path, "a key", &store, text, sizeof(text));
        CHECK(f != NULL, "%s", text);
        bool whole = (store.count == 1) && store.series[0].whole;
        CHECK(whole == (step == 2), "step %d: whole %d", step, whole);
        bool again = (store.count == 1) && store.series[0].again;
        CHECK(again == (step == 3), "step %d: again %d", step, again);
        if (f != NULL) {
            struct tune_series s = {.shape = shape, .coll = XM_ALLREDUCE};
            CHECK((step == 1) ? tune_state_write_whole(f, &s)
                              : tune_state_write(f, shape, XM_ALLREDUCE, &request, 1),
                  "step %d: not written", step);
            fclose(f);
        }
        tune_store_free(&store);
    }
    unlink(path);
}

/* Samples of a state, and one that a run adds to it. */
static void read_doubts(struct tune_store *store, const char *lines)
{
    char  path[] = "/tmp/xccl-state-XXXXXX", text[600];
    FILE *f = fdopen(mkstemp(path), "w");

    fprintf(f, "xccl-tune state 1\na key\n%s", lines);
    fclose(f);
    f = tune_state_open(path, "a key", store, text, sizeof(text));
    CHECK(f != NULL, "%s", text);
    if (f != NULL) {
        fclose(f);
    }
    unlink(path);
}

/* What a path did not carry in an earlier run is asked for once, and that goes for all sizes. */
static void test_doubts(void)
{
    for (int there = 0; there < 2; there++) {
        struct tune_store   store = {0};
        struct tune_request r = {0};
        read_doubts(&store, "1 4 allreduce 8 ccl -1.000\n1 4 allreduce 32 ccl -1.000\n"
                            "1 4 allreduce 8 direct -1.000\n1 4 allreduce 8 direct 5.000\n"
                            "1 4 allreduce whole\n");
        struct tune_points *p = &store.series[0].points;
        CHECK(tune_next(p, &limits, &r) && (r.bytes == 8) && (r.path == XM_PATH_CCL), "at %d: %d",
              (int)r.bytes, (int)r.path);
        CHECK(tune_sample_add(&store, shape, XM_ALLREDUCE, &r, there ? 3 : -1), "out of memory");
        CHECK(tune_next(p, &limits, &r) && (r.path != XM_PATH_CCL), "asked again");
        for (int i = 0; i < 2; i++) {
            const struct tune_samples *s = &p->points[i].paths[XM_PATH_CCL];
            CHECK(!s->doubted && (s->missing == !there), "point %d: missing %d", i, s->missing);
        }
        CHECK(!p->points[0].paths[XM_PATH_DIRECT].missing, "measured since");
        tune_store_free(&store);
    }
}

static void refuse_state(const char *content, const char *words)
{
    char              path[] = "/tmp/xccl-state-XXXXXX", text[600] = "", after[200] = "";
    struct tune_store store = {0};
    FILE             *f = fdopen(mkstemp(path), "w");

    fputs(content, f);
    fclose(f);
    CHECK(tune_state_open(path, "a key", &store, text, sizeof(text)) == NULL, "%s", content);
    CHECK_HAS(text, words);
    f = fopen(path, "r");
    size_t n = fread(after, 1, sizeof(after) - 1, f);
    CHECK((n == strlen(content)) && (strcmp(after, content) == 0), "the file was changed");
    fclose(f);
    unlink(path);
    tune_store_free(&store);
}

static void test_states(void)
{
    refuse_state("hello\n", "no state");
    refuse_state("xccl-tune state 1\nanother key\n", "(then: another key; now: a key)");
    refuse_state("xccl-tune state 1\na key; settings 12; A=b\n", "(then: A=b)");
    refuse_state("xccl-tune state 1\na key\n1 4 allreduce 8 ccl 1.0\n1 4 allreduse 8 ccl 1.0\n",
                 "line 4");
    refuse_state("xccl-tune state 1\na key\n1 4 allreduce 8 ccl 1.0 2\n", "line 3");
    refuse_state("xccl-tune state 1\na key\n0 4 allreduce 8 ccl 1.0\n", "line 3");
    refuse_state("xccl-tune state 1\na key\n1 4 allreduce wholesale\n", "line 3");
    refuse_state("xccl-tune state 1\na key\n1 0 allreduce whole\n", "line 3");
    char              text[600];
    struct tune_store store = {0};
    CHECK(tune_state_open("/no/such/folder/state", "k", &store, text, sizeof(text)) == NULL, "?");
    CHECK_HAS(text, "cannot be opened");
}

/* Two runs would mix their samples. */
static void test_two_at_once(void)
{
    char              path[] = "/tmp/xccl-tune-XXXXXX", text[600];
    struct tune_store store = {0};

    close(mkstemp(path));
    FILE *first = tune_state_open(path, "a key", &store, text, sizeof(text));
    CHECK(first != NULL, "%s", text);
    CHECK(tune_state_open(path, "a key", &store, text, sizeof(text)) == NULL, "both have it");
    CHECK_HAS(text, "another xccl-tune works in this folder");
    if (first != NULL) {
        fclose(first);
    }
    unlink(path);
    tune_store_free(&store);
}

static void compare_files(bool files, const char *a, const char *b, int wanted, const char *words)
{
    struct xm_table *ta = NULL, *tb = NULL;
    char            *text = NULL;
    size_t           len;
    FILE            *f = open_memstream(&text, &len);

    CHECK((xm_table_parse("A", a, files, &ta) == xcclSuccess) &&
              (xm_table_parse("B", b, files, &tb) == xcclSuccess),
          "%s", xc_last_detail());
    int found = tune_compare(f, ta, tb);
    fclose(f);
    CHECK(found == wanted, "%d instead of %d:\n%s", found, wanted, text);
    CHECK_HAS(text, words);
    free(text);
    xm_table_free(ta);
    xm_table_free(tb);
}

static void compare(const char *a, const char *b, int wanted, const char *words)
{
    compare_files(false, a, b, wanted, words);
}

static void test_compare(void)
{
    compare("bcast:0-64k:cuda:4:ccl#bcast:64k-inf:cuda:4:ccl", "bcast:*:cuda:4:ccl", 0, "");
    compare("bcast:0-64k:cuda:4:direct#bcast:64k-inf:cuda:4:ccl",
            "bcast:0-1m:cuda:4:direct#bcast:1m-inf:cuda:4:ccl", 1,
            "bcast, cuda, 4 ranks, 64k-1m: ccl -> direct\n");
    compare("bcast:*:cuda:4:ccl", "bcast:*:cuda:8:ccl", 2,
            "bcast, cuda, 8 ranks, 0-inf: no row -> ccl\n");
    compare("bcast:0-1000:cuda:4:ccl", "bcast:*:cuda:4:ccl", 1,
            "bcast, cuda, 4 ranks, 1000-inf: no row -> ccl\n");
    /* Behind a range that both have, and between two of them. */
    compare("bcast:*:cuda:2-8:ccl#bcast:*:cuda:*:mpi", "bcast:*:cuda:2-8:ccl#bcast:*:cuda:*:direct",
            1, "bcast, cuda, 9-inf ranks, 0-inf: mpi -> direct\n");
    compare("bcast:*:cuda:2:ccl#bcast:*:cuda:6:ccl#bcast:*:cuda:*:mpi",
            "bcast:*:cuda:2:ccl#bcast:*:cuda:3-5:direct#bcast:*:cuda:6:ccl#bcast:*:cuda:*:mpi", 1,
            "bcast, cuda, 3-5 ranks, 0-inf: mpi -> direct\n");
    compare("bcast:*:cuda:2-8:ccl", "bcast:*:cuda:*:ccl", 1,
            "bcast, cuda, 9-inf ranks, 0-inf: no row -> ccl\n");
    /* Other devices, and the same choices: the rows say which. */
    compare_files(true, "measured = nobody\ngpu = A\nbcast:*:cuda:4:ccl#*:*:*:*:direct\n",
                  "measured = nobody\ngpu = B\nbcast:*:cuda:4:ccl\n*:*:*:*:direct\n", 1,
                  "gpu: another setting: the tables are for different communicators\n"
                  "the same choices:\n  bcast:*:cuda:4:ccl\n  *:*:*:*:direct\n");
}

int main(void)
{
    struct tune_samples odd = {.count = 5, .us = {10, 11, 9, 500, 10}};

    test_crossing();
    test_level();
    test_three();
    test_one_path();
    test_resume();
    test_whole();
    test_doubts();
    test_states();
    test_two_at_once();
    test_compare();
    CHECK(tune_median(&odd) == 10, "median %g", tune_median(&odd));
    CHECK(tune_noise(&odd) == 0.5, "one odd sample is no noise: %g", tune_noise(&odd));
    return xt_done("tuning");
}
