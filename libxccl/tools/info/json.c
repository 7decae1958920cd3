/* SPDX-License-Identifier: BSD-3-Clause */
/* The same facts for programs; the shape is in xccl-info.schema.json. */
#include <stdio.h>

#include "common/json_text.h"
#include "info.h"
#include "info_build.h"

/* A path, or null for "". */
static void path_field(const char *name, const char *path)
{
    json_field(stdout, name, (path[0] != '\0') ? path : NULL);
}

static const char *comma(bool more)
{
    return more ? ", " : "";
}

static void put_install(const struct info *info)
{
    printf("  \"installation\": {");
    path_field("prefix", info->prefix);
    printf(",\n    ");
    path_field("libxccl", info->libxccl);
    printf(",\n    ");
    path_field("interposer", info->preload);
    printf(",\n    \"mpi\": [");
    for (int i = 0; i < info->nmpi; i++) {
        const struct info_mpi *mpi = &info->mpi[i];
        printf("%s\n      {", (i > 0) ? "," : "");
        json_field(stdout, "family", mpi->family);
        printf(", ");
        json_field(stdout, "built_with", mpi->built_with);
        printf(", ");
        path_field("interposer", mpi->interposer);
        printf(", ");
        path_field("perf", mpi->perf);
        printf("}");
    }
    printf("],\n    \"simulated\": {");
    for (int i = 0; info_flavours[i] != NULL; i++) {
        printf("%s", comma(i > 0));
        path_field(info_flavours[i], info->sim[i]);
    }
    printf("},\n    ");
    json_field(stdout, "compiler", XCCL_INFO_COMPILER);
    printf(", ");
    json_field(stdout, "build_type", XCCL_INFO_BUILD_TYPE);
    printf(", \"sanitized\": %s, ", XCCL_SANITIZE ? "true" : "false");
    json_field(stdout, "ccl_path", XCCL_INFO_CCL_PATH);
    printf("},\n");
}

static void put_runtime(const struct info_runtime *runtime, bool with_devices)
{
    printf("    {");
    json_field(stdout, "name", runtime->name);
    printf(", ");
    path_field("library", runtime->path);
    printf(", \"started\": %s, ", runtime->started ? "true" : "false");
    path_field("why_not", runtime->why);
    printf(", ");
    path_field("kernels", runtime->kernels);
    printf(", ");
    path_field("no_kernels", runtime->kernels_why);
    if (with_devices) {
        printf(", \"devices\": [");
        for (int i = 0; i < runtime->count; i++) {
            const struct info_device *device = &runtime->devices[i];
            printf("%s{\"index\": %d, ", comma(i > 0), i);
            json_field(stdout, "name", device->name);
            printf(", ");
            json_field(stdout, "bus_id", device->bus_id);
            printf(", ");
            json_field(stdout, "uuid", device->uuid);
            printf("}");
        }
        printf("]");
    }
    printf("}");
}

static void put_support(const struct info_ccl *ccl)
{
    bool first = true;

    printf("\"types\": [");
    for (int type = 0; type < xcclNumTypes; type++) {
        if (info_ccl_has_type(ccl, type)) {
            printf("%s", comma(!first));
            json_text(stdout, xc_type_name((xcclDataType_t)type));
            first = false;
        }
    }
    printf("], \"only_moved\": [");
    first = true;
    for (int type = 0; type < xcclNumTypes; type++) {
        if ((ccl->row->only_moved & (1u << type)) != 0) {
            printf("%s", comma(!first));
            json_text(stdout, xc_type_name((xcclDataType_t)type));
            first = false;
        }
    }
    printf("], \"operations\": [");
    first = true;
    for (int op = 0; op < xcclNumOps; op++) {
        if (info_ccl_has_op(ccl, op)) {
            printf("%s", comma(!first));
            json_text(stdout, xc_op_name((xcclRedOp_t)op));
            first = false;
        }
    }
    printf("]");
}

