/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program resets a simulated device of AMD's: that is seen for as long as anything of ours is
 * there, whatever of ours was first and is gone.
 */
#include <dlfcn.h>

#include "check.h"
#include "device/runtimes.h"

static const struct xc_device_ops *dev;

static void reset(void)
{
    void *hip = dlopen("libamdhip64.so.6", RTLD_NOW);
    int (*finish)(void), (*reset_device)(void);

    *(void **)&finish = dlsym(hip, "hipDeviceSynchronize"); /* what is freed in a stream's order */
    *(void **)&reset_device = dlsym(hip, "hipDeviceReset");
    CHECK((finish != NULL) && (finish() == 0), "hipDeviceSynchronize");
    CHECK((reset_device != NULL) && (reset_device() == 0), "hipDeviceReset");
}

/* Streams of ours, of which those are destroyed whose bit is set. */
static void test_streams(unsigned destroyed)
{
    xcclStream_t streams[3];
    unsigned     before = dev->resets(0, true);

    for (int i = 0; i < 3; i++) {
        CHECK(((i == 1) ? dev->stream_create_urgent(&streams[i])
                        : dev->stream_create(&streams[i])) == xcclSuccess,
              "a stream");
    }
    for (int i = 0; i < 3; i++) {
        if ((destroyed & (1u << i)) != 0) {
            dev->stream_destroy(streams[i]);
        }
    }
    CHECK(dev->resets(0, true) == before, "no reset, %u", destroyed);
    reset();
    CHECK(dev->resets(0, false) == before, "not looked for yet");
    CHECK(dev->resets(0, true) == before + ((destroyed != 7) ? 1 : 0), "streams destroyed: %u",
          destroyed);
    CHECK(dev->resets(0, true) == dev->resets(0, false), "found once");
}

/* The same with memory, of the device and of the host. */
static void test_memory(bool first_is_freed)
{
    void    *device, *host;
    unsigned before = dev->resets(0, true);

    CHECK(dev->mem_alloc(&device, 4096) == xcclSuccess, "device memory");
    CHECK(dev->host_alloc(&host, 4096) == xcclSuccess, "host memory");
    if (first_is_freed) {
        dev->mem_free(device);
    } else {
        dev->host_free(host);
    }
    CHECK(dev->resets(0, true) == before, "no reset");
    reset();
    CHECK(dev->resets(0, true) == before + 1, "the %s was freed",
          first_is_freed ? "first" : "second");
}

int main(void)
{
    void *saved;

    if (xc_hip_start() != xcclSuccess) {
        fprintf(stderr, "no simulated device: %s\n", xc_last_detail());
        return 1;
    }
    dev = &xc_hip_ops;
    CHECK(dev->enter(0, &saved) == xcclSuccess, "device 0");
    for (unsigned destroyed = 0; destroyed < 8; destroyed++) {
        test_streams(destroyed);
    }
    test_memory(true);
    test_memory(false);
    return xt_done("hip resets");
}
