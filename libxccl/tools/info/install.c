/* SPDX-License-Identifier: BSD-3-Clause */
/* What is installed beside this program. */
#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "info.h"
#include "info_build.h"
#include "kernels/kernels.h"

/* Fill path with prefix/lib*'s name, or "" if there is none. */
static void find_in_lib(const char *prefix, const char *name, char *path, size_t len)
{
    static const char *const folders[] = {"lib", "lib64", "lib/*-linux-gnu"};

    path[0] = '\0';
    for (size_t i = 0; (i < sizeof(folders) / sizeof(folders[0])) && (path[0] == '\0'); i++) {
        char   pattern[1200];
        glob_t found;
        snprintf(pattern, sizeof(pattern), "%s/%s/%s", prefix, folders[i], name);
        if (glob(pattern, 0, NULL, &found) == 0) {
            snprintf(path, len, "%s", found.gl_pathv[0]);
            globfree(&found);
        }
    }
}

static void find_prefix(char *prefix, size_t len)
{
    char    self[1024];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

    self[(n > 0) ? n : 0] = '\0';
    for (int i = 0; i < 2; i++) { /* /prefix/bin/xccl-info */
        char *slash = strrchr(self, '/');
        if (slash != NULL) {
            *slash = '\0';
        }
    }
    snprintf(prefix, len, "%s", self);
}

/* XCCL_INFO_FAMILIES is "openmpi 4.1.4;mpich 4.0.2;". */
static void find_families(struct info *info)
{
    const char *p = XCCL_INFO_FAMILIES;
    char        name[64];

    while ((*p != '\0') && (info->nmpi < INFO_MAX_FAMILIES)) {
        struct info_mpi *mpi = &info->mpi[info->nmpi++];
        if (sscanf(p, "%15[^ ] %31[^;];", mpi->family, mpi->built_with) != 2) {
            info->nmpi--;
            return;
        }
        snprintf(name, sizeof(name), "xccl/libxccl-mpi-%s.so", mpi->family);
        find_in_lib(info->prefix, name, mpi->interposer, sizeof(mpi->interposer));
        snprintf(name, sizeof(name), "xccl/xccl-perf-%s", mpi->family);
        find_in_lib(info->prefix, name, mpi->perf, sizeof(mpi->perf));
        p += strcspn(p, ";");
        p += (*p == ';');
    }
}

/* As the interposer looks for them: the search path, then beside itself. */
void info_find_kernels(const struct info *info, struct info_runtime *runtime)
{
    const char      *kind = (strcmp(runtime->name, "rocm") == 0) ? "hip" : runtime->name;
    char             name[64], file[80];
    struct link_map *map = NULL;

    snprintf(name, sizeof(name), "libxccl-direct-%s.so", kind);
    snprintf(file, sizeof(file), "xccl/%s", name);
    void *lib = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if ((lib != NULL) && (dlinfo(lib, RTLD_DI_LINKMAP, &map) == 0) && (map != NULL)) {
        snprintf(runtime->kernels, sizeof(runtime->kernels), "%s", map->l_name);
    } else {
        find_in_lib(info->prefix, file, runtime->kernels, sizeof(runtime->kernels));
        lib =
            (runtime->kernels[0] != '\0') ? dlopen(runtime->kernels, RTLD_LAZY | RTLD_LOCAL) : NULL;
    }
    const struct xk_image *image = (lib != NULL) ? dlsym(lib, XK_IMAGE_SYMBOL) : NULL;
    if (runtime->kernels[0] == '\0') {
        snprintf(runtime->kernels_why, sizeof(runtime->kernels_why), "%s is not installed", name);
    } else if ((image == NULL) || (image->version != XK_VERSION)) {
        snprintf(runtime->kernels_why, sizeof(runtime->kernels_why),
                 "%s is of another version of xccl", name);
        runtime->kernels[0] = '\0';
    }
}

const char *const info_flavours[] = {"cuda", "rocm", "msccl", "mscclpp", "oneccl", "hpu", NULL};
_Static_assert(sizeof(info_flavours) / sizeof(info_flavours[0]) <= INFO_MAX_SIMS, "room for all");

/* A folder each. */
static void find_simulated(struct info *info)
{
    char name[64];

    for (size_t i = 0; info_flavours[i] != NULL; i++) {
        snprintf(name, sizeof(name), "xccl/sim/%s", info_flavours[i]);
        find_in_lib(info->prefix, name, info->sim[i], sizeof(info->sim[i]));
    }
}

void info_collect_install(struct info *info)
{
    find_prefix(info->prefix, sizeof(info->prefix));
    find_in_lib(info->prefix, "libxccl.so.[0-9]", info->libxccl, sizeof(info->libxccl));
    find_in_lib(info->prefix, "libxccl-mpi.so", info->preload, sizeof(info->preload));
    find_simulated(info);
    find_families(info);
}
