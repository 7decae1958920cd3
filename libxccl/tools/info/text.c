/* SPDX-License-Identifier: BSD-3-Clause */
/* All the facts for people. */
#include <stdio.h>
#include <string.h>

#include "info.h"
#include "info_build.h"
#include "kernels/kernels.h"

static const char *or_missing(const char *path)
{
    return (path[0] != '\0') ? path : "missing";
}

static void print_install(const struct info *info)
{
    printf("Installation\n");
    printf("  prefix         %s\n", info->prefix);
    printf("  libxccl        %s\n", or_missing(info->libxccl));
    printf("  interposer     %s\n", or_missing(info->preload));
    for (int i = 0; i < info->nmpi; i++) {
        const struct info_mpi *mpi = &info->mpi[i];
        printf("  for %-10s %s (built with %s %s)\n", mpi->family, or_missing(mpi->interposer),
               mpi->family, mpi->built_with);
    }
    if (info->nmpi == 0) {
        printf("  for MPI        none: built without an MPI\n");
    }
    for (int i = 0; i < INFO_MAX_SIMS; i++) {
        if (info->sim[i][0] != '\0') {
            printf("  simulated      %s\n", info->sim[i]);
        }
    }
    printf("  built by       %s, %s%s\n", XCCL_INFO_COMPILER, XCCL_INFO_BUILD_TYPE,
           XCCL_SANITIZE ? ", with sanitizers" : "");
    if (XCCL_INFO_CCL_PATH[0] != '\0') {
        printf("  built-in paths %s\n", XCCL_INFO_CCL_PATH);
    }
}

static void print_runtime(const struct info_runtime *runtime, bool with_devices)
{
    if (runtime->library[0] == '\0') {
        printf("  %-14s not found\n", runtime->name);
        return;
    }
    printf("  %-14s %s%s\n", runtime->name, runtime->path,
           with_devices ? "" : " (not started; --devices lists its devices)");
    if (with_devices && !runtime->started) {
        printf("  %-14s cannot be used: %s\n", "", runtime->why);
    }
    for (int i = 0; i < runtime->count; i++) {
        const struct info_device *device = &runtime->devices[i];
        printf("  %-14s device %d: %s, %s, %s\n", "", i, device->name, device->bus_id,
               device->uuid);
    }
}

/* How many communicators have room at once in the memory of one device. */
static void print_direct(const struct info *info)
{
    long mib = xc_params()->direct_memory;

    printf("\nDirect path (kernels of xccl's own, for ranks of one node)\n");
    for (int i = 0; i < INFO_MAX_RUNTIMES; i++) {
        const struct info_runtime *runtime = &info->runtimes[i];
        printf("  %-14s %s\n", runtime->name,
               (runtime->kernels[0] != '\0') ? runtime->kernels : runtime->kernels_why);
    }
    if (xc_params()->direct == XC_DIRECT_OFF) {
        printf("  %-14s not used: XCCL_DIRECT=off\n", "");
    }
    printf("  memory         %ld MiB of each device: room for some", mib);
    for (uint32_t ranks = 2; ranks <= XK_MAX_RANKS; ranks *= 2) {
        printf("%s %ld communicators of %u ranks",
               (ranks == 2)   ? ""
               : (ranks == 4) ? ","
                              : " or",
               (long)(((uint64_t)mib << 20) / xk_workspace_bytes(ranks)), (unsigned)ranks);
    }
    printf("\n");
}

static void print_ccls(const struct info *info)
{
    printf("\nVendor libraries\n");
    for (size_t i = 0; i < info->nccls; i++) {
        const struct info_ccl *ccl = &info->ccls[i];
        if (ccl->found) {
            printf("  %-14s %s, %s (found by: %s; on %s, unique ids of %zu bytes)\n",
                   ccl->row->name, ccl->version_text, ccl->path, ccl->found_by, ccl->row->device,
                   ccl->row->id_bytes);
        } else {
            printf("  %-14s %s\n", ccl->row->name, ccl->why);
        }
    }
    if (info->library != NULL) {
        printf("  in use         %s, in a program that has not loaded another\n",
               info->library->name);
    } else {
        printf("  in use         none: %s\n", info_why_no_library(info));
    }
}

/* "yes", "no", or from which version on where no library was found. */
static const char *support(const struct info_ccl *ccl, int since, bool has, char *buf, size_t len)
{
    char version[16];

    if (ccl->found) {
        return has ? "yes" : "no";
    }
    if (since == XC_NEVER) {
        return "no";
    }
    if (since == 0) {
        return "all";
    }
    snprintf(buf, len, "from %s", xc_nccl_version_text(since, version, sizeof(version)));
    return buf;
}

