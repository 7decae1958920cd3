/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a pool of HIP's, which other processes cannot map: the runtime is asked once. */
#include <dlfcn.h>

#include "check.h"
#include "device/runtimes.h"

static const struct xc_device_ops *dev;
static int (*alloc)(void **, size_t, void *);

static void *of_pool(void)
{
    void *ptr = NULL;

    CHECK(alloc(&ptr, 4096, NULL) == 0, "memory of a pool");
    return ptr;
}

static void refused(const void *ptr, const char *why)
{
    struct xc_ipc ipc;

    CHECK(dev->ipc_export(ptr, &ipc) != xcclSuccess, "memory of a pool was exported");
    CHECK_HAS(xc_last_detail(), why);
}

static void test_pools(void)
{
    const char *one = of_pool(), *other = of_pool();

    refused(one, "hipIpcGetMemHandle");
    refused(one, "before");
    refused(one + 100, "before");
    refused(other, "hipIpcGetMemHandle");
    refused(one, "before");
    refused(other, "before");
}

static void test_others(void)
{
    struct xc_ipc ipc;
    void         *plain;

    CHECK(dev->mem_alloc(&plain, 4096) == xcclSuccess, "device memory");
    for (int i = 0; i < 3; i++) {
        CHECK(dev->ipc_export(plain, &ipc) == xcclSuccess, "%s", xc_last_detail());
    }
}

int main(void)
{
    void *saved, *hip = dlopen("libamdhip64.so.6", RTLD_NOW);

    if (xc_hip_start() != xcclSuccess) {
        fprintf(stderr, "no simulated device: %s\n", xc_last_detail());
        return 1;
    }
    dev = &xc_hip_ops;
    *(void **)&alloc = dlsym(hip, "hipMallocAsync");
    CHECK(dev->enter(0, &saved) == xcclSuccess, "device 0");
    test_pools();
    test_others();
    return xt_done("hip pools");
}
