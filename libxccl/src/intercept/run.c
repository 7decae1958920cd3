/* SPDX-License-Identifier: BSD-3-Clause */
#include "intercept/run.h"

#include <stdio.h>

#include "base/log.h"
#include "intercept/complete.h"
#include "intercept/ports.h"

static xcclResult_t run_on_device(struct xm_run *run)
{
    struct xm_comm *xm = run->xm;
    xcclResult_t    res = xcclSuccess;

    if (xm->stream == NULL) {
        res = xm->dev->stream_create(&xm->stream);
    }
    run->copier.stream = xm->stream;
    if (res == xcclSuccess) {
        res = xm->dev->stream_after_default(xm->stream);
    }
    if (res == xcclSuccess) {
        res = xm_ports_open(run);
    }
    if (res == xcclSuccess) {
        res = xm_enqueue(run);
    }
    if (res == xcclSuccess) {
        res = xm_complete(xm->dev, xm->stream, xm->xcomm);
    }
    if ((res == xcclSuccess) && run->recv.packed) {
        res = xm_ports_close(run);
        if (res == xcclSuccess) {
            res = xm_complete(xm->dev, xm->stream, xm->xcomm);
        }
    }
    return res;
}

xcclResult_t xm_run_ccl(const struct xm_sides *sides, const struct xm_view *view,
                        struct xm_comm *xm)
{
    struct xm_run run = {.call = sides->call, .sides = sides, .view = view, .xm = xm};
    void         *saved;
    char          detail[512];

    xm_comm_begin(xm, xm_coll_name(sides->call->coll), view->facts.bytes);
    xcclResult_t res = xm->dev->enter(xm->device, &saved);
    if (res == xcclSuccess) {
        xm_scratch_begin(&run.scratch, xm->dev, xm->device);
        run.copier = (struct xm_copier){sides->call, xm->dev, NULL, &run.scratch};
        res = run_on_device(&run);
        xm_ports_free(&run);
        if (res == xcclSuccess) {
            xm_scratch_end(&run.scratch);
        } /* else the device may still be using it: lost rather than reused */
        xm->dev->leave(saved);
    }
    if (res == xcclSuccess) {
        xm_comm_end(xm);
        return res;
    }
    snprintf(detail, sizeof(detail), "%s", xc_last_detail());
    xm_comm_break(xm, detail);
    return xc_fail(res, "%s", detail);
}
