/* SPDX-License-Identifier: BSD-3-Clause */
/* Table files: their head, which tables are asked where, what comes with xccl, and hostile text. */
#include <glob.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/libraries.h"
#include "base/log.h"
#include "check.h"
#include "tables/tables.h"
#include "vendor/vendor.h"

static const struct xm_setting four = {.nranks = 4,
                                       .nodes = 1,
                                       .per_node_least = 4,
                                       .per_node_most = 4,
                                       .gpu = "NVIDIA H200",
                                       .ccl = "nccl",
                                       .ccl_version = 22803,
                                       .fabric = false,
                                       .gpu_aware = false,
                                       .one_tables = true};

static struct xm_table *parse(const char *text)
{
    struct xm_table *table = NULL;

    CHECK(xm_table_parse("x/FILE", text, true, &table) == xcclSuccess, "%s: %s", text,
          xc_last_detail());
    return table;
}

static void refuse(const char *text, const char *where, const char *what)
{
    struct xm_table *table = NULL;

    CHECK(xm_table_parse("x/FILE", text, true, &table) == xcclInvalidArgument, "accepted:\n%s",
          text);
    CHECK_HAS(xc_last_detail(), "x/FILE: ");
    CHECK_HAS(xc_last_detail(), where);
    CHECK_HAS(xc_last_detail(), what);
    CHECK_HAS(xc_last_detail(), "allowed: ");
    CHECK(table == NULL, "the output was written");
}

static void test_files(void)
{
    struct xm_table *t = parse("# a comment\n"
                               "#\n"
                               "## and another\n"
                               "\n"
                               "  title =  a = b \r\n"
                               "measured = 2026-11-22\n"
                               "where=here\n"
                               "library = nccl 2.28.3\n"
                               "ranks = 2-4\n"
                               "\tallreduce:0-1k:*:2:direct#bcast:*:*:*:ccl\t\r\n"
                               "# between\n"
                               "*:*:*:*:mpi");

    CHECK(strcmp(t->head.title, "a = b") == 0, "title '%s'", t->head.title);
    CHECK(t->count == 3, "%zu rows", t->count);
    CHECK(strcmp(t->rows[1].text, "FILE:10 bcast:*:*:*:ccl") == 0, "%s", t->rows[1].text);
    CHECK((t->rows[0].line == 10) && (t->rows[2].line == 12), "lines");
    CHECK((t->head.ranks.low == 2) && (t->head.ranks.high == 4), "ranks");
    xm_table_free(t);
}

