/* SPDX-License-Identifier: BSD-3-Clause */
/* What is not there: no job ends by it, and none does what was meant. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "info.h"

enum { MOST_DEVICES = 64, FAR = 4 /* edits: further away is not a likely slip */ };

/* Of the environment; NULL: not set, or empty. */
static const char *value_of(const char *name)
{
    size_t                     count;
    const struct xc_param_row *rows = xc_param_rows(&count);

    for (size_t i = 0; i < count; i++) {
        bool from_env = false;
        if (strcmp(rows[i].name, name) == 0) {
            const char *value = xc_param_value(i, &from_env);
            return (from_env && (value[0] != '\0')) ? value : NULL;
        }
    }
    return NULL;
}

/* A sentence more. */
static void add(struct info *info, const char *text)
{
    size_t used = strlen(info->missing);

    snprintf(info->missing + used, sizeof(info->missing) - used, "%s%s", (used > 0) ? "; " : "",
             text);
}

/* Of the installation: without it programs go on with MPI alone, or xccl-run refuses them. */
static void check_parts(struct info *info)
{
    char text[1300];

    if ((info->nmpi > 0) && (info->libxccl[0] == '\0')) {
        snprintf(text, sizeof(text), "libxccl.so is missing in %s; install xccl again",
                 info->prefix);
        add(info, text);
    }
    if ((info->nmpi > 0) && (info->preload[0] == '\0')) {
        snprintf(text, sizeof(text), "libxccl-mpi.so is missing in %s; install xccl again",
                 info->prefix);
        add(info, text);
    }
    for (int i = 0; i < info->nmpi; i++) {
        if (info->mpi[i].interposer[0] == '\0') {
            snprintf(text, sizeof(text),
                     "libxccl-mpi-%s.so is missing in %s; install xccl again, with its mpicc on "
                     "PATH",
                     info->mpi[i].family, info->prefix);
            add(info, text);
        }
    }
}

static void check_library(struct info *info)
{
    const char *file = value_of("XCCL_CCL_LIBRARY");
    char        text[1200];

    if (file == NULL) {
        return;
    }
    if ((strchr(file, '/') != NULL) && (access(file, F_OK) != 0)) {
        snprintf(text, sizeof(text),
                 "XCCL_CCL_LIBRARY=%.500s: no such file; correct the path, or unset it", file);
        add(info, text);
    } else if ((info->library == NULL) && (strstr(info->backend_why, "XCCL_CCL_LIBRARY") != NULL)) {
        add(info, info->backend_why);
    }
}

static void check_site(struct info *info)
{
    const char    *site = value_of("XCCL_SITE");
    char           folder[1100], nearest[256] = "", text[1400];
    size_t         best = FAR;
    struct dirent *entry;

    snprintf(folder, sizeof(folder), "%s/share/xccl/sites", info->prefix);
    DIR *sites = (site != NULL) ? opendir(folder) : NULL;
    if (sites == NULL) {
        return; /* a library that was installed without the sites' files */
    }
    while ((best > 0) && ((entry = readdir(sites)) != NULL)) {
        size_t edits = (entry->d_name[0] != '.') ? xc_edit_distance(site, entry->d_name) : FAR;
        if (edits < best) {
            best = edits;
            snprintf(nearest, sizeof(nearest), "%s", entry->d_name);
        }
    }
    closedir(sites);
    if (best > 0) {
        snprintf(text, sizeof(text), "XCCL_SITE=%.200s: no such site in %.900s%s%s%s", site, folder,
                 (best < FAR) ? "; did you mean " : "", nearest, (best < FAR) ? "?" : "");
        add(info, text);
    }
}

/* As the simulation reads it. */
static void check_simulation(struct info *info)
{
    const char *value = value_of("XCCL_SIM");
    const char *colon = (value != NULL) ? strchr(value, ':') : NULL;
    char        text[400];
    char       *end = NULL;
    long        count = 0;

    if (value == NULL) {
        return;
    }
    size_t len = (colon != NULL) ? (size_t)(colon - value) : 0;
    for (size_t i = 0; info_flavours[i] != NULL; i++) {
        if ((strncmp(info_flavours[i], value, len) == 0) && (info_flavours[i][len] == '\0')) {
            count = ((colon[1] >= '0') && (colon[1] <= '9')) ? strtol(colon + 1, &end, 10) : 0;
        }
    }
    if ((count < 1) || (count > MOST_DEVICES) || (*end != '\0')) {
        snprintf(text, sizeof(text),
                 "XCCL_SIM=%.200s: it takes cuda:N, rocm:N, msccl:N, mscclpp:N, oneccl:N or hpu:N, "
                 "N devices from 1 to %d",
                 value, MOST_DEVICES);
        add(info, text);
    }
}

void info_find_missing(struct info *info)
{
    check_parts(info);
    check_library(info);
    check_site(info);
    check_simulation(info);
}
