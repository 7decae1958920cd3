/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Kernels are loaded in two parts (data/kernels.c): what copies know is not touched while those for
 * collectives come, and each part fails by itself. The plugin is the simulation's; its images are
 * not run here.
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "comms/wait.h"
#include "data/kernel_state.h"
#include "data/mappings.h"

enum { DEVICE = 3, BYTES = 64 };

static const char    *names[64]; /* of the functions asked for; a function is its place */
static int            count_names;
static int            modules, ended;
static bool           hold_jobs, no_collectives;
static unsigned       resets_now;
static struct xm_job *held;

/* ---- what kernels.c calls ---- */

xcclResult_t xm_worker_start(struct xm_job *job)
{
    if (hold_jobs) {
        held = job;
    } else {
        job->run(job);
    }
    return xcclSuccess;
}

uint64_t xm_now_ns(void)
{
    return 0;
}

void xm_mappings_hold(void)
{
}

void xm_mappings_let_go(void)
{
}

xcclResult_t xm_lingering_init(struct xm_lingering *l, const struct xc_device_ops *dev,
                               void *function, struct xm_post *post, struct xk_relay *relay,
                               unsigned few, unsigned many, uint32_t most)
{
    (void)l, (void)dev, (void)function, (void)post, (void)relay;
    CHECK((few >= 1) && (many >= few) && (most > 0), "%u to %u blocks", few, many);
    return xcclSuccess;
}

xcclResult_t xm_linger_once(struct xm_lingering *l)
{
    (void)l;
    return xcclSuccess;
}

bool xm_linger_copy(struct xm_lingering *l, enum xm_quick way, void *to, const void *from,
                    uint32_t bytes)
{
    (void)l, (void)way, (void)to, (void)from, (void)bytes;
    return false;
}

bool xm_linger_copies(struct xm_lingering *l, const struct xk_copy *copies, unsigned count)
{
    (void)l, (void)copies, (void)count;
    return false;
}

bool xm_linger_pack(struct xm_lingering *l, const struct xk_pack *what, bool elsewhere)
{
    (void)l, (void)what, (void)elsewhere;
    return false;
}

bool xm_linger_pack_listed(struct xm_lingering *l, const struct xk_listed *what, bool elsewhere)
{
    (void)l, (void)what, (void)elsewhere;
    return false;
}

bool xm_linger_is_there(struct xm_lingering *l)
{
    (void)l;
    return false;
}

void xm_lingering_end(struct xm_lingering *l)
{
    (void)l;
    ended++;
}

/* ---- the device ---- */

static xcclResult_t enter(int device, void **saved_p)
{
    CHECK(device == DEVICE, "device %d", device);
    *saved_p = NULL;
    return xcclSuccess;
}

static void leave(void *saved)
{
    (void)saved;
}

static unsigned resets(int device, bool look)
{
    (void)device, (void)look;
    return resets_now;
}

static xcclResult_t module_load(void **module_p, const void *image)
{
    CHECK(image != NULL, "no image");
    *module_p = &modules;
    return (++modules == 2) && no_collectives ? xcclSystemError : xcclSuccess;
}

static xcclResult_t module_function(void **function_p, void *module, const char *name)
{
    (void)module;
    names[count_names] = name;
    *function_p = &names[count_names++];
    return xcclSuccess;
}

static bool is(void *function, const char *name)
{
    return strcmp(*(const char **)function, name) == 0;
}

/* As the kernels tell their end. */
static xcclResult_t launch(void *function, const unsigned grid[2], unsigned threads,
                           const void *what, xcclStream_t stream)
{
    const struct xk_batch *copies = what;

    (void)threads, (void)stream;
    for (unsigned i = 0; is(function, "xk_batch") && (i < grid[1]); i++) {
        *copies->copy[i].done = copies->copy[i].value;
    }
    if (is(function, "xk_exchange") || is(function, "xk_short")) {
        *((const struct xk_exchange *)what)->done = ((const struct xk_exchange *)what)->number;
    } else if (is(function, "xk_mapped")) {
        *((const struct xk_mapped *)what)->done = ((const struct xk_mapped *)what)->work.number;
    } else if (is(function, "xk_rounds")) {
        const struct xk_rounds *a = what;
        *a->done = a->number + a->rounds - 1;
    }
    return xcclSuccess;
}