static void test_errors(void)
{
#define HEAD "measured = nobody\n"
    refuse("", "line 1, column 1", "measured");
    refuse("*:*:*:*:mpi", "line 1, column 1", "measured");
    refuse(HEAD, "line 2, column 1", "one row or more");
    refuse("measured = yesterday\n*:*:*:*:mpi", "line 1, column 12", "2026-11-22");
    refuse("measured = 2026-1-22\n*:*:*:*:mpi", "line 1, column 12", "2026-1-22");
    refuse("measured = 2026-13-01\n*:*:*:*:mpi", "line 1, column 12", "2026-13-01");
    refuse("measured = 2026-11-00\n*:*:*:*:mpi", "line 1, column 12", "2026-11-00");
    refuse("measured =\n*:*:*:*:mpi", "line 1, column 11", "nobody");
    refuse("measured = 2026-11-22\n*:*:*:*:mpi", "line 1", "'where' and 'library'");
    refuse(HEAD "speed = high\n*:*:*:*:mpi", "line 2, column 1", "gpu_model, driver");
    refuse(HEAD HEAD "*:*:*:*:mpi", "line 2, column 1", "each key once");
    refuse(HEAD "*:*:*:*:mpi\nranks = 2", "line 3, column 1", "before the first row");
    refuse(HEAD "ranks = 4-2\n*:*:*:*:mpi", "line 2, column 9", "lo-hi");
    refuse(HEAD "nodes = 0\n*:*:*:*:mpi", "line 2, column 9", "lo-hi");
    refuse(HEAD "*:*:*:0:mpi", "line 2", "lo-hi");
    refuse(HEAD "*:*:*:inf:mpi", "line 2", "lo-hi");
    refuse(HEAD "*:inf:*:*:mpi", "line 2", "lo-hi");
    refuse(HEAD "nodes = few\n*:*:*:*:mpi", "line 2, column 9", "'few'");
    refuse(HEAD "ccl = ncll\n*:*:*:*:mpi", "line 2, column 7",
           "allowed: nccl, rccl, msccl, mscclpp, oneccl, hccl, and versions if not all, as nccl 2");
    refuse(HEAD "ccl = msccl+\n*:*:*:*:mpi", "line 2, column 7", "'msccl+'");
    refuse(HEAD "ccl = nccl 2.x\n*:*:*:*:mpi", "line 2, column 7", "'nccl 2.x'");
    refuse(HEAD "ccl = nccl 2.28-2.27\n*:*:*:*:mpi", "line 2, column 7", "versions");
    refuse(HEAD "ccl = nccl 2.28.3.1\n*:*:*:*:mpi", "line 2, column 7", "versions");
    refuse(HEAD "ccl = nccl inf\n*:*:*:*:mpi", "line 2, column 7", "versions");
    refuse(HEAD "network = ib\n*:*:*:*:mpi", "line 2, column 11", "fabric, tcp, *");
    refuse(HEAD "mpi = yes\n*:*:*:*:mpi", "line 2, column 7", "gpu-aware, staged, *");
    refuse(HEAD "*:*:*:*:mpi\n  *:*:*:*:ccx", "line 3, column 11", "'ccx'");
    refuse(HEAD "*:*:*:*:mpi\n#*:*:*:*:ccl", "line 3, column 1", "begins with '# '");
    refuse(HEAD "*:*:*:*:mpi##*:*:*:*:ccl", "line 2, column 13", "not five fields");
    /* In a variable there is no head. */
    struct xm_table *table = NULL;
    CHECK(xm_table_parse("XCCL_TUNE", "measured = nobody\n*:*:*:*:mpi", false, &table) ==
              xcclInvalidArgument,
          "a head in XCCL_TUNE");
    CHECK_HAS(xc_last_detail(), "XCCL_TUNE: line 1, column 1: setting");
    CHECK((xm_table_parse("XCCL_TUNE", "# why\n*:*:*:*:mpi\n", false, &table) == xcclSuccess) &&
              (table->count == 1),
          "lines in XCCL_TUNE");
    xm_table_free(table);
}

static bool applies(const char *head, const struct xm_setting *setting)
{
    char             text[512], why[128];
    struct xm_table *t;

    snprintf(text, sizeof(text), HEAD "%s\n*:*:*:*:mpi", head);
    t = parse(text);
    bool yes = xm_table_applies(t, setting, why, sizeof(why));
    CHECK(yes == (why[0] == '\0'), "%s: a reason without need, or none: '%s'", head, why);
    xm_table_free(t);
    return yes;
}

static void test_conditions(void)
{
    struct xm_setting s = four;

    CHECK(applies("gpu = NVIDIA H200", &s), "the model");
    CHECK(applies("gpu = AMD*, *H2*0", &s), "a pattern of several");
    CHECK(!applies("gpu = NVIDIA H20", &s) && !applies("gpu = H200", &s), "not a part of it");
    CHECK(applies("ranks = 2-4", &s) && !applies("ranks = 5-inf", &s), "ranks");
    CHECK(applies("nodes = 1", &s) && !applies("nodes = 2-inf", &s), "nodes");
    CHECK(applies("ranks_per_node = 4", &s) && !applies("ranks_per_node = 1-3", &s), "per node");
    s.per_node_least = 3;
    CHECK(!applies("ranks_per_node = 4", &s) && applies("ranks_per_node = 3-4", &s), "all nodes");
    CHECK(applies("ccl = nccl", &s) && !applies("ccl = rccl", &s), "library");
    CHECK(applies("ccl = nccl 2.28", &s) && applies("ccl = nccl 2.27-2.28.3", &s), "version");
    CHECK(!applies("ccl = nccl 2.28.4-inf", &s) && !applies("ccl = nccl 2.27", &s), "version");
    CHECK(applies("ccl = nccl 2", &s) && applies("ccl = nccl *", &s), "version");
    s.ccl_version = 900; /* as MSCCL++ 0.9 says */
    snprintf(s.ccl, sizeof(s.ccl), "mscclpp");
    CHECK(applies("ccl = mscclpp", &s) && !applies("ccl = msccl", &s), "a name in another");
    CHECK(applies("ccl = mscclpp 0.9", &s) && !applies("ccl = mscclpp 0.10-inf", &s), "version");
    s.ccl_version = 1000;
    CHECK(applies("ccl = mscclpp 0.10", &s) && !applies("ccl = mscclpp 0.9", &s), "version");
    CHECK(xc_library_name(XC_NUM_ROWS) == NULL, "more names than libraries");
    for (size_t i = 0; i < XC_NUM_ROWS; i++) {
        char head[32];
        CHECK(strcmp(xc_library_name(i), xc_vendor_rows()[i].name) == 0, "%s", xc_library_name(i));
        snprintf(head, sizeof(head), "ccl = %s", xc_library_name(i));
        CHECK(applies(head, &s) == (strcmp(xc_library_name(i), "mscclpp") == 0), "%s", head);
    }
    s = four;
    CHECK(applies("network = tcp", &s) && !applies("network = fabric", &s), "network");
    CHECK(applies("mpi = staged", &s) && !applies("mpi = gpu-aware", &s), "mpi");
    s.gpu[0] = '\0';
    CHECK(!applies("gpu = *", &s) && applies("ranks = 4", &s), "ranks of several models");
    s.nodes = 0;
    CHECK(!applies("nodes = 0-9", &s), "before the ranks have agreed");
    CHECK(xm_version_number(2708) < xm_version_number(20904), "old versions come before");
    CHECK(xm_version_number(22803) < xm_version_number(22901), "and newer ones behind");
}

