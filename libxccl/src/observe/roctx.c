/* SPDX-License-Identifier: BSD-3-Clause */
/* roctx: the library that an attached profiler has loaded, else the one on the search path. */
#include <dlfcn.h>
#include <string.h>

#include "base/environment.h"
#include "base/log.h"
#include "observe/ranges.h"

static int (*push)(const char *message);
static int (*pop)(void);

static bool take_functions(void *handle)
{
    void *push_address = dlsym(handle, "roctxRangePushA");
    void *pop_address = dlsym(handle, "roctxRangePop");

    if ((push_address == NULL) || (pop_address == NULL)) {
        return false;
    }
    memcpy(&push, &push_address, sizeof(push));
    memcpy(&pop, &pop_address, sizeof(pop));
    return true;
}

bool xm_roctx_open(void)
{
    /* The newer one first: rocprofv3 reads both, rocprof and rocprofv2 the other. */
    static const char *const names[] = {"librocprofiler-sdk-roctx.so.1",
                                        "librocprofiler-sdk-roctx.so.0", "libroctx64.so.4"};

    /* A program may be linked with it although nobody listens. */
    if (!xc_rocm_profiler()) {
        return false;
    }
    if (take_functions(RTLD_DEFAULT)) {
        return true;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        void *handle = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL); /* it stays */
        if ((handle != NULL) && take_functions(handle)) {
            return true;
        }
    }
    xc_info("no roctx ranges: neither librocprofiler-sdk-roctx.so nor libroctx64.so is on the "
            "search path");
    return false;
}

void xm_roctx_push(const char *name)
{
    push(name);
}

void xm_roctx_pop(void)
{
    pop();
}