static xcclResult_t make_stream(xcclStream_t *stream_p)
{
    *stream_p = NULL;
    return xcclSuccess;
}

static xcclResult_t ask(xcclStream_t stream)
{
    (void)stream;
    return xcclSuccess;
}

static xcclResult_t allocate(void **ptr_p, size_t bytes)
{
    *ptr_p = calloc(1, bytes);
    return xcclSuccess;
}

static xcclResult_t release(void *ptr)
{
    free(ptr);
    return xcclSuccess;
}

static xcclResult_t set(void *ptr, int byte, size_t bytes, xcclStream_t stream)
{
    (void)stream;
    memset(ptr, byte, bytes);
    return xcclSuccess;
}

static xcclResult_t multiprocessors(int device, int *count_p)
{
    (void)device;
    *count_p = 132;
    return xcclSuccess;
}

static const struct xc_device_ops dev = {.name = "cuda",
                                         .enter = enter,
                                         .leave = leave,
                                         .resets = resets,
                                         .module_load = module_load,
                                         .module_function = module_function,
                                         .launch = launch,
                                         .stream_create_urgent = make_stream,
                                         .stream_sync = ask,
                                         .stream_query = ask,
                                         .stream_destroy = ask,
                                         .host_alloc = allocate,
                                         .host_free = release,
                                         .mem_alloc = allocate,
                                         .mem_free = release,
                                         .set_async = set,
                                         .multiprocessors_of = multiprocessors};

static bool asked_for(const char *name)
{
    bool found = false;

    for (int i = 0; i < count_names; i++) {
        found = found || (strcmp(names[i], name) == 0);
    }
    return found;
}

/* A copy that is over, and that nobody has asked about, while the other kernels come. */
static void test_copy_meanwhile(void)
{
    char                  from[BYTES] = {0}, to[BYTES];
    struct xm_kernel_copy copy;

    CHECK(xm_kernels_of(&dev, DEVICE) == NULL, "they were not loaded before");
    struct xm_kernels *k = xm_kernels_of(&dev, DEVICE);
    CHECK((k != NULL) && asked_for("xk_linger") && !asked_for("xk_attend"), "those for copies");
    CHECK(xm_kernel_copy_start(k, to, from, BYTES, &copy) && (copy.slot == 0), "a copy");
    CHECK(xm_collective_kernels_of(&dev, DEVICE) == NULL, "the others were not loaded before");
    CHECK((xm_collective_kernels_of(&dev, DEVICE) == k) && asked_for("xk_attend"), "the others");
    CHECK(!xm_collective_kernels_failed(&dev, DEVICE), "nothing failed");
    CHECK(xm_kernel_copy_query(&copy) == xcclSuccess, "the copy has ended");
    CHECK(modules == 2, "%d images", modules);
    xm_kernels_finalize();
    CHECK(ended == 2, "%d kernels that linger have ended", ended);
}

/* The copies stay, and are ended; a reset while the others come is noticed. */
static void test_failures(void)
{
    resets_now = 1;
    modules = ended = 0;
    no_collectives = true;
    (void)xm_kernels_of(&dev, DEVICE);
    CHECK(xm_kernels_of(&dev, DEVICE) != NULL, "those for copies after a reset");
    (void)xm_collective_kernels_of(&dev, DEVICE);
    CHECK((xm_collective_kernels_of(&dev, DEVICE) == NULL) &&
              xm_collective_kernels_failed(&dev, DEVICE),
          "those for collectives cannot be loaded");
    CHECK((xm_kernels_of(&dev, DEVICE) != NULL) && !xm_kernels_failed(&dev, DEVICE), "copies");
    xm_kernels_finalize();
    CHECK(ended == 1, "%d kernels that linger have ended", ended);

    resets_now = 2;
    no_collectives = false;
    (void)xm_kernels_of(&dev, DEVICE);
    hold_jobs = true;
    (void)xm_collective_kernels_of(&dev, DEVICE);
    ended = modules = 0;
    xm_kernels_finalize();
    CHECK(ended == 0, "what is being loaded is left alone");
    resets_now = 3;
    held->run(held);
    CHECK(modules == 0, "nothing is loaded into a device that was reset");
}

int main(void)
{
    test_copy_meanwhile();
    test_failures();
    return xt_done("kernels in two parts");
}