static void test_nodes(void)
{
    struct xm_setting one = {.nranks = 3}, uneven = {.nranks = 6}, apart = {.nranks = 2};
    uint64_t          same[] = {7, 7, 7}, mixed[] = {9, 1, 9, UINT64_MAX, 1, 9}, two[] = {2, 1};

    xc_setting_count_nodes(&one, same);
    CHECK((one.nodes == 1) && (one.per_node_least == 3) && (one.per_node_most == 3), "one node");
    xc_setting_count_nodes(&uneven, mixed);
    CHECK((uneven.nodes == 3) && (uneven.per_node_least == 1) && (uneven.per_node_most == 3),
          "%d nodes, %d to %d ranks", uneven.nodes, uneven.per_node_least, uneven.per_node_most);
    xc_setting_count_nodes(&apart, two);
    CHECK((apart.nodes == 2) && (apart.per_node_least == 1) && (apart.per_node_most == 1), "apart");
}

static uint32_t random_state = 12345;

static uint32_t random_number(uint32_t below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % below;
}

/* Whatever comes in, the answer is a table or an error that says where; the sanitizers look on. */
static void test_hostile(void)
{
    static const char *const pieces[] = {
        "measured", " = ",       "=",         "nobody", "\n",          "#",  "# ",
        ":",        "*",         "allreduce", "0-64k",  "inf",         "-",  "99999999999999999999",
        "ccl",      "nccl 2.28", "gpu",       ",",      "*:*:*:*:mpi", "\t", "\r",
        "\xff",     "2-8",       "cuda",      "direct", "nodes"};
    int accepted = 0;

    for (int round = 0; round < 20000; round++) {
        char text[512] = "";
        if (random_number(2) == 0) {
            strcat(text, HEAD);
        }
        for (uint32_t i = random_number(16); i > 0; i--) {
            strcat(text, pieces[random_number(sizeof(pieces) / sizeof(pieces[0]))]);
        }
        struct xm_table *table = NULL;
        if (xm_table_parse("FUZZ", text, true, &table) == xcclSuccess) {
            accepted++;
            xm_table_free(table);
        } else if ((strstr(xc_last_detail(), "FUZZ: line ") == NULL) ||
                   (strstr(xc_last_detail(), "allowed: ") == NULL)) {
            CHECK(false, "'%s': %s", text, xc_last_detail());
        }
    }
    CHECK(accepted > 20, "%d texts were tables", accepted);
}

static enum xm_path_id choose(const struct xm_table *const *tables, size_t count, enum xm_coll coll,
                              enum xm_mem mem, uint64_t bytes, int nranks, unsigned available)
{
    struct xm_facts  facts = {coll, mem, bytes, nranks, NULL};
    struct xm_rules *rules = NULL;

    CHECK(xm_rules_make(tables, count, nranks, &rules) == xcclSuccess, "rules");
    enum xm_path_id path = xm_decide(rules, available, &facts).path;
    xm_rules_free(rules);
    return path;
}

