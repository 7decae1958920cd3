/* SPDX-License-Identifier: BSD-3-Clause */
#include "why.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/log.h"
#include "kernels/kernels.h"

static bool refuse(const char *spec, const char *why)
{
    xc_fail(xcclInvalidArgument,
            "--why %s: %s; it takes coll:bytes:mem:ranks or coll:bytes:mem:ranks:nodes, each one "
            "value, as allreduce:64k:cuda:8 or allreduce:64k:cuda:8:2",
            spec, why);
    return false;
}

static int only_bit(uint32_t bits)
{
    return ((bits != 0) && ((bits & (bits - 1)) == 0)) ? __builtin_ctz(bits) : -1;
}

/* The parser of rows names a path that nobody wrote, and allows ranges and *, refused here. */
static void shorten(char *detail)
{
    char       *row = strstr(detail, " in '");
    const char *allowed = (row != NULL) ? strstr(row, "; allowed: ") : NULL;

    if (allowed == NULL) {
        return;
    }
    if (strstr(detail, ": bytes ") != NULL) {
        allowed = "; allowed: one size, a number that may end in k, m or g";
    } else if (strstr(detail, ": ranks ") != NULL) {
        allowed = "; allowed: an integer >= 1";
    }
    memmove(row, allowed, strlen(allowed) + 1); /* shorter than the row's, which stood there */
    char *any = strstr(detail, ", *");
    if ((any != NULL) && (any[3] == '\0')) {
        *any = '\0';
    }
    char *what = strchr(detail, ' '); /* behind "--why:" stands the column */
    what = (what != NULL) ? strstr(what, ": ") : NULL;
    if (what != NULL) {
        memmove(detail, what + 2, strlen(what + 2) + 1);
    }
}

/* By the parser of rows: a call is a row that fits it alone. */
static bool read_call(struct why *why, const char *spec, const char *row_text)
{
    struct xm_table *table = NULL;

    if (xm_table_parse("--why", row_text, false, &table) != xcclSuccess) {
        char detail[512];
        snprintf(detail, sizeof(detail), "%s", xc_last_detail());
        shorten(detail);
        return refuse(spec, detail);
    }
    const struct xm_row *row = &table->rows[0];
    int                  coll = only_bit(row->colls), mem = only_bit(row->mems);
    bool                 one = (table->count == 1) && (coll >= 0) && (mem >= 0) &&
               (row->bytes_low + 1 == row->bytes_high) && (row->ranks_low == row->ranks_high) &&
               (row->ranks_low > 0) && (row->ranks_low < 10000000);
    if (one) {
        why->facts = (struct xm_facts){(enum xm_coll)coll, (enum xm_mem)mem, row->bytes_low,
                                       (int)row->ranks_low, NULL};
    }
    xm_table_free(table);
    return one || refuse(spec, "a range or * where one value is needed");
}

static bool read_spec(struct why *why, const char *spec)
{
    char  text[256];
    char *end;
    long  nodes = 1;

    if ((strlen(spec) >= sizeof(text) - 8) || (strpbrk(spec, "#\n") != NULL)) {
        return refuse(spec, "not one call");
    }
    snprintf(text, sizeof(text), "%s", spec);
    int colons = 0;
    for (const char *p = text; *p != '\0'; p++) {
        colons += (*p == ':');
    }
    if ((colons != 3) && (colons != 4)) {
        char what[64];
        snprintf(what, sizeof(what), "%d field%s given, 4 or 5 are needed", colons + 1,
                 (colons == 0) ? "" : "s");
        return refuse(spec, what);
    }
    if (colons == 4) {
        char *last = strrchr(text, ':');
        nodes = strtol(last + 1, &end, 10);
        if ((end == last + 1) || (*end != '\0') || (nodes < 1)) {
            return refuse(spec, "nodes: expected an integer >= 1");
        }
        *last = '\0';
    }
    strcat(text, ":mpi");
    if (!read_call(why, spec, text)) {
        return false;
    }
    int n = why->facts.nranks;
    if (nodes > n) {
        return refuse(spec, "more nodes than ranks");
    }
    why->setting = (struct xm_setting){.nranks = n,
                                       .nodes = (int)nodes,
                                       .per_node_least = n / (int)nodes,
                                       .per_node_most = (n + (int)nodes - 1) / (int)nodes,
                                       .one_tables = true};
    return true;
}

static const struct info_runtime *runtime_of(const struct why *why, const struct info *info)
{
    bool cuda = (why->facts.mem == XM_MEM_CUDA) || (why->facts.mem == XM_MEM_CUDA_MANAGED);

    for (int i = 0; i < INFO_MAX_RUNTIMES; i++) {
        if (strcmp(info->runtimes[i].name, cuda ? "cuda" : "rocm") == 0) {
            return &info->runtimes[i];
        }
    }
    return &info->runtimes[0];
}

