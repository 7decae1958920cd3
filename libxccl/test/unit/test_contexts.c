/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts of the program's own, on simulated devices: what it has given to their default streams
 * is waited for, also where a device was entered within another one.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <unistd.h>

#include "check.h"
#include "device/runtimes.h"

static int held; /* atomic */

static void wait_until_let_go(void *arg)
{
    (void)arg;
    while (__atomic_load_n(&held, __ATOMIC_ACQUIRE)) {
        usleep(1000);
    }
}

/* The program's context is current, and its default stream has work. */
static bool give_work(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*create)(void **, unsigned, int);
    int (*launch)(void *, void (*)(void *), void *);
    void *own;

    *(void **)&create = dlsym(driver, "cuCtxCreate_v2");
    *(void **)&launch = dlsym(driver, "cuLaunchHostFunc");
    held = 1;
    return (create(&own, 0, 0) == 0) && (launch(NULL, wait_until_let_go, NULL) == 0);
}

static void test_nested(const struct xc_device_ops *dev)
{
    void        *outer, *inner;
    xcclStream_t stream;

    CHECK(give_work(), "work of the program's");
    CHECK(dev->enter(0, &outer) == xcclSuccess, "device 0");
    CHECK(dev->enter(1, &inner) == xcclSuccess, "device 1 within");
    dev->leave(inner);
    CHECK(dev->stream_create(&stream) == xcclSuccess, "a stream");
    CHECK(dev->stream_after_default(stream) == xcclSuccess, "after the default streams");
    CHECK(dev->stream_query(stream) == xcclInProgress, "it does not wait for the program's");
    __atomic_store_n(&held, 0, __ATOMIC_RELEASE);
    CHECK(dev->stream_sync(stream) == xcclSuccess, "the stream");
    dev->stream_destroy(stream);
    dev->leave(outer);
}

int main(void)
{
    if (xc_cuda_start() != xcclSuccess) {
        fprintf(stderr, "no simulated device: %s\n", xc_last_detail());
        return 1;
    }
    test_nested(&xc_cuda_ops);
    return xt_done("contexts");
}