/* On the machines that were measured, the files say what the built-in rows say. */
static void compare_with_builtin(const struct xm_table *table, const struct xm_table *builtin,
                                 int nranks)
{
    const struct xm_table *both[] = {table, builtin};

    for (int coll = 0; coll < XM_NUM_COLLS; coll++) {
        for (int mem = 0; mem < XM_NUM_MEMS; mem++) {
            for (unsigned available = 1; available < 8; available += 2) {
                for (uint64_t bytes = 1; bytes < (uint64_t)1 << 34; bytes += bytes / 2 + 1) {
                    enum xm_path_id with = choose(both, 2, coll, mem, bytes, nranks, available);
                    enum xm_path_id without =
                        choose(&builtin, 1, coll, mem, bytes, nranks, available);
                    if (with != without) {
                        CHECK(false, "%s of %llu bytes on %d ranks", xm_coll_name(coll),
                              (unsigned long long)bytes, nranks);
                    }
                }
            }
        }
    }
}

static void check_shipped(const char *path, const struct xm_table *builtin, int *measured)
{
    struct xm_table *t = NULL;
    char             why[256];

    CHECK(xm_table_file_parse(path, &t) == xcclSuccess, "%s", xc_last_detail());
    if (t == NULL) {
        return;
    }
    CHECK(t->head.title[0] != '\0', "%s: no title", path);
    if (strcmp(t->head.measured, "nobody") != 0) {
        struct xm_setting s = four;
        (*measured)++;
        CHECK(t->head.raw[0] != '\0', "%s: no raw files are named", path);
        s.nranks = s.per_node_least = s.per_node_most = (int)t->head.ranks.low;
        snprintf(s.gpu, sizeof(s.gpu), "%s", t->head.gpu_model);
        CHECK(xm_table_applies(t, &s, why, sizeof(why)), "%s: %s", path, why);
        compare_with_builtin(t, builtin, s.nranks);
    }
    xm_table_free(t);
}

static void test_shipped(const char *folder)
{
    struct xm_table *builtin = NULL;
    char           **paths = NULL;
    size_t           count = 0;
    int              measured = 0;

    CHECK(xm_table_parse("built-in", xm_table_builtin(), false, &builtin) == xcclSuccess, "%s",
          xc_last_detail());
    CHECK(xm_table_files_in(folder, &paths, &count) == xcclSuccess, "%s", folder);
    CHECK(count >= 6, "%zu tables in %s", count, folder);
    for (size_t i = 0; i < count; i++) {
        CHECK((i == 0) || (strcmp(paths[i - 1], paths[i]) < 0), "in the order of their names");
        check_shipped(paths[i], builtin, &measured);
    }
    CHECK(measured == 4, "%d tables were measured", measured);
    xm_table_files_free(paths, count);
    xm_table_free(builtin);
}

