/* SPDX-License-Identifier: BSD-3-Clause */
/* The grammar of rows, its errors, and which row serves a call. */
#include <stdlib.h>

#include "base/log.h"
#include "check.h"
#include "decide/table.h"

enum { ALL_PATHS = (1 << XM_NUM_PATHS) - 1, NO_DIRECT = 3 };

static struct xm_table *parse(const char *text)
{
    struct xm_table *table = NULL;

    CHECK(xm_table_parse("TABLE", text, false, &table) == xcclSuccess, "%s: %s", text,
          xc_last_detail());
    return table;
}

/* The error names the source, the column and the offending part, and leaves the output alone. */
static void refuse(const char *text, int column, const char *part)
{
    struct xm_table *table = (struct xm_table *)&table; /* a value that must survive */
    struct xm_table *before = table;
    char             where[32], quoted[64];

    CHECK(xm_table_parse("TABLE", text, false, &table) == xcclInvalidArgument, "'%s' was accepted",
          text);
    snprintf(where, sizeof(where), "TABLE: column %d:", column);
    snprintf(quoted, sizeof(quoted), "'%s'", part);
    CHECK_HAS(xc_last_detail(), where);
    CHECK_HAS(xc_last_detail(), quoted);
    CHECK_HAS(xc_last_detail(), "allowed: ");
    CHECK(table == before, "'%s': the output was written", text);
}

/* By tables in this order, the second of which may be NULL. The rules end here, the texts do not.
 */
static struct xm_choice decide(const struct xm_table *first, const struct xm_table *second,
                               unsigned available, const struct xm_facts *facts)
{
    const struct xm_table *tables[] = {first, second};
    struct xm_rules       *rules = NULL;
    size_t                 count = (first != NULL) + (second != NULL);

    CHECK(xm_rules_make(tables, count, facts->nranks, &rules) == xcclSuccess, "rules");
    struct xm_choice choice = xm_decide(rules, available, facts);
    xm_rules_free(rules);
    return choice;
}

static enum xm_path_id path(const struct xm_table *table, enum xm_coll coll, enum xm_mem mem,
                            uint64_t bytes, int nranks)
{
    struct xm_facts facts = {coll, mem, bytes, nranks, NULL};

    return decide(table, NULL, ALL_PATHS, &facts).path;
}

static void test_errors(void)
{
    refuse("", 1, "");
    refuse("allreduce", 1, "allreduce");
    refuse("allreduce:0-64k:cuda:2-8", 1, "allreduce:0-64k:cuda:2-8");
    refuse("allreduce:0-64k:cuda:2-8:ccl:more", 1, "allreduce:0-64k:cuda:2-8:ccl:more");
    refuse("alreduce:0-64k:cuda:2-8:ccl", 1, "alreduce");
    CHECK_HAS(xc_last_detail(), "scan, exscan, *; did you mean allreduce?");
    CHECK(strstr(xc_last_detail(), "barrier") == NULL, "no row can decide on it");
    refuse("nonsense:*:*:*:mpi", 1, "nonsense");
    CHECK_HAS(xc_last_detail(), "scan, exscan, *");
    CHECK(strstr(xc_last_detail(), "did you mean") == NULL, "nothing is near");
    refuse("Allreduce:0-64k:cuda:2-8:ccl", 1, "Allreduce");
    refuse("allreduce:0-64q:cuda:2-8:ccl", 11, "0-64q");
    refuse("allreduce:64k-0:cuda:2-8:ccl", 11, "64k-0");
    refuse("allreduce:4-4:cuda:2-8:ccl", 11, "4-4");
    refuse("allreduce:-:cuda:2-8:ccl", 11, "-");
    refuse("allreduce:-1-4:cuda:2-8:ccl", 11, "-1-4");
    refuse("allreduce:inf-inf:cuda:2-8:ccl", 11, "inf-inf");
    refuse("allreduce:99999999999999999999:cuda:2-8:ccl", 11, "99999999999999999999");
    refuse("allreduce::cuda:2-8:ccl", 11, "");
    refuse("allreduce:0-inf:gpu:2-8:ccl", 17, "gpu");
    refuse("allreduce:0-inf:cuda:2k-8:ccl", 22, "2k-8");
    refuse("allreduce:0-inf:cuda:8-2:ccl", 22, "8-2");
    refuse("allreduce:0-inf:cuda:inf-inf:ccl", 22, "inf-inf");
    refuse("allreduce:0-inf:cuda:2-8:nccl", 26, "nccl");
    refuse("allreduce:0-inf:cuda:2-8:*", 26, "*");
    refuse("allreduce:0-inf:cuda:2-8: ccl", 26, " ccl");
    /* In the second token, and an empty one at the end. */
    refuse("bcast:*:*:*:mpi#reduce:*:*:*:mpl", 30, "mpl");
    refuse("bcast:*:*:*:mpi#", 17, "");
}