/* As the ranks would agree on it, if all were on nodes like this one. */
static void fill_setting(struct why *why, const struct info *info, const char *gpu)
{
    const struct info_runtime *runtime = runtime_of(why, info);
    struct xm_setting         *s = &why->setting;

    if (gpu != NULL) {
        snprintf(s->gpu, sizeof(s->gpu), "%s", gpu);
    } else if (runtime->count > 0) {
        snprintf(s->gpu, sizeof(s->gpu), "%.95s", runtime->devices[0].name);
        for (int i = 1; i < runtime->count; i++) {
            if (strcmp(runtime->devices[i].name, runtime->devices[0].name) != 0) {
                s->gpu[0] = '\0';
            }
        }
    }
    s->fabric = (xc_params()->ccl != XC_CCL_NONE) && xc_vendor_fabric();
    s->gpu_aware = (xc_params()->mpi_gpu_aware == XC_YES);
    if (info->library != NULL) {
        snprintf(s->ccl, sizeof(s->ccl), "%s", info->library->name);
        s->ccl_version = info->library->version;
    }
}

static bool carried_by_ccl(enum xm_coll coll)
{
    return coll < XM_ALLTOALLW;
}

static bool carried_by_direct(enum xm_coll coll)
{
    return carried_by_ccl(coll) || (coll == XM_SCAN) || (coll == XM_EXSCAN);
}

static void say(struct why_path *path, bool available, const char *text)
{
    path->available = available;
    snprintf(path->text, sizeof(path->text), "%.639s", text);
}

/* Of the libraries for this memory, the first; the machine may have another vendor's runtime. */
static const char *no_library(const struct why *why, const struct info *info)
{
    const char *device = runtime_of(why, info)->name;
    bool        named = (xc_params()->ccl != XC_CCL_AUTO) || (xc_params()->ccl_library != NULL);

    named = named || (why->facts.mem == XM_MEM_HPU) || (xc_params_error() != NULL);
    for (size_t i = 0; !named && (i < info->nccls); i++) {
        if (!info->ccls[i].found && (strcmp(info->ccls[i].row->device, device) == 0)) {
            return info->ccls[i].why;
        }
    }
    return info_why_no_library(info);
}

static void check_ccl(struct why *why, const struct info *info)
{
    struct why_path *path = &why->paths[XM_PATH_CCL];
    bool             cuda = (strcmp(runtime_of(why, info)->name, "cuda") == 0);

    if (xc_params()->ccl == XC_CCL_NONE) {
        say(path, false, "XCCL_CCL=none");
    } else if (!carried_by_ccl(why->facts.coll)) {
        say(path, false, "a collective that the vendors' libraries lack");
    } else if (info->library == NULL) {
        say(path, false, no_library(why, info));
    } else if (cuda != (strcmp(info->library->name, "nccl") == 0) &&
               (strcmp(info->library->name, "msccl") != 0)) {
        snprintf(path->text, sizeof(path->text), "%s does not work on this memory",
                 info->library->name);
    } else {
        char version[16];
        path->available = true;
        snprintf(path->text, sizeof(path->text),
                 "%s %s, once a communicator of it has paid for itself (XCCL_COMM_CREATE)",
                 info->library->name,
                 xc_nccl_version_text(info->library->version, version, sizeof(version)));
    }
}

static void check_direct(struct why *why, const struct info *info)
{
    struct why_path           *path = &why->paths[XM_PATH_DIRECT];
    const struct info_runtime *runtime = runtime_of(why, info);
    bool                       on = (xc_params()->direct == XC_DIRECT_ON);

    if (xc_params()->direct == XC_DIRECT_OFF) {
        say(path, false, "XCCL_DIRECT=off");
    } else if (!carried_by_direct(why->facts.coll)) {
        say(path, false, "a collective that it does not have");
    } else if (why->setting.nodes > 1) {
        say(path, false, "the ranks are on several nodes");
    } else if ((why->facts.nranks < 2) || (why->facts.nranks > XK_MAX_RANKS)) {
        snprintf(path->text, sizeof(path->text), "it takes 2 to %d ranks", XK_MAX_RANKS);
    } else if ((strcmp(runtime->name, "cuda") != 0) && !on) {
        say(path, false, "nobody has tried it on ROCm; XCCL_DIRECT=on does");
    } else if (xc_peers_disabled() && !on) {
        say(path, false, "NCCL_P2P_DISABLE is set");
    } else if (runtime->kernels[0] == '\0') {
        say(path, false, runtime->kernels_why);
    } else if ((runtime->count > 0) && (runtime->count < why->facts.nranks)) {
        snprintf(path->text, sizeof(path->text),
                 "each rank takes a device of its own, and this node shows %d", runtime->count);
    } else {
        say(path, true, "if every device reaches the memory of the others");
    }
}