static const struct {
    const char *model, *table;
} models[] = {
    {"NVIDIA H200", "nvlink"},
    {"NVIDIA H200 MIG 1g.18gb", "nvlink"},
    {"NVIDIA H200 NVL", "pcie"},
    {"NVIDIA H20", "nvlink"},
    {"NVIDIA H20-3e", "nvlink"},
    {"NVIDIA H100 80GB HBM3", "nvlink"},
    {"NVIDIA H100 64GB HBM2", "nvlink"},
    {"NVIDIA H100 PCIe", "pcie"},
    {"NVIDIA H100 NVL", "pcie"},
    {"NVIDIA H800", "nvlink"},
    {"NVIDIA H800 PCIe", "pcie"},
    {"NVIDIA GH200 120GB", "nvlink"},
    {"NVIDIA GH200 480GB", "nvlink"},
    {"NVIDIA GH200 144G HBM3e", "nvlink"},
    {"NVIDIA GB200", "nvlink"},
    {"NVIDIA GB300", "nvlink"},
    {"NVIDIA B200", "nvlink"},
    {"NVIDIA B300 SXM6 AC", "nvlink"},
    {"NVIDIA A100-SXM4-40GB", "nvlink"},
    {"NVIDIA A100-SXM4-80GB", "nvlink"},
    {"NVIDIA A100-SXM-64GB", "nvlink"},
    {"A100-SXM4-40GB", "nvlink"}, /* as drivers before 470 say */
    {"NVIDIA A100-PCIE-40GB", "pcie"},
    {"NVIDIA A100 80GB PCIe", "pcie"},
    {"NVIDIA A800-SXM4-80GB", "nvlink"},
    {"NVIDIA A800 80GB PCIe", "pcie"},
    {"NVIDIA A800 40GB Active", "pcie"},
    {"NVIDIA A30", "pcie"},
    {"NVIDIA A40", "pcie"},
    {"NVIDIA A10", "pcie"},
    {"NVIDIA A10G", "pcie"},
    {"NVIDIA A16", "pcie"},
    {"NVIDIA A2", "pcie"},
    {"NVIDIA L4", "pcie"},
    {"NVIDIA L40", "pcie"},
    {"NVIDIA L40S", "pcie"},
    {"NVIDIA L20", "pcie"},
    {"NVIDIA T4", "pcie"},
    {"Tesla T4", "pcie"},
    {"Tesla V100-SXM2-32GB", "nvlink"},
    {"Tesla V100-PCIE-16GB", "pcie"},
    {"Tesla V100S-PCIE-32GB", "pcie"},
    {"Tesla V100-FHHL-16GB", "pcie"},
    {"Tesla P100-PCIE-16GB", "pcie"},
    {"NVIDIA RTX A6000", "pcie"},
    {"NVIDIA RTX 6000 Ada Generation", "pcie"},
    {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "pcie"},
    {"Quadro RTX 8000", "pcie"},
    {"NVIDIA GeForce RTX 4090", "pcie"},
    {"GeForce RTX 2080 Ti", "pcie"},
    {"NVIDIA TITAN RTX", "pcie"},
    {"AMD Instinct MI100", "xgmi"},
    {"AMD Instinct MI210", "xgmi"},
    {"AMD Instinct MI250X", "xgmi"},
    {"AMD Instinct MI250X / MI250", "xgmi"},
    {"AMD Instinct MI300A", "xgmi"},
    {"AMD Instinct MI300X", "xgmi"},
    {"AMD Instinct MI325X", "xgmi"},
};

/* Each model is in the generic table of its bus, and in no other. */
static void test_models(const char *folder)
{
    static const char *const names[] = {"nvlink", "pcie", "xgmi"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct xm_table *t = NULL;
        char             path[512], why[768];
        snprintf(path, sizeof(path), "%s/80-generic-%s.table", folder, names[i]);
        CHECK(xm_table_file_parse(path, &t) == xcclSuccess, "%s", xc_last_detail());
        for (size_t m = 0; (t != NULL) && (m < sizeof(models) / sizeof(models[0])); m++) {
            struct xm_setting s = four;
            snprintf(s.gpu, sizeof(s.gpu), "%s", models[m].model);
            bool its = strcmp(models[m].table, names[i]) == 0;
            CHECK(xm_table_applies(t, &s, why, sizeof(why)) == its, "%s, which is of %s: %s",
                  models[m].model, models[m].table, its ? why : path);
        }
        xm_table_free(t);
    }
}

/* Tables of sites, where this is built inside the whole repository. */
static void test_sites(const char *sites)
{
    char   pattern[512];
    glob_t found;

    snprintf(pattern, sizeof(pattern), "%s/*/tables/*.table", sites);
    if (glob(pattern, 0, NULL, &found) != 0) {
        return;
    }
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct xm_table *t = NULL;
        CHECK(xm_table_file_parse(found.gl_pathv[i], &t) == xcclSuccess, "%s", xc_last_detail());
        xm_table_free(t);
    }
    globfree(&found);
}

static void make_file(const char *folder, const char *name, const char *text);

/* Below a prefix: the site's before what comes with xccl, by their names; one with a mistake is
 * left out. */
