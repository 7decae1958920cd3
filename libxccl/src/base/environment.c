/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/environment.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/params.h"

static bool has_line(const char *text, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = text; at != NULL; at = strchr(at, '\n')) {
        at += (*at == '\n');
        if ((strncmp(at, name, n) == 0) && (at[n] == '=')) {
            return true;
        }
    }
    return false;
}

/* A line of its own for a variable that is set; false if it has no room. */
static bool add_line(const char *name, char *text, size_t len)
{
    const char *value = getenv(name);
    size_t      at = strlen(text);

    if ((value == NULL) || has_line(text, name)) {
        return true;
    }
    if ((strchr(value, '\n') != NULL) || (at + strlen(name) + strlen(value) + 3 > len)) {
        return false;
    }
    snprintf(text + at, len - at, "%s%s=%s", (at > 0) ? "\n" : "", name, value);
    return true;
}

bool xc_environment_for_children(const char *library, char *text, size_t len)
{
    const char *preload = getenv("LD_PRELOAD");

    if ((preload == NULL) || (strstr(preload, library) == NULL)) {
        return true;
    }
    bool   good = add_line("LD_PRELOAD", text, len);
    size_t count;
    if (getenv("XCCL_SIM") != NULL) {
        add_line("XCCL_SIM", text, len);
        add_line("LD_LIBRARY_PATH", text, len); /* to the simulation */
    }
    const struct xc_param_row *rows = xc_param_rows(&count);
    for (size_t i = 0; i < count; i++) {
        if (strstr(rows[i].read_by, "libxccl") != NULL) {
            add_line(rows[i].name, text, len);
        }
    }
    return good;
}

/* Not in privileged programs: some name files with code. */
const char *xc_foreign_variable(const char *name)
{
    const char *value = secure_getenv(name);

    return ((value != NULL) && (value[0] != '\0')) ? value : NULL;
}

const char *xc_nvtx_library(void)
{
    return xc_foreign_variable("NVTX_INJECTION64_PATH");
}

bool xc_rocm_profiler(void)
{
    /* Of rocprofiler-sdk's tools, rocprofv3, rocprof and rocprofv2. */
    static const char *const names[] = {"ROCP_TOOL_LIBRARIES", "ROCPROF_MARKER_API_TRACE",
                                        "HSA_TOOLS_LIB", "ROCPROFILER_ROCTX_TRACE"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = xc_foreign_variable(names[i]);
        if ((value != NULL) && (strcmp(value, "0") != 0)) {
            return true;
        }
    }
    return false;
}

/* The value on the first line NAME=value of a file, as NCCL reads it: without a blank to spare. */
static bool find_in_file(const char *path, const char *name, char *value, size_t len)
{
    struct stat st;
    char        line[2048];
    size_t      n = strlen(name);
    bool        found = false;
    FILE       *f = ((stat(path, &st) == 0) && S_ISREG(st.st_mode)) ? fopen(path, "re") : NULL;

    while ((f != NULL) && !found && (fgets(line, sizeof(line), f) != NULL)) {
        found = (strncmp(line, name, n) == 0) && (line[n] == '=');
    }
    if (found) {
        line[strcspn(line, "\n")] = '\0';
        snprintf(value, len, "%s", line + n + 1);
    }
    if (f != NULL) {
        fclose(f);
    }
    return found;
}

/*
 * A variable of NCCL's and RCCL's, or what their files say instead; "" if nothing does. The first
 * one counts, as initEnvFunc() of NCCL sets variables that are not set, from one after the other.
 */
static void vendor_variable(const char *name, char *value, size_t len)
{
    const char *set = getenv(name), *own = xc_foreign_variable("NCCL_CONF_FILE");
    const char *home = xc_foreign_variable("HOME"); /* NCCL asks the list of users */
    char        mine[2][PATH_MAX] = {"", ""};

    value[0] = '\0';
    if (set != NULL) {
        snprintf(value, len, "%s", set);
        return;
    }
    if (home != NULL) {
        snprintf(mine[0], sizeof(mine[0]), "%s/.nccl.conf", home);
        snprintf(mine[1], sizeof(mine[1]), "%s/.rccl.conf", home);
    }
    const char *const files[] = {(own != NULL) ? own : mine[0], mine[1], "/etc/nccl.conf",
                                 "/etc/rccl.conf"};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        if (find_in_file(files[i], name, value, len)) {
            return;
        }
    }
}

void xc_network_variables_get(struct xc_network_variables *v)
{
    char verbs[32];

    vendor_variable("NCCL_NET", v->net, sizeof(v->net));
    vendor_variable("NCCL_NET_PLUGIN", v->plugin, sizeof(v->plugin));
    vendor_variable("NCCL_IB_HCA", v->hca, sizeof(v->hca));
    vendor_variable("NCCL_IB_DISABLE", verbs, sizeof(verbs));
    v->no_verbs = (verbs[0] != '\0') && (strcmp(verbs, "0") != 0);
}

/* The NCCL user guide: "set to 1"; ncclGetLevel() passes over any other number. RCCL's as well. */
bool xc_peers_disabled(void)
{
    char value[32];

    vendor_variable("NCCL_P2P_DISABLE", value, sizeof(value));
    return strtol(value, NULL, 0) == 1;
}

bool xc_one_hardware_queue(void)
{
    static const char *const names[] = {"CUDA_DEVICE_MAX_CONNECTIONS", "GPU_MAX_HW_QUEUES", NULL};

    for (size_t i = 0; names[i] != NULL; i++) {
        const char *value = getenv(names[i]);
        if ((value != NULL) && (strcmp(value, "1") == 0)) {
            return true;
        }
    }
    return false;
}

bool xc_launches_block(void)
{
    static const char *const names[] = {"CUDA_LAUNCH_BLOCKING", "HIP_LAUNCH_BLOCKING",
                                        "AMD_SERIALIZE_KERNEL"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = xc_foreign_variable(names[i]);
        if ((value != NULL) && (strcmp(value, "0") != 0)) {
            return true;
        }
    }
    return false;
}

bool xc_hides_devices(const char *name)
{
    const char *value = getenv(name);

    return (value != NULL) && ((value[0] == '\0') || (value[0] == '-'));
}
