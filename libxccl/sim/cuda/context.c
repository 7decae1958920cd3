/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts: primary ones, the program's own, and the calling thread's stack. */
#include "core/graph.h"
#include "cuda/driver.h"

int cuDevicePrimaryCtxRetain(CUcontext *ctx, int device)
{
    CU_NEED_INIT;
    return (ctx == NULL) ? XS_INVALID_VALUE : (int)xs_primary_retain(device, ctx);
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    CU_NEED_INIT;
    return (int)xs_primary_release(device);
}

int cuDevicePrimaryCtxRelease(int device)
{
    return cuDevicePrimaryCtxRelease_v2(device);
}

int cuDevicePrimaryCtxReset_v2(int device)
{
    CU_NEED_INIT;
    return (int)xs_primary_reset(device);
}

int cuDevicePrimaryCtxReset(int device)
{
    return cuDevicePrimaryCtxReset_v2(device);
}

int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
    CU_NEED_INIT;
    return (int)xs_primary_flags(device, flags);
}

int cuDevicePrimaryCtxSetFlags(int device, unsigned flags)
{
    return cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    CU_NEED_INIT;
    if ((flags == NULL) || (active == NULL)) {
        return XS_INVALID_VALUE;
    }
    return (int)xs_primary_state(device, flags, active);
}

int cuCtxCreate_v2(CUcontext *ctx, unsigned flags, int device)
{
    CU_NEED_INIT;
    return (ctx == NULL) ? XS_INVALID_VALUE : (int)xs_ctx_create(device, flags, ctx);
}

int cuCtxCreate_v3(CUcontext *ctx, void *affinity, int count, unsigned flags, int device)
{
    (void)affinity;
    return (count != 0) ? XS_NOT_SUPPORTED : cuCtxCreate_v2(ctx, flags, device);
}

int cuCtxCreate_v4(CUcontext *ctx, void *params, unsigned flags, int device)
{
    return (params != NULL) ? XS_NOT_SUPPORTED : cuCtxCreate_v2(ctx, flags, device);
}

int cuCtxDestroy_v2(CUcontext ctx)
{
    CU_NEED_INIT;
    return (int)xs_ctx_destroy(ctx);
}

int cuCtxPushCurrent_v2(CUcontext ctx)
{
    CU_NEED_INIT;
    return (int)xs_ctx_push(ctx);
}

int cuCtxPopCurrent_v2(CUcontext *ctx)
{
    CU_NEED_INIT;
    return (int)xs_ctx_pop(ctx);
}

int cuCtxSetCurrent(CUcontext ctx)
{
    CU_NEED_INIT;
    return (int)xs_ctx_set(ctx);
}

int cuCtxGetCurrent(CUcontext *ctx)
{
    CU_NEED_INIT;
    if (ctx == NULL) {
        return XS_INVALID_VALUE;
    }
    *ctx = xs_ctx_current();
    return XS_OK;
}

int cuCtxGetDevice(int *device)
{
    CU_NEED_CTX(ctx);
    if (device == NULL) {
        return XS_INVALID_VALUE;
    }
    *device = ctx->device;
    return XS_OK;
}

int cuCtxGetFlags(unsigned *flags)
{
    CU_NEED_CTX(ctx);
    if (flags == NULL) {
        return XS_INVALID_VALUE;
    }
    *flags = ctx->flags;
    return XS_OK;
}

int cuCtxGetId(CUcontext ctx, unsigned long long *id)
{
    CU_NEED_INIT;
    if (ctx == NULL) {
        ctx = xs_ctx_current();
    }
    if (!xs_ctx_valid(ctx)) {
        return ((ctx != NULL) && xs_ctx_known(ctx)) ? XS_CONTEXT_IS_DESTROYED : XS_INVALID_CONTEXT;
    }
    if (id == NULL) {
        return XS_INVALID_VALUE;
    }
    *id = ctx->id;
    return XS_OK;
}

int cuCtxGetApiVersion(CUcontext ctx, unsigned *version)
{
    CU_NEED_INIT;
    if ((ctx != NULL) && !xs_ctx_valid(ctx)) {
        return XS_INVALID_CONTEXT;
    }
    if (version == NULL) {
        return XS_INVALID_VALUE;
    }
    *version = 3020;
    return XS_OK;
}

int cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    CU_NEED_CTX(ctx);
    if (least != NULL) {
        *least = 0;
    }
    if (greatest != NULL) {
        *greatest = -5;
    }
    return XS_OK;
}

int cuCtxSynchronize(void)
{
    CU_NEED_CTX(ctx);
    enum xs_error res = xs_capture_guard_ctx(ctx);
    if (res == XS_OK) {
        res = xs_crashed();
    }
    return (int)((res == XS_OK) ? xs_ctx_sync(ctx) : res);
}

int cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    CU_NEED_CTX(ctx);
    if (flags != 0) {
        return XS_INVALID_VALUE;
    }
    return !xs_ctx_valid(peer) ? XS_INVALID_CONTEXT : (int)xs_peer_enable(ctx, peer->device, true);
}

int cuCtxDisablePeerAccess(CUcontext peer)
{
    CU_NEED_CTX(ctx);
    return !xs_ctx_valid(peer) ? XS_INVALID_CONTEXT : (int)xs_peer_enable(ctx, peer->device, false);
}