static void test_installed(void)
{
    static const enum xm_origin origins[] = {XM_FROM_SITE, XM_FROM_SITE, XM_FROM_SHARE,
                                             XM_FROM_BUILTIN};
    static const char *const    names[] = {"1.table", "2.table", "0.table", "built-in table"};
    char                        prefix[] = "/tmp/xccl-prefix-XXXXXX", command[128], lib[64];

    CHECK(mkdtemp(prefix) != NULL, "%s", prefix);
    snprintf(command, sizeof(command), "mkdir -p %s/lib/xccl %s/share/xccl/tables", prefix, prefix);
    CHECK(system(command) == 0, "%s", command);
    snprintf(command, sizeof(command), "mkdir -p %s/share/xccl/sites/here/tables", prefix);
    CHECK(system(command) == 0, "%s", command);
    make_file(prefix, "lib/xccl/some.so", "");
    make_file(prefix, "share/xccl/tables/0.table", HEAD "*:*:*:*:mpi");
    make_file(prefix, "share/xccl/tables/9.table", HEAD "*:*:*:*:mpx");
    make_file(prefix, "share/xccl/tables/read.me", "not a table");
    make_file(prefix, "share/xccl/sites/here/tables/2.table", HEAD "*:*:*:*:mpi");
    make_file(prefix, "share/xccl/sites/here/tables/1.table", HEAD "ranks = 4\nbcast:*:*:*:mpi");
    snprintf(lib, sizeof(lib), "%s/lib/xccl/some.so", prefix);
    CHECK(xm_tables_begin(lib) == xcclSuccess, "%s", xc_last_detail());
    const struct xm_tables *all = xm_tables_all();
    CHECK(all->count == 4, "%zu tables", all->count);
    for (size_t i = 0; (i < 4) && (all->count == 4); i++) {
        CHECK_HAS(all->sources[i].table->source, names[i]);
        CHECK(all->sources[i].origin == origins[i], "%s", names[i]);
    }
    CHECK_HAS(xm_tables_fault(), "9.table: line 2, column 9");
    CHECK(xm_tables_for_one_rank(), "0.table is for any");
    const struct xm_rules *rules = NULL;
    const struct xm_facts  facts = {XM_BCAST, XM_MEM_CUDA, 8, 4, NULL};
    CHECK(xm_tables_rules(&four, &rules) == xcclSuccess, "%s", xc_last_detail());
    CHECK(strcmp(xm_decide(rules, 7, &facts).reason, "1.table:3 bcast:*:*:*:mpi") == 0, "%s",
          xm_decide(rules, 7, &facts).reason);
    uint64_t digest = all->digest;
    xm_tables_end();
    make_file(prefix, "share/xccl/tables/0.table", HEAD "*:*:*:2:ccl");
    make_file(prefix, "share/xccl/sites/here/tables/2.table", HEAD "ranks = 2-8\n*:*:*:*:mpi");
    CHECK((xm_tables_begin(lib) == xcclSuccess) && (xm_tables_digest() != digest), "another text");
    CHECK(!xm_tables_for_one_rank(), "none for one rank is left");
    xm_tables_end();
    snprintf(command, sizeof(command), "rm -r %s", prefix);
    CHECK(system(command) == 0, "%s", command);
}

static void write_file(const char *path, const char *text, size_t len)
{
    FILE *f = fopen(path, "w");

    CHECK((f != NULL) && (fwrite(text, 1, len, f) == len) && (fclose(f) == 0), "%s", path);
}

static void make_file(const char *folder, const char *name, const char *text)
{
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    write_file(path, text, strlen(text));
}

static void test_bad_files(void)
{
    char             path[] = "/tmp/xccl-table-XXXXXX";
    struct xm_table *t = NULL;
    int              fd = mkstemp(path);

    CHECK(fd >= 0, "%s", path);
    close(fd);
    write_file(path, HEAD "*:*\0:*:*:mpi", sizeof(HEAD "*:*\0:*:*:mpi") - 1);
    CHECK(xm_table_file_parse(path, &t) == xcclInvalidArgument, "a byte 0");
    CHECK_HAS(xc_last_detail(), "byte 0");
    char *much = calloc(1, (2 << 20) + 1);
    memset(much, 'x', 2 << 20);
    write_file(path, much, 2 << 20);
    free(much);
    CHECK(xm_table_file_parse(path, &t) == xcclInvalidArgument, "too much");
    CHECK_HAS(xc_last_detail(), "longer than");
    char *line = calloc(1, 5001);
    memset(line, 'x', 5000);
    make_file("/tmp", path + strlen("/tmp/"), line); /* what is allowed is said all the same */
    CHECK(xm_table_file_parse(path, &t) == xcclInvalidArgument, "a long line");
    CHECK_HAS(xc_last_detail(), "xxx...'; allowed: coll:bytes:mem:ranks:path, as allreduce");
    memcpy(line, "where=", 6);
    make_file("/tmp", path + strlen("/tmp/"), line);
    CHECK(xm_table_file_parse(path, &t) == xcclInvalidArgument, "a long value");
    CHECK_HAS(xc_last_detail(), "xxx...'; allowed: a text of at most 255 bytes");
    free(line);
    make_file("/tmp", path + strlen("/tmp/"), "\xef\xbb\xbf" HEAD "*:*:*:*:ccl\n");
    CHECK(xm_table_file_parse(path, &t) == xcclSuccess, "%s", xc_last_detail());
    xm_table_free(t);
    unlink(path);
    CHECK(xm_table_file_parse(path, &t) == xcclInvalidArgument, "none");
    CHECK_HAS(xc_last_detail(), "cannot be opened");
    CHECK(mkfifo(path, 0600) == 0, "%s", path);
    alarm(10); /* nobody writes into it */
    CHECK(xm_table_file_parse(path, &t) == xcclInvalidArgument, "a pipe");
    alarm(0);
    CHECK_HAS(xc_last_detail(), "is a pipe or a device; a tuning table is a regular file");
    unlink(path);
    CHECK(xm_table_file_parse("/dev/zero", &t) == xcclInvalidArgument, "a device");
    CHECK_HAS(xc_last_detail(), "is a pipe or a device");
    CHECK(xm_table_file_parse("/tmp", &t) == xcclInvalidArgument, "a folder");
    CHECK_HAS(xc_last_detail(), "/tmp: is a folder; name a table in it");
}

