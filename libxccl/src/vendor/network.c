/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which network the vendor's library would use between nodes, without asking it: that takes a
 * communicator.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/environment.h"
#include "vendor/loader_cache.h"
#include "vendor/vendor.h"
#include "vendor/verbs.h"

/* Is the file in a folder where the loader looks? Loading a plugin would start its network. */
static bool on_search_path(const char *name)
{
    Dl_serinfo size, *info = NULL;
    void      *self = dlopen(NULL, RTLD_LAZY);
    bool       found = false;
    char       path[XC_PATH_MAX];

    if ((self != NULL) && (dlinfo(self, RTLD_DI_SERINFOSIZE, &size) == 0)) {
        info = malloc(size.dls_size);
    }
    if ((info != NULL) && (dlinfo(self, RTLD_DI_SERINFOSIZE, info) == 0) &&
        (dlinfo(self, RTLD_DI_SERINFO, info) == 0)) {
        for (unsigned i = 0; (i < info->dls_cnt) && !found; i++) {
            int n = snprintf(path, sizeof(path), "%s/%s", info->dls_serpath[i].dls_name, name);
            found = (n > 0) && (n < (int)sizeof(path)) && (access(path, R_OK) == 0);
        }
    }
    free(info);
    if (self != NULL) {
        dlclose(self);
    }
    return found;
}

static bool has_library(const char *name)
{
    void *loaded = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);

    if (loaded != NULL) {
        dlclose(loaded);
        return true;
    }
    if (strchr(name, '/') != NULL) {
        return access(name, R_OK) == 0;
    }
    return on_search_path(name) || xc_loader_cache_has(XC_LOADER_CACHE, name);
}

static bool has_named(const char *name)
{
    char nccls[XC_NETWORK_VALUE + 32], rccls[XC_NETWORK_VALUE + 32];

    snprintf(nccls, sizeof(nccls), "libnccl-net-%s.so", name);
    snprintf(rccls, sizeof(rccls), "librccl-net-%s.so", name);
    return has_library(name) || has_library(nccls) || has_library(rccls);
}

/*
 * As the NCCL user guide describes NCCL_NET_PLUGIN: a library or what its name ends with, or
 * "none". From 2.27 on it is a list, of which the first one that works is taken; the usual plugin
 * stands for none of them (initPluginLibsOnceFunc() and openPluginLib() of NCCL 2.27 to 2.30).
 */
bool xc_vendor_has_plugin(const char *wanted)
{
    char names[XC_NETWORK_VALUE], *rest = names, *name;
    bool found = false;

    if (wanted[0] == '\0') {
        return has_library("libnccl-net.so") || has_library("librccl-net.so");
    }
    if (strcasecmp(wanted, "none") == 0) {
        return false;
    }
    snprintf(names, sizeof(names), "%s", wanted);
    while (!found && ((name = strsep(&rest, ",")) != NULL)) {
        found = (*name != '\0') && has_named(name);
    }
    return found;
}

static bool           fabric;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void look(void)
{
    struct xc_network_variables v;

    xc_network_variables_get(&v);
    if (strcasecmp(v.net, "Socket") == 0) {
        return;
    }
    fabric =
        (!v.no_verbs && xc_verbs_usable(XC_VERBS_FOLDER, v.hca)) || xc_vendor_has_plugin(v.plugin);
}

bool xc_vendor_fabric(void)
{
    pthread_once(&once, look);
    return fabric;
}
