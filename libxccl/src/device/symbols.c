/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/symbols.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

static int read_adds(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    *(unsigned long long *)arg = info->dlpi_adds;
    return 1; /* the first object is enough: the count is the process's */
}

unsigned long long xc_symbols_generation(void)
{
    unsigned long long adds = 0;

    dl_iterate_phdr(read_adds, &adds);
    return adds;
}

bool xc_symbols_open(const char *const *sonames, bool only_loaded, const struct xc_symbol *symbols,
                     size_t count, void *table, const char **missing_p)
{
    int flags = RTLD_LAZY | RTLD_LOCAL | (only_loaded ? RTLD_NOLOAD : 0);

    *missing_p = NULL;
    for (; *sonames != NULL; sonames++) {
        void *handle = dlopen(*sonames, flags);
        if (handle == NULL) {
            continue;
        }
        for (size_t i = 0; i < count; i++) {
            void *address = dlsym(handle, symbols[i].name);
            if (address == NULL) {
                *missing_p = symbols[i].name;
                dlclose(handle);
                return false;
            }
            memcpy((char *)table + symbols[i].offset, &address, sizeof(address));
        }
        return true;
    }
    return false;
}