/* A folder that is not there holds nothing; one that cannot be read may hold something. */
static void test_folders(void)
{
    char   name[400];
    char **paths = NULL;
    size_t count = 1;

    CHECK(xm_table_files_in("/no/such/folder", &paths, &count) == xcclSuccess, "none");
    CHECK(count == 0, "%zu files", count);
    xm_table_files_free(paths, count);
    memset(name, 'x', sizeof(name) - 1);
    name[0] = '/';
    name[sizeof(name) - 1] = '\0';
    CHECK(xm_table_files_in(name, &paths, &count) == xcclSystemError, "a name that is too long");
    CHECK_HAS(xc_last_detail(), "the folder cannot be read: ");
}

/* Which tables a process asks: of XCCL_TUNE and the built-in rows, and after a change of them. */
static void test_in_force(void)
{
    const struct xm_rules *first = NULL, *again = NULL, *tuned = NULL;
    const struct xm_facts  facts = {XM_BCAST, XM_MEM_CUDA, 8, 4, NULL};

    CHECK(xm_tables_begin(NULL) == xcclSuccess, "%s", xc_last_detail());
    CHECK(xm_tables_rules(&four, &first) == xcclSuccess, "%s", xc_last_detail());
    CHECK(xm_decide(first, 7, &facts).path == XM_PATH_DIRECT, "built in");
    CHECK((xm_tables_rules(&four, &again) == xcclSuccess) && (again == first), "made once");
    CHECK(xm_tables_tune("*:*:*:*:cc") == xcclInvalidArgument, "a mistake");
    CHECK((xm_tables_rules(&four, &again) == xcclSuccess) && (again == first), "changes nothing");
    CHECK(xm_tables_tune("bcast:*:*:*:ccl") == xcclSuccess, "%s", xc_last_detail());
    CHECK(xm_tables_rules(&four, &tuned) == xcclSuccess, "%s", xc_last_detail());
    CHECK(xm_decide(tuned, 7, &facts).path == XM_PATH_CCL, "other rows");
    CHECK(xm_decide(first, 7, &facts).path == XM_PATH_DIRECT, "what was handed out stays");
    CHECK(xm_tables_tune("bcast:*:*:*:mpi") == xcclSuccess, "%s", xc_last_detail());
    CHECK(xm_tables_rules(&four, &again) == xcclSuccess, "%s", xc_last_detail());
    CHECK(xm_decide(again, 7, &facts).path == XM_PATH_MPI, "others again");
    CHECK(xm_decide(tuned, 7, &facts).path == XM_PATH_CCL, "and those before stay");
    CHECK(xm_tables_tune(NULL) == xcclSuccess, "%s", xc_last_detail());
    CHECK((xm_tables_rules(&four, &again) == xcclSuccess) && (again == first), "as at first");
    xm_tables_end();
}

int main(int argc, char **argv)
{
    setenv("XCCL_SITE", "here", 1);
    setenv("XCCL_LOG", "none", 1);
    test_files();
    test_errors();
    test_conditions();
    test_nodes();
    test_hostile();
    CHECK(argc == 4, "usage: test_tables FAKES TABLES SITES");
    test_shipped(argv[2]);
    test_models(argv[2]);
    test_sites(argv[3]);
    test_bad_files();
    test_folders();
    test_installed();
    test_in_force();
    return xt_done("table files");
}