static void put_ccls(const struct info *info)
{
    printf("  \"libraries\": [");
    for (size_t i = 0; i < info->nccls; i++) {
        const struct info_ccl *ccl = &info->ccls[i];
        printf("%s\n    {", (i > 0) ? "," : "");
        json_field(stdout, "name", ccl->row->name);
        printf(", ");
        json_field(stdout, "device", ccl->row->device);
        printf(", \"id_bytes\": %zu, \"found\": %s, ", ccl->row->id_bytes,
               ccl->found ? "true" : "false");
        if (ccl->found) {
            json_field(stdout, "path", ccl->path);
            printf(", ");
            json_field(stdout, "found_by", ccl->found_by);
            printf(", \"version\": %d, ", ccl->version);
            json_field(stdout, "version_text", ccl->version_text);
            printf(",\n     ");
            put_support(ccl);
        } else {
            json_field(stdout, "why_not", ccl->why);
        }
        printf("}");
    }
    printf("\n  ],\n  \"in_use\": {");
    json_field(stdout, "library", (info->library != NULL) ? info->library->name : NULL);
    printf(", ");
    path_field("why_not", info->backend_why);
    printf(", \"collectives\": {");
    for (int coll = 0; (info->backend != NULL) && (coll < XC_NUM_COLLS); coll++) {
        printf("%s", comma(coll > 0));
        json_field(stdout, xc_coll_name((enum xc_coll)coll),
                   info->backend->native((enum xc_coll)coll) ? "native" : "composed");
    }
    printf("}},\n");
}

static void put_config(void)
{
    size_t                     count;
    const struct xc_param_row *rows = xc_param_rows(&count);

    printf("  \"configuration\": [");
    for (size_t i = 0; i < count; i++) {
        bool        from_env;
        const char *value = xc_param_value(i, &from_env);
        printf("%s\n    {", (i > 0) ? "," : "");
        json_field(stdout, "name", rows[i].name);
        printf(", ");
        json_field(stdout, "value", value);
        printf(", ");
        json_field(stdout, "default", rows[i].fallback);
        printf(", ");
        json_field(stdout, "origin", from_env ? "environment" : "default");
        printf(", ");
        json_field(stdout, "allowed", rows[i].allowed);
        printf(", ");
        json_field(stdout, "meaning", rows[i].meaning);
        printf(", ");
        json_field(stdout, "read_by", rows[i].read_by);
        printf("}");
    }
    printf("\n  ],\n");
}

static void put_table(const struct xm_source *source, bool first)
{
    static const char *const origins[] = {"XCCL_TUNE", "XCCL_TABLE", "site", "xccl", "built-in"};
    const struct xm_head    *head = &source->table->head;

    printf("%s\n    {", first ? "" : ",");
    json_field(stdout, "origin", origins[source->origin]);
    printf(", ");
    json_field(stdout, "source", source->table->source);
    printf(", ");
    json_field(stdout, "title", (head->title[0] != '\0') ? head->title : NULL);
    printf(", ");
    json_field(stdout, "measured", (head->measured[0] != '\0') ? head->measured : NULL);
    printf(", \"rows\": %zu}", source->table->count);
}

void info_print_json(const struct info *info, bool with_devices)
{
    printf("{\n  \"schema\": \"xccl-info-1\",\n  ");
    json_field(stdout, "version", XCCL_INFO_VERSION);
    printf(",\n");
    put_install(info);
    printf("  \"runtimes\": [\n");
    for (int i = 0; i < INFO_MAX_RUNTIMES; i++) {
        put_runtime(&info->runtimes[i], with_devices);
        printf("%s\n", (i < INFO_MAX_RUNTIMES - 1) ? "," : "");
    }
    printf("  ],\n");
    put_ccls(info);
    put_config();
    printf("  \"tuning\": {");
    json_field(stdout, "XCCL_TUNE", info->tune);
    printf(", ");
    json_field(stdout, "built_in", xm_table_builtin());
    printf(", \"tables\": [");
    for (size_t i = 0; i < info->tables->count; i++) {
        put_table(&info->tables->sources[i], i == 0);
    }
    printf("\n  ]},\n  ");
    path_field("fault", info->fault);
    printf(",\n  ");
    path_field("unknown", info->unknown);
    printf(",\n  ");
    path_field("missing", info->missing);
    printf("\n}\n");
}
