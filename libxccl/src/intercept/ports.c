/* SPDX-License-Identifier: BSD-3-Clause */
#include "intercept/ports.h"

#include <stdlib.h>

#include "base/log.h"

/* Can the vendor's library work on the side's memory as it is? */
static bool usable(const struct xm_run *run, const struct xm_side *side)
{
    return side->layout.plain &&
           ((side->mem.kind == XC_MEM_MANAGED) ||
            ((side->mem.kind == XC_MEM_DEVICE) && (side->mem.device == run->xm->device)));
}

static xcclResult_t make_vectors(const struct xm_run *run, struct xm_port *port)
{
    const struct xm_side *side = port->side;
    size_t                n = (size_t)side->blocks, at = 0;

    port->counts = malloc(2 * n * sizeof(*port->counts));
    if (port->counts == NULL) {
        return xc_fail(xcclSystemError, "out of memory for %zu blocks", n);
    }
    port->displs = port->counts + n;
    for (size_t i = 0; i < n; i++) {
        size_t bytes = (size_t)(xm_block_count(run->call, side, (int)i) * side->layout.size);
        port->counts[i] = bytes;
        port->displs[i] = port->packed ? at : (size_t)xm_block_offset(run->call, side, (int)i);
        if (bytes == 0) {
            port->displs[i] = 0; /* in MPI the offset of no data may be anything */
        }
        at += bytes;
    }
    return xcclSuccess;
}

static xcclResult_t open_port(struct xm_run *run, struct xm_port *port, const struct xm_side *side)
{
    void        *packed;
    xcclResult_t res = xcclSuccess;

    port->side = side;
    port->ptr = side->buf;
    if (side->used && !usable(run, side)) {
        port->packed = true;
        res = xm_scratch_take(&run->scratch, XM_POOL_DEVICE, (size_t)side->bytes, &packed);
        if (res != xcclSuccess) {
            return res;
        }
        port->ptr = packed;
        if (side->in) {
            res = xm_pack(&run->copier, side, packed);
        }
    }
    if ((res == xcclSuccess) && (side->displs != NULL)) {
        res = make_vectors(run, port);
    }
    return res;
}

xcclResult_t xm_ports_open(struct xm_run *run)
{
    xcclResult_t res = open_port(run, &run->send, &run->sides->send);

    return (res == xcclSuccess) ? open_port(run, &run->recv, &run->sides->recv) : res;
}

xcclResult_t xm_ports_close(struct xm_run *run)
{
    const struct xm_port *port = &run->recv; /* nothing writes the send side */

    return (port->packed && port->side->out) ? xm_unpack(&run->copier, port->side, port->ptr)
                                             : xcclSuccess;
}

void xm_ports_free(struct xm_run *run)
{
    free(run->send.counts);
    free(run->recv.counts);
}