static void test_ranges(void)
{
    struct xm_table *t = parse("allreduce:0-64k:cuda:2-8:direct#allreduce:64k-inf:cuda:2-inf:ccl");

    CHECK(path(t, XM_ALLREDUCE, XM_MEM_CUDA, 0, 2) == XM_PATH_DIRECT, "0");
    CHECK(path(t, XM_ALLREDUCE, XM_MEM_CUDA, 65535, 8) == XM_PATH_DIRECT, "just below");
    CHECK(path(t, XM_ALLREDUCE, XM_MEM_CUDA, 65536, 8) == XM_PATH_CCL, "the end is excluded");
    CHECK(path(t, XM_ALLREDUCE, XM_MEM_CUDA, UINT64_MAX, 9999) == XM_PATH_CCL, "inf has no end");
    CHECK(path(t, XM_ALLREDUCE, XM_MEM_CUDA, 10, 9) == XM_PATH_MPI, "9 ranks match no row");
    CHECK(path(t, XM_ALLREDUCE, XM_MEM_CUDA, 1 << 20, 1) == XM_PATH_MPI, "1 rank matches none");
    CHECK(path(t, XM_ALLREDUCE, XM_MEM_ROCM, 10, 4) == XM_PATH_MPI, "other memory");
    CHECK(path(t, XM_BCAST, XM_MEM_CUDA, 10, 4) == XM_PATH_MPI, "other collective");
    xm_table_free(t);

    t = parse("bcast:4k:*:4:ccl#bcast:1m-2G:rocm_managed:*:ccl");
    CHECK(path(t, XM_BCAST, XM_MEM_ROCM, 4096, 4) == XM_PATH_CCL, "one size, one count");
    CHECK(path(t, XM_BCAST, XM_MEM_ROCM, 4097, 4) == XM_PATH_MPI, "one byte more");
    CHECK(path(t, XM_BCAST, XM_MEM_ROCM, 4096, 5) == XM_PATH_MPI, "one rank more");
    CHECK(path(t, XM_BCAST, XM_MEM_ROCM_MANAGED, (uint64_t)2 << 30, 1) == XM_PATH_MPI, "2g");
    CHECK(path(t, XM_BCAST, XM_MEM_ROCM_MANAGED, ((uint64_t)2 << 30) - 1, 1) == XM_PATH_CCL, "-1");
    xm_table_free(t);
}

static void test_precedence(void)
{
    struct xm_table *first = parse("*:*:*:*:mpi#allreduce:*:*:*:ccl");
    struct xm_table *tune = parse("alltoallv:*:cuda:*:mpi");
    struct xm_table *table = parse("*:*:*:*:ccl");
    struct xm_table *direct = parse("reduce:*:*:*:direct#reduce:*:*:*:ccl");

    CHECK(path(first, XM_ALLREDUCE, XM_MEM_CUDA, 8, 2) == XM_PATH_MPI, "the first match wins");
    struct xm_facts  facts = {XM_ALLTOALLV, XM_MEM_CUDA, 8, 2, NULL};
    struct xm_choice c = decide(tune, table, ALL_PATHS, &facts);
    CHECK((c.path == XM_PATH_MPI) && c.by_row, "the first table comes first");
    CHECK(strcmp(c.reason, "TABLE alltoallv:*:cuda:*:mpi") == 0, "reason: %s", c.reason);
    facts.coll = XM_ALLTOALL;
    c = decide(tune, table, ALL_PATHS, &facts);
    CHECK(c.path == XM_PATH_CCL, "the second where the first says nothing");
    facts.coll = XM_REDUCE;
    c = decide(direct, NULL, NO_DIRECT, &facts);
    CHECK(c.path == XM_PATH_CCL, "a path that is missing is passed over");
    c = decide(NULL, NULL, ALL_PATHS, &facts);
    CHECK((c.path == XM_PATH_MPI) && (c.reason != NULL) && !c.by_row, "no table at all");

    facts.obstacle = "because";
    c = decide(tune, table, ALL_PATHS, &facts);
    CHECK((c.path == XM_PATH_MPI) && (strcmp(c.reason, "because") == 0), "an obstacle decides");
    xm_table_free(first);
    xm_table_free(tune);
    xm_table_free(table);
    xm_table_free(direct);
}

