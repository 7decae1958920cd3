/* SPDX-License-Identifier: BSD-3-Clause */
/* Where and with what a table was measured. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backends/backend.h"
#include "base/params.h"
#include "tune/tune.h"
#include "vendor/vendor.h"

static const char unknown[] = "unknown";

static bool first_line(const char *path, char *text, size_t len)
{
    FILE *f = fopen(path, "re");
    bool  found = (f != NULL) && (fgets(text, (int)len, f) != NULL);

    if (f != NULL) {
        fclose(f);
    }
    if (found) {
        text[strcspn(text, "\n")] = '\0';
    }
    return found && (text[0] != '\0');
}

static void find_driver(const struct xc_device_ops *dev, struct tune_origin *o)
{
    const char *path = ((dev != NULL) && (strcmp(dev->name, "rocm") == 0))
                           ? "/sys/module/amdgpu/version"
                           : "/sys/module/nvidia/version";

    if (o->simulated || !first_line(path, o->driver, sizeof(o->driver))) {
        snprintf(o->driver, sizeof(o->driver), "%s", o->simulated ? "simulated" : unknown);
    }
}

static void find_library(struct tune_origin *o)
{
    const struct xc_backend_ops *backend;
    const struct xc_library     *library;
    char                         version[16];

    if (xc_backend_get(&backend, &library) != xcclSuccess) {
        snprintf(o->library, sizeof(o->library), "none");
        return;
    }
    snprintf(o->library, sizeof(o->library), "%s %s", library->name,
             xc_nccl_version_text(library->version, version, sizeof(version)));
}

static void find_mpi(struct tune_origin *o)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int  len;

    MPI_Get_library_version(text, &len);
    text[strcspn(text, "\n,")] = '\0';
    for (char *tab = strchr(text, '\t'); tab != NULL; tab = strchr(tab, '\t')) {
        *tab = ' ';
    }
    snprintf(o->mpi_library, sizeof(o->mpi_library), "%.127s", text);
}

static bool is_simulated(void)
{
    size_t                     count;
    const struct xc_param_row *rows = xc_param_rows(&count);
    bool                       from_env = false;

    for (size_t i = 0; i < count; i++) {
        if (strcmp(rows[i].name, "XCCL_SIM") == 0) {
            xc_param_value(i, &from_env);
        }
    }
    return from_env;
}

void tune_origin_here(const struct xc_device_ops *dev, int device, struct tune_origin *o)
{
    time_t    now = time(NULL);
    struct tm utc;

    memset(o, 0, sizeof(*o));
    o->simulated = is_simulated();
    gmtime_r(&now, &utc);
    strftime(o->measured, sizeof(o->measured), "%Y-%m-%d", &utc);
    if ((dev == NULL) || (device < 0) ||
        (dev->name_of(device, o->gpu, sizeof(o->gpu)) != xcclSuccess)) {
        snprintf(o->gpu, sizeof(o->gpu), "%s", unknown);
    }
    find_driver(dev, o);
    find_library(o);
    find_mpi(o);
}

int tune_check(FILE *f, const struct xm_head *head, const struct tune_origin *here)
{
    const struct {
        const char *what, *then, *now;
    } facts[] = {
        {"gpu_model", head->gpu_model, here->gpu},
        {"driver", head->driver, here->driver},
        {"library", head->library, here->library},
        {"mpi_library", head->mpi_library, here->mpi_library},
    };
    int changed = 0;

    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        if (facts[i].then[0] == '\0') {
            fprintf(f, "%s: the table does not say; here %s\n", facts[i].what, facts[i].now);
        } else if (strcmp(facts[i].now, unknown) == 0) {
            fprintf(f, "%s: was %s, and cannot be found out here\n", facts[i].what, facts[i].then);
        } else if (strcmp(facts[i].then, facts[i].now) != 0) {
            fprintf(f, "%s: was %s, here %s\n", facts[i].what, facts[i].then, facts[i].now);
            changed++;
        }
    }
    return changed;
}
