/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "data/flatten.h"
#include "transfers/rendezvous.h"

/* The bytes of one stretch; returns what is left to do. */
static size_t move(char *at, char *packed, size_t stretch, size_t left, bool scatter)
{
    size_t n = (stretch < left) ? stretch : left;

    memcpy(scatter ? at : packed, scatter ? packed : at, n);
    return left - n;
}

static void each_stretch(const struct xm_rendezvous *r, char *packed, size_t bytes, bool scatter)
{
    const struct xm_layout *l = &r->receive.layout;
    size_t                  left = bytes;

    if (r->flat == NULL) {
        move((char *)((uintptr_t)r->base + (uintptr_t)r->receive.low), packed, bytes, bytes,
             scatter);
        return;
    }
    for (MPI_Count i = 0; (i < r->receive.count) && (left > 0); i++) {
        /* In numbers: with MPI_BOTTOM the base is no address of memory. */
        uintptr_t element = (uintptr_t)r->base + (uintptr_t)(i * l->extent);
        for (size_t k = 0; (k < r->flat->runs.count) && (left > 0); k++) {
            const struct xm_run *run = &r->flat->runs.run[k];
            size_t               stretches = xm_run_stretches(run);
            for (size_t s = 0; (s < stretches) && (left > 0); s++) {
                ptrdiff_t offset;
                size_t    place;
                xm_run_at(run, s, &offset, &place);
                left = move((char *)(element + (uintptr_t)offset), packed + (bytes - left),
                            run->bytes, left, scatter);
            }
        }
    }
}

void xm_shape_gather(const struct xm_rendezvous *r, char *packed, size_t bytes)
{
    each_stretch(r, packed, bytes, false);
}

void xm_shape_scatter(const struct xm_rendezvous *r, const char *packed, size_t bytes)
{
    each_stretch(r, (char *)(uintptr_t)packed, bytes, true);
}
