/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices and contexts: primary ones, the program's own, and each thread's stack of current ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

#define CTX_MAGIC 0x58435458U
#define STACK_DEPTH 64

static struct xs_ctx   primaries[XS_MAX_DEVICES];
static struct xs_ctx  *created; /* the program's own; a destroyed one stays, for checks */
static uint64_t        next_id = 1;
static bool            initialised;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static __thread struct xs_ctx *stack[STACK_DEPTH];
static __thread int            depth;

enum xs_error xs_init(enum xs_flavour flavour)
{
    static bool             told;
    const struct xs_config *config = xs_config();

    if (xs_config_error() != NULL) {
        return XS_SYSTEM_NOT_READY;
    }
    if ((config->flavour != flavour) || (config->devices == 0)) {
        if ((config->flavour == XS_NONE) && !__atomic_exchange_n(&told, true, __ATOMIC_RELAXED)) {
            fprintf(stderr, "xccl simulation: XCCL_SIM is not set: no device is offered; "
                            "use xccl-run --sim cuda:4, or set XCCL_SIM=cuda:4\n");
        }
        return XS_NO_DEVICE;
    }
    __atomic_store_n(&initialised, true, __ATOMIC_RELEASE);
    return XS_OK;
}

bool xs_initialised(void)
{
    return __atomic_load_n(&initialised, __ATOMIC_ACQUIRE);
}

static void ctx_open(struct xs_ctx *ctx, int device)
{
    memset(ctx, 0, sizeof(*ctx));
    ctx->device = device;
    ctx->id = next_id++;
    pthread_mutex_init(&ctx->order, NULL);
    ctx->magic = CTX_MAGIC;
}

static bool bad_device(int device)
{
    return (device < 0) || (device >= xs_config()->devices);
}

/* Waits for the work, then frees what the context had. */
static void ctx_close(struct xs_ctx *ctx)
{
    xs_ctx_sync(ctx);
    while (ctx->streams != NULL) {
        xs_stream_orphan(ctx->streams);
    }
    xs_events_orphan(ctx);
    xs_mem_free_all(ctx);
    ctx->legacy = NULL;
    ctx->shared = NULL;
    ctx->magic = 0;
}

enum xs_error xs_primary_retain(int device, struct xs_ctx **ctx_p)
{
    if (bad_device(device)) {
        return XS_INVALID_DEVICE;
    }
    pthread_mutex_lock(&lock);
    struct xs_ctx *ctx = &primaries[device];
    if (ctx->magic != CTX_MAGIC) {
        unsigned flags = ctx->flags;

        ctx_open(ctx, device);
        ctx->primary = true;
        ctx->flags = flags;
    }
    ctx->users++;
    pthread_mutex_unlock(&lock);
    *ctx_p = ctx;
    return XS_OK;
}

enum xs_error xs_primary_release(int device)
{
    enum xs_error res = XS_OK;

    if (bad_device(device)) {
        return XS_INVALID_DEVICE;
    }
    pthread_mutex_lock(&lock);
    struct xs_ctx *ctx = &primaries[device];
    if ((ctx->magic != CTX_MAGIC) || (ctx->users == 0)) {
        res = XS_INVALID_CONTEXT;
    } else if (--ctx->users == 0) {
        ctx_close(ctx);
    }
    pthread_mutex_unlock(&lock);
    return res;
}

enum xs_error xs_primary_reset(int device)
{
    if (bad_device(device)) {
        return XS_INVALID_DEVICE;
    }
    pthread_mutex_lock(&lock);
    struct xs_ctx *ctx = &primaries[device];
    if (ctx->magic == CTX_MAGIC) {
        ctx_close(ctx);
        ctx->users = 0;
    }
    pthread_mutex_unlock(&lock);
    return XS_OK;
}

enum xs_error xs_primary_state(int device, unsigned *flags_p, int *active_p)
{
    if (bad_device(device)) {
        return XS_INVALID_DEVICE;
    }
    pthread_mutex_lock(&lock);
    *flags_p = primaries[device].flags;
    *active_p = (primaries[device].magic == CTX_MAGIC);
    pthread_mutex_unlock(&lock);
    return XS_OK;
}

enum xs_error xs_primary_flags(int device, unsigned flags)
{
    if (bad_device(device)) {
        return XS_INVALID_DEVICE;
    }
    primaries[device].flags = flags;
    return XS_OK;
}

enum xs_error xs_ctx_create(int device, unsigned flags, struct xs_ctx **ctx_p)
{
    if (bad_device(device)) {
        return XS_INVALID_DEVICE;
    }
    struct xs_ctx *ctx = malloc(sizeof(*ctx));
    if (ctx == NULL) {
        return XS_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&lock);
    ctx_open(ctx, device);
    ctx->flags = flags;
    ctx->next = created;
    created = ctx;
    pthread_mutex_unlock(&lock);
    *ctx_p = ctx;
    return xs_ctx_push(ctx);
}