/* The only rank's own copy. */
static void check_self(struct why *why)
{
    struct why_path *path = &why->self;

    if (why->facts.nranks > 1) {
        say(path, false, "it is for one rank");
    } else if (!xm_coll_alone_on_device(why->facts.coll)) {
        say(path, false, "a collective that it does not have");
    } else if (why->obstacle[0] != '\0') {
        say(path, false, why->obstacle);
    } else if (why->setting.gpu_aware) {
        say(path, false, "MPI takes device memory (XCCL_MPI_GPU_AWARE=yes)");
    } else {
        say(path, true,
            "a copy on the device, where no row decides and MPI does not take device memory");
    }
}

/* No table names messages: they take the place of MPI's path. */
static const char *way_of_mpi(const struct why *why)
{
    if (why->setting.gpu_aware) {
        return "MPI takes device memory (XCCL_MPI_GPU_AWARE=yes)";
    }
    return (xm_coll_is_pairwise(why->facts.coll) && (xc_params()->p2p == XC_P2P_AUTO) &&
            (xc_params()->route == XC_ROUTE_XCCL))
               ? "a message for each block, from GPU to GPU (messages), unless MPI takes device "
                 "memory, which is not known here"
               : "staged through host memory, unless MPI takes device memory, which is not known "
                 "here";
}

static void check_paths(struct why *why, const struct info *info)
{
    if (xc_params()->route != XC_ROUTE_XCCL) {
        snprintf(why->obstacle, sizeof(why->obstacle), "XCCL_ROUTE is not xccl");
    } else if (why->facts.bytes == 0) {
        snprintf(why->obstacle, sizeof(why->obstacle), "no data");
    }
    why->facts.obstacle = (why->obstacle[0] != '\0') ? why->obstacle : NULL;
    say(&why->paths[XM_PATH_MPI], true, way_of_mpi(why));
    say(&why->paths[XM_PATH_STAGED], true,
        why->setting.gpu_aware
            ? "copies in host memory, on which MPI works"
            : "MPI on copies in host memory; the same as mpi where MPI does not take device memory");
    check_ccl(why, info);
    check_direct(why, info);
    check_self(why);
}

static bool look_at_table(struct why *why, struct why_table *t, const struct xm_source *source,
                          unsigned available, bool *found)
{
    t->table = source->table;
    t->asked = (source->origin == XM_FROM_TUNE) || (source->origin == XM_FROM_BUILTIN) ||
               xm_table_applies(source->table, &why->setting, t->not_asked, sizeof(t->not_asked));
    t->rows = calloc(source->table->count + 1, sizeof(*t->rows));
    for (size_t i = 0; (t->rows != NULL) && t->asked && (i < source->table->count); i++) {
        const struct xm_row *row = &source->table->rows[i];
        struct why_row      *r = &t->rows[i];
        r->text = strrchr(row->text, ' ') + 1; /* behind the table's name */
        r->path = row->path;
        r->verdict = xm_row_verdict(row, available, &why->facts);
        r->chosen = !*found && (r->verdict == XM_ROW_MATCHES) && (why->facts.obstacle == NULL);
        if (r->chosen) {
            *found = true;
            why->path = xm_path_name(row->path);
            why->reason = row->text;
        }
    }
    return t->rows != NULL;
}

bool why_collect(struct why *why, const struct info *info, const char *spec, const char *gpu)
{
    const struct xm_tables *all = xm_tables_all();
    unsigned                available = 0;
    bool                    found = false;

    memset(why, 0, sizeof(*why));
    if (!read_spec(why, spec)) {
        return false;
    }
    fill_setting(why, info, gpu);
    check_paths(why, info);
    for (int p = 0; p < XM_NUM_PATHS; p++) {
        available |= (unsigned)why->paths[p].available << p;
    }
    why->path = why->self.available ? "self" : xm_path_name(XM_PATH_MPI);
    why->reason = (why->facts.obstacle != NULL) ? why->obstacle
                  : why->self.available         ? "the data of the only rank goes to itself"
                                        : "no matching row of the tables has a path that is there";
    why->tables = calloc(all->count + 1, sizeof(*why->tables));
    for (size_t i = 0; (why->tables != NULL) && (i < all->count); i++) {
        why->count++;
        if (!look_at_table(why, &why->tables[i], &all->sources[i], available, &found)) {
            xc_fail(xcclSystemError, "out of memory");
            return false;
        }
    }
    return why->tables != NULL;
}

void why_free(struct why *why)
{
    for (size_t i = 0; i < why->count; i++) {
        free(why->tables[i].rows);
    }
    free(why->tables);
}