/* Of a call whose bytes are not known. */
static void test_any_bytes(void)
{
    static const struct {
        const char     *text;
        enum xm_path_id always; /* XM_NUM_PATHS: it depends */
    } cases[] = {
        {"*:*:*:*:direct", XM_PATH_DIRECT},
        {"*:*:*:*:mpi", XM_PATH_MPI},
        {"*:0-64k:*:*:direct#*:*:*:*:mpi", XM_NUM_PATHS},
        {"*:0-64k:*:*:direct#*:64k-inf:*:*:direct", XM_PATH_DIRECT},
        {"*:0-64k:*:*:direct#*:65k-inf:*:*:direct", XM_NUM_PATHS},
        {"*:1m-2m:*:*:mpi#*:*:*:*:direct", XM_NUM_PATHS},
        {"*:*:*:*:ccl#*:*:*:*:direct", XM_PATH_DIRECT}, /* which is not there */
        {"allreduce:1m-2m:*:*:mpi#*:*:*:*:direct", XM_PATH_DIRECT},
    };
    const struct xm_facts facts = {XM_ALLTOALLV, XM_MEM_CUDA, 1, 4, NULL};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct xm_table             *table = parse(cases[i].text);
        const struct xm_table *const tables[] = {table};
        struct xm_rules             *rules;
        CHECK(xm_rules_make(tables, 1, 4, &rules) == xcclSuccess, "rules");
        for (int path = 0; path < XM_NUM_PATHS; path++) {
            bool always = xm_decides_always(rules, 1u << XM_PATH_MPI | 1u << XM_PATH_DIRECT, &facts,
                                            (enum xm_path_id)path);
            CHECK(always == ((enum xm_path_id)path == cases[i].always), "%s: %s", cases[i].text,
                  xm_path_name((enum xm_path_id)path));
        }
        xm_rules_free(rules);
        xm_table_free(table);
    }
}

static void test_names(void)
{
    char text[256];

    for (int coll = 0; coll < XM_NUM_COLLS; coll++) {
        for (int mem = 0; mem < XM_NUM_MEMS; mem++) {
            for (int p = 0; p < XM_NUM_PATHS; p++) {
                snprintf(text, sizeof(text), "%s:0-1:%s:2:%s", xm_coll_name(coll), xm_mem_name(mem),
                         xm_path_name(p));
                struct xm_table *t = parse(text);
                CHECK(path(t, coll, mem, 0, 2) == (enum xm_path_id)p, "%s", text);
                xm_table_free(t);
            }
        }
    }
}

static void test_builtin(void)
{
    struct xm_table *t = parse(xm_table_builtin());

    for (int coll = 0; coll < XM_NUM_COLLS; coll++) {
        CHECK(path(t, coll, XM_MEM_CUDA, 8, 2) == XM_PATH_DIRECT, "%s", xm_coll_name(coll));
        CHECK(path(t, coll, XM_MEM_ROCM, 1 << 30, 512) == XM_PATH_CCL, "%s", xm_coll_name(coll));
        CHECK(path(t, coll, XM_MEM_CUDA, 8, 1) == XM_PATH_MPI, "%s alone", xm_coll_name(coll));
    }
    xm_table_free(t);
}

int main(void)
{
    test_errors();
    test_ranges();
    test_precedence();
    test_any_bytes();
    test_names();
    test_builtin();
    CHECK((xm_size_class(0) == 0) && (xm_size_class(1) == 1) && (xm_size_class(1023) == 10) &&
              (xm_size_class(1024) == 11) && (xm_size_class(UINT64_MAX) == 64),
          "size classes");
    return xt_done("tuning tables");
}