enum xs_error xs_ctx_destroy(struct xs_ctx *ctx)
{
    if (!xs_ctx_valid(ctx) || ctx->primary) {
        return XS_INVALID_CONTEXT;
    }
    if ((depth > 0) && (stack[depth - 1] == ctx)) {
        depth--;
    }
    pthread_mutex_lock(&lock);
    ctx_close(ctx);
    pthread_mutex_unlock(&lock);
    return XS_OK;
}

bool xs_ctx_valid(const struct xs_ctx *ctx)
{
    bool known = (ctx >= primaries) && (ctx < primaries + XS_MAX_DEVICES);

    pthread_mutex_lock(&lock);
    for (const struct xs_ctx *c = created; !known && (c != NULL); c = c->next) {
        known = (c == ctx);
    }
    known = known && (ctx->magic == CTX_MAGIC);
    pthread_mutex_unlock(&lock);
    return known;
}

enum xs_error xs_orphan_used(const struct xs_ctx *ctx, const char *what)
{
    if ((xs_config()->flavour == XS_CUDA) && xs_ctx_valid(ctx)) {
        fprintf(stderr,
                "simulated accelerator: %s of before a reset is used after it: a segmentation "
                "fault\n",
                what);
        abort();
    }
    return XS_CONTEXT_IS_DESTROYED;
}

struct xs_ctx *xs_ctx_current(void)
{
    return (depth > 0) ? stack[depth - 1] : NULL;
}

bool xs_ctx_known(const struct xs_ctx *ctx)
{
    return ((ctx >= primaries) && (ctx < primaries + XS_MAX_DEVICES) && (ctx->id != 0)) ||
           xs_ctx_valid(ctx);
}

enum xs_error xs_ctx_push(struct xs_ctx *ctx)
{
    if (!xs_ctx_known(ctx)) {
        return XS_INVALID_CONTEXT;
    }
    if (depth == STACK_DEPTH) {
        return XS_OUT_OF_MEMORY;
    }
    stack[depth++] = ctx;
    return XS_OK;
}

enum xs_error xs_ctx_pop(struct xs_ctx **ctx_p)
{
    if (depth == 0) {
        return XS_INVALID_CONTEXT;
    }
    depth--;
    if (ctx_p != NULL) {
        *ctx_p = stack[depth];
    }
    return XS_OK;
}

enum xs_error xs_ctx_set(struct xs_ctx *ctx)
{
    if ((ctx != NULL) && !xs_ctx_known(ctx)) {
        return XS_INVALID_CONTEXT;
    }
    if (depth > 0) {
        depth--;
    }
    return (ctx == NULL) ? XS_OK : xs_ctx_push(ctx);
}

enum xs_error xs_init_implicit(void)
{
    struct xs_ctx *ctx;
    enum xs_error  res = xs_initialised() ? XS_OK : xs_init(XS_ROCM);

    if ((res != XS_OK) || (depth > 0)) {
        return res;
    }
    res = xs_primary_retain(0, &ctx);
    return (res == XS_OK) ? xs_ctx_push(ctx) : res;
}

enum xs_error xs_peer_enable(struct xs_ctx *ctx, int device, bool enable)
{
    if (bad_device(device) || (device == ctx->device)) {
        return XS_INVALID_DEVICE;
    }
    uint64_t bit = (uint64_t)1 << device;
    if (xs_peer_enabled(ctx, device) == enable) {
        return enable ? XS_PEER_ACCESS_ALREADY_ENABLED : XS_PEER_ACCESS_NOT_ENABLED;
    }
    __atomic_fetch_xor(&ctx->peers, bit, __ATOMIC_ACQ_REL);
    return XS_OK;
}

bool xs_peer_enabled(const struct xs_ctx *ctx, int device)
{
    return (__atomic_load_n(&ctx->peers, __ATOMIC_ACQUIRE) >> device & 1) != 0;
}

void xs_device_uuid(int device, unsigned char uuid[16])
{
    const struct xs_config *config = xs_config();

    memcpy(uuid, (config->flavour == XS_CUDA) ? "xcclsim\xc0\xda" : "xcclsim\xa0\xd0", 9);
    memset(uuid + 9, 0, 3);
    uuid[12] = (unsigned char)(config->node >> 8);
    uuid[13] = (unsigned char)config->node;
    uuid[14] = 0;
    uuid[15] = (unsigned char)config->physical[device];
}

int xs_device_bus(int device)
{
    return 0x10 + 2 * xs_config()->physical[device];
}

void xs_device_bus_id(int device, char *buf, size_t len)
{
    snprintf(buf, len, "0000:%02x:00.0", xs_device_bus(device));
}

void xs_device_name(int device, char *buf, size_t len)
{
    (void)device;
    snprintf(buf, len, "Simulated %s accelerator",
             (xs_config()->flavour == XS_CUDA) ? "CUDA" : "ROCm");
}
