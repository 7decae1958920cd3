/* SPDX-License-Identifier: BSD-3-Clause */
/* Looking functions up by name and version, and the refusal of all that needs kernels. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "cuda/driver.h"

enum { FOUND = 0, SYMBOL_NOT_FOUND = 1, VERSION_NOT_SUFFICIENT = 2 };

static void *this_library(void)
{
    static void *library;
    Dl_info      info;
    void        *seen = __atomic_load_n(&library, __ATOMIC_ACQUIRE);

    if ((seen == NULL) && (dladdr((const void *)cuInit, &info) != 0)) {
        seen = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        __atomic_store_n(&library, seen, __ATOMIC_RELEASE);
    }
    return seen;
}

/* Functions whose arguments differ between versions; all others: the newest serves everyone. */
static const char *pinned(const char *symbol, int version)
{
    if (strcmp(symbol, "cuCtxCreate") == 0) {
        return (version >= 12050) ? "cuCtxCreate_v4"
                                  : ((version >= 11040) ? "cuCtxCreate_v3" : "cuCtxCreate_v2");
    }
    if (strcmp(symbol, "cuGetProcAddress") == 0) {
        return (version >= 12000) ? "cuGetProcAddress_v2" : "cuGetProcAddress";
    }
    return NULL;
}

static void *look_up(const char *symbol, int version)
{
    static const char *const suffixes[] = {"_v4", "_v3", "_v2", ""};
    const char              *exact = pinned(symbol, version);
    char                     name[128];
    void                    *found = NULL;

    if (exact != NULL) {
        return dlsym(this_library(), exact);
    }
    for (size_t i = 0; (i < sizeof(suffixes) / sizeof(suffixes[0])) && (found == NULL); i++) {
        snprintf(name, sizeof(name), "%s%s", symbol, suffixes[i]);
        found = dlsym(this_library(), name);
    }
    return found;
}

int cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags, int *status)
{
    if ((symbol == NULL) || (fn == NULL) || (flags > 2)) {
        return XS_INVALID_VALUE;
    }
    *fn = look_up(symbol, version);
    if (status != NULL) {
        *status = (*fn == NULL) ? SYMBOL_NOT_FOUND : FOUND;
    }
    return (*fn == NULL) ? XS_NOT_FOUND : XS_OK;
}

int cuGetProcAddress(const char *symbol, void **fn, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(symbol, fn, version, flags, NULL);
}