static void print_support_head(const struct info *info, const char *title)
{
    printf("\n%-16s", title);
    for (size_t i = 0; i < info->nccls; i++) {
        const struct info_ccl *ccl = &info->ccls[i];
        char                   head[40];
        snprintf(head, sizeof(head), "%s %s", ccl->row->name,
                 ccl->found ? ccl->version_text : "(any)");
        printf(" %-14s", head);
    }
    printf("\n");
}

static void print_support(const struct info *info)
{
    char buf[32];

    print_support_head(info, "Types");
    for (int type = 0; type < xcclNumTypes; type++) {
        printf("  %-14s", xc_type_name((xcclDataType_t)type));
        for (size_t i = 0; i < info->nccls; i++) {
            const struct info_ccl *ccl = &info->ccls[i];
            const char            *text = support(ccl, ccl->row->type_since[type],
                                                  info_ccl_has_type(ccl, type), buf, sizeof(buf));
            bool                   only_moved = (ccl->row->only_moved & (1u << type)) != 0;
            printf(" %-14s", only_moved ? "moved only" : text);
        }
        printf("\n");
    }
    print_support_head(info, "Operations");
    for (int op = 0; op < xcclNumOps; op++) {
        printf("  %-14s", xc_op_name((xcclRedOp_t)op));
        for (size_t i = 0; i < info->nccls; i++) {
            const struct info_ccl *ccl = &info->ccls[i];
            printf(" %-14s", support(ccl, ccl->row->op_since[op], info_ccl_has_op(ccl, op), buf,
                                     sizeof(buf)));
        }
        printf("\n");
    }
}

static void print_colls(const struct info *info)
{
    if (info->backend == NULL) {
        return;
    }
    printf("\nCollectives of %s\n", info->library->name);
    for (int coll = 0; coll < XC_NUM_COLLS; coll++) {
        printf("  %-14s %s\n", xc_coll_name((enum xc_coll)coll),
               info->backend->native((enum xc_coll)coll) ? "its own"
                                                         : "made of grouped sends and receives");
    }
}

void info_print_config(void)
{
    size_t                     count;
    const struct xc_param_row *rows = xc_param_rows(&count);

    printf("Configuration\n");
    for (size_t i = 0; i < count; i++) {
        bool        from_env;
        const char *value = xc_param_value(i, &from_env);
        printf("  %s=%s\n", rows[i].name, value);
        printf("      %s (default: %s); takes %s; read by %s\n",
               from_env ? "from the environment" : "default",
               (rows[i].fallback[0] != '\0') ? rows[i].fallback : "none", rows[i].allowed,
               rows[i].read_by);
        printf("      %s\n", rows[i].meaning);
    }
}

static void print_source(const struct xm_table *table)
{
    const struct xm_head *head = &table->head;

    printf("  %s", table->source);
    if (head->measured[0] != '\0') {
        bool nobody = (strcmp(head->measured, "nobody") == 0);
        printf(" (%s; %s%s)", (head->title[0] != '\0') ? head->title : "without a title",
               nobody ? "nobody has measured it" : "measured ", nobody ? "" : head->measured);
    }
    printf("\n");
}

static void print_tables(const struct info *info)
{
    printf(
        "\nTuning (coll:bytes:mem:ranks:path; the first that matches; xccl-info --why explains)\n");
    for (size_t i = 0; i < info->tables->count; i++) {
        const struct xm_source *source = &info->tables->sources[i];
        print_source(source->table);
        if ((source->origin == XM_FROM_TUNE) || (source->origin == XM_FROM_BUILTIN)) {
            for (size_t row = 0; row < source->table->count; row++) {
                printf("    %s\n", strrchr(source->table->rows[row].text, ' ') + 1);
            }
        }
    }
}

void info_print_long(const struct info *info, bool with_devices)
{
    printf("xccl %s\n\n", XCCL_INFO_VERSION);
    print_install(info);
    printf("\nDevice runtimes\n");
    for (int i = 0; i < INFO_MAX_RUNTIMES; i++) {
        print_runtime(&info->runtimes[i], with_devices);
    }
    print_direct(info);
    print_ccls(info);
    print_support(info);
    print_colls(info);
    print_tables(info);
    printf("\n");
    info_print_config();
}

void info_print_link(const struct info *info)
{
    char folder[1100];

    snprintf(folder, sizeof(folder), "%s", info->preload);
    char *slash = strrchr(folder, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    /* Where the program needs of MPI only what the interposer offers, a linker that drops libraries
     * "not needed" would drop MPI itself, which the wrapper adds behind this. */
    printf("-L%s -Wl,-rpath,%s -Wl,--no-as-needed -lxccl-mpi\n", folder, folder);
}
