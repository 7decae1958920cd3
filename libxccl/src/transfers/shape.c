/* SPDX-License-Identifier: BSD-3-Clause */
#include "transfers/shape.h"

#include <string.h>

#include "data/flatten.h"
#include "transfers/rendezvous.h"

/* Bytes of one stretch, to or from its place in the packed data. */
static void move(uintptr_t at, char *packed, size_t stretch, size_t left, bool scatter)
{
    size_t n = (stretch < left) ? stretch : left;
    char  *data = (char *)at;

    memcpy(scatter ? data : packed, scatter ? packed : data, n);
}

/* Of an element at most XM_HEAD_BYTES: those that begin a message, looked at again and again. */
static void head_of(const struct xm_flat *flat, uintptr_t element, char *packed, size_t bytes,
                    bool scatter)
{
    for (size_t i = 0; i < flat->pieces; i++) {
        const struct xm_piece *p = &flat->head[i];
        if (p->packed < bytes) {
            move(element + (uintptr_t)p->offset, packed + p->packed, p->bytes, bytes - p->packed,
                 scatter);
        }
    }
}

/* Runs may be interleaved in the packed data: each stretch says where it belongs. */
static void each_stretch(const struct xm_rendezvous *r, char *packed, size_t bytes, bool scatter)
{
    const struct xm_layout *l = &r->receive.layout;
    size_t                  size = (size_t)l->size;

    if (r->flat == NULL) {
        move((uintptr_t)r->base + (uintptr_t)r->receive.low, packed, bytes, bytes, scatter);
        return;
    }
    for (size_t i = 0; (i < (size_t)r->receive.count) && (i * size < bytes); i++) {
        /* In numbers: with MPI_BOTTOM the base is no address of memory. */
        uintptr_t element = (uintptr_t)r->base + (uintptr_t)((MPI_Count)i * l->extent);
        if (bytes - i * size <= XM_HEAD_BYTES) {
            head_of(r->flat, element, packed + i * size, bytes - i * size, scatter);
            continue;
        }
        for (size_t k = 0; k < r->flat->runs.count; k++) {
            struct xm_run run = xm_runs_at(&r->flat->runs, k);
            size_t        stretches = xm_run_stretches(&run);
            for (size_t s = 0; s < stretches; s++) {
                ptrdiff_t offset;
                size_t    place;
                xm_run_at(&run, s, &offset, &place);
                place += i * size;
                if (place < bytes) {
                    move(element + (uintptr_t)offset, packed + place, run.bytes, bytes - place,
                         scatter);
                }
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
