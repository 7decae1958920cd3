/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/symbols.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "base/environment.h"
#include "base/log.h"

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

/* The simulation was asked for, but what the loader finds first may be the real library. */
static void expect_simulation(void *handle, const char *soname)
{
    static const char *const simulated[][2] = {{"cuda:", "libcuda."},
                                               {"msccl:", "libcuda."},
                                               {"mscclpp:", "libcuda."},
                                               {"rocm:", "libamdhip64."},
                                               {"hpu:", "libSynapse."}};
    const char              *sim = xc_foreign_variable("XCCL_SIM");
    const struct link_map   *map = NULL;

    if ((sim == NULL) || (dlsym(handle, "xs_call") != NULL) ||
        (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)) {
        return;
    }
    for (size_t i = 0; i < sizeof(simulated) / sizeof(simulated[0]); i++) {
        if ((strncmp(sim, simulated[i][0], strlen(simulated[i][0])) == 0) &&
            (strncmp(soname, simulated[i][1], strlen(simulated[i][1])) == 0)) {
            xc_warn("XCCL_SIM=%s asks for simulated devices, but the program has loaded %s, which "
                    "is not simulated: xccl's folder lib/xccl/sim/%.*s must come first in the "
                    "ranks' LD_LIBRARY_PATH. Open MPI's mpirun, called by its full path, puts its "
                    "own folder first: call it by its name",
                    sim, map->l_name, (int)strcspn(sim, ":"), sim);
        }
    }
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
        expect_simulation(handle, *sonames);
        return true;
    }
    return false;
}
