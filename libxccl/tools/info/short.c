/* SPDX-License-Identifier: BSD-3-Clause */
/* The facts on one screen: a line for each question that a user has first. */
#include <stdio.h>
#include <string.h>

#include "base/environment.h"

#include "info.h"
#include "info_build.h"

/* Text in front of all entries of a list but the first. */
static const char *comma(bool *any)
{
    const char *text = *any ? ", " : "";

    *any = true;
    return text;
}

static void print_mpi(const struct info *info)
{
    bool any = false;

    printf("  %-13s", "for MPI");
    for (int i = 0; i < info->nmpi; i++) {
        const struct info_mpi *mpi = &info->mpi[i];
        printf("%s%s (built with %s%s)", comma(&any), mpi->family, mpi->built_with,
               (mpi->interposer[0] != '\0') ? "" : "; its interposer is missing");
    }
    printf("%s\n", any ? "" : "none: built without an MPI");
}

static void print_devices(const struct info *info, bool with_devices)
{
    bool any = false;

    printf("  %-13s", "devices");
    for (int i = 0; i < INFO_MAX_RUNTIMES; i++) {
        const struct info_runtime *runtime = &info->runtimes[i];
        if (runtime->library[0] == '\0') {
            continue;
        }
        printf("%s%s by %s", comma(&any), runtime->name, runtime->path);
        if (with_devices && !runtime->started) {
            printf(", which cannot be used: %s", runtime->why);
        }
        for (int n = 0; n < runtime->count; n++) {
            printf("\n  %-13sdevice %d: %s, %s, %s", "", n, runtime->devices[n].name,
                   runtime->devices[n].bus_id, runtime->devices[n].uuid);
        }
    }
    const char *sim = any ? NULL : xc_foreign_variable("XCCL_SIM");
    printf("%s", any ? "" : "no driver of a GPU here (looked for CUDA, ROCm and Gaudi)");
    if (sim != NULL) {
        printf("; simulated ones (XCCL_SIM=%s) are seen by what xccl-run starts", sim);
    }
    printf("\n");
}

static void print_direct(const struct info *info)
{
    bool any = false;

    printf("  %-13s", "direct path");
    for (int i = 0; i < INFO_MAX_RUNTIMES; i++) {
        if (info->runtimes[i].kernels[0] != '\0') {
            printf("%skernels for %s", comma(&any), info->runtimes[i].name);
        }
    }
    printf("%s%s\n", any ? "" : "no kernels are installed",
           (xc_params()->direct == XC_DIRECT_OFF) ? "; not used: XCCL_DIRECT=off" : "");
}

const char *info_why_no_library(const struct info *info)
{
    bool named = (xc_params()->ccl != XC_CCL_AUTO) || (xc_params()->ccl_library != NULL);

    if (named || (xc_params_error() != NULL)) { /* with an error none was looked for */
        return info->backend_why;
    }
    for (size_t i = 0; i < info->nccls; i++) {
        for (int n = 0; n < INFO_MAX_RUNTIMES; n++) {
            const struct info_runtime *runtime = &info->runtimes[n];
            if ((runtime->library[0] != '\0') && !info->ccls[i].found &&
                (strcmp(info->ccls[i].row->device, runtime->name) == 0)) {
                return info->ccls[i].why;
            }
        }
    }
    return "neither NCCL, nor RCCL, nor HCCL was found; set XCCL_CCL_LIBRARY to the file, or "
           "LD_LIBRARY_PATH to its folder";
}

static void print_library(const struct info *info)
{
    char version[16];

    printf("  %-13s", "library");
    if (info->library == NULL) {
        printf("none: %s\n", info_why_no_library(info));
        return;
    }
    printf("%s %s, %s (found by: %s)\n", info->library->name,
           xc_nccl_version_text(info->library->version, version, sizeof(version)),
           info->library->path, info->library->found_by);
}

static void print_simulations(const struct info *info)
{
    bool any = false;

    printf("  %-13s", "simulated");
    for (int i = 0; i < INFO_MAX_SIMS; i++) {
        if (info->sim[i][0] != '\0') {
            printf("%s%s", comma(&any), strrchr(info->sim[i], '/') + 1);
        }
    }
    printf("%s\n", any ? "" : "none installed");
}

static void print_changed(void)
{
    size_t                     count;
    const struct xc_param_row *rows = xc_param_rows(&count);
    bool                       any = false;

    for (size_t i = 0; i < count; i++) {
        bool        from_env;
        const char *value = xc_param_value(i, &from_env);
        if (from_env) {
            printf("  %-13s%s=%s\n", any ? "" : "variables", rows[i].name, value);
            any = true;
        }
    }
    if (!any) {
        printf("  %-13s%s\n", "variables", "none is set");
    }
}

void info_print_short(const struct info *info, bool with_devices)
{
    printf("xccl %s in %s\n", XCCL_INFO_VERSION, info->prefix);
    print_mpi(info);
    print_devices(info, with_devices);
    print_direct(info);
    print_library(info);
    print_simulations(info);
    printf("  %-13s%zu, the built-in one among them\n", "tables", info->tables->count);
    print_changed();
    printf("More: --long, --config (every variable), --devices, --why CALL\n");
}
