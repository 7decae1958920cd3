/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/lists.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/params.h"
#include "data/events.h"
#include "data/flatten.h"

/* A piece takes 16 bytes at most. */
enum { MOST_PIECES = 1 << 23 };
/* Pieces of one length need no search, even if they are somewhat more than the stretches. */
enum { MORE_PIECES = 2 };

/* How a type is listed, and where in a block of memory. */
struct form {
    size_t   stretches, size;
    size_t   same;   /* bytes of each piece, or 0: they differ */
    size_t   pieces; /* with the one behind the last, if they differ */
    size_t   tiles;  /* likewise */
    size_t   bytes;  /* of memory */
    uint64_t aligned;
};

struct xm_list {
    const struct xc_device_ops *dev;
    int                         device;
    unsigned                    resets; /* of the device before it was made */
    enum { MAKING, COMING, THERE, FAILED } state;
    xcclStream_t      stream; /* that brings it */
    void             *event;  /* which has done so */
    struct form       form;
    struct xm_scratch scratch;      /* block 0: the list; 1: what is copied there, until it is */
    void             *memory;       /* of block 0 */
    struct xm_list   *next;         /* of the type */
    struct xm_list   *left, *right; /* of all that are kept */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_list *all;
static size_t          total; /* bytes of them */

bool xm_is_listed(const struct xm_flat *flat)
{
    return (flat->runs.count > XK_FEW_RUNS) && (flat->stretches <= MOST_PIECES);
}

/* ---- what is in it ---- */

static size_t common_divisor(size_t a, size_t b)
{
    while (b != 0) {
        size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void add_run(const struct xm_runs *runs, size_t i, struct form *form, uint64_t *bits)
{
    const struct xm_kept_run *kept = &runs->kept[i];

    form->same = (kept->bytes == form->same) ? form->same : common_divisor(kept->bytes, form->same);
    *bits |= (uint64_t)kept->offset | kept->packed | kept->bytes;
    if (kept->levels != NULL) {
        struct xm_run run = xm_runs_at(runs, i);
        for (int l = 0; l < run.levels; l++) {
            *bits |= (uint64_t)run.level[l].stride | run.level[l].packed;
        }
    }
}

static struct form form_of(const struct xm_flat *flat)
{
    struct form form = {.stretches = flat->stretches, .size = flat->runs.size};
    uint64_t    bits = 16;

    for (size_t i = 0; i < flat->runs.count; i++) {
        add_run(&flat->runs, i, &form, &bits);
    }
    form.aligned = bits & -bits;
    form.pieces = form.size / form.same;
    if (form.pieces <= MORE_PIECES * form.stretches) {
        form.bytes = form.pieces * sizeof(int64_t);
        return form;
    }
    form.same = 0;
    form.pieces = form.stretches + 1;
    form.tiles = form.size / XK_TILE_BYTES + 2;
    form.bytes = form.pieces * sizeof(struct xk_piece) + form.tiles * sizeof(uint32_t);
    return form;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = ((const struct xk_piece *)a)->packed, y = ((const struct xk_piece *)b)->packed;

    return (x > y) - (x < y);
}

/* What is written, stretch by stretch. */
struct writing {
    const struct form *form;
    int64_t           *offsets; /* of pieces of one length */
    struct xk_piece   *pieces;  /* or these, so many of them so far */
    size_t             count;
    bool               sorted;
};

static void write_stretch(struct writing *w, ptrdiff_t offset, size_t packed, size_t bytes)
{
    size_t same = w->form->same;

    if (same == 0) {
        struct xk_piece *piece = &w->pieces[w->count];
        *piece = (struct xk_piece){offset, packed};
        w->sorted = w->sorted && ((w->count == 0) || (piece[-1].packed < packed));
        w->count++;
        return;
    }
    int64_t *to = &w->offsets[packed / same];
    for (size_t b = 0; b < bytes; b += same) {
        *to++ = offset + (ptrdiff_t)b;
    }
}

static void write_run(struct writing *w, const struct xm_runs *runs, size_t i)
{
    const struct xm_kept_run *kept = &runs->kept[i];
    size_t                    packed;
    ptrdiff_t                 offset;

    if (kept->levels == NULL) {
        write_stretch(w, kept->offset, kept->packed, kept->bytes);
        return;
    }
    struct xm_run run = xm_runs_at(runs, i);
    size_t        stretches = xm_run_stretches(&run);
    for (size_t s = 0; s < stretches; s++) {
        xm_run_at(&run, s, &offset, &packed);
        write_stretch(w, offset, packed, run.bytes);
    }
}

/* In which piece each tile of the packed data begins. */
static void write_tiles(const struct form *form, const struct xk_piece *piece, uint32_t *first)
{
    uint32_t n = 0;

    for (size_t t = 0; t < form->tiles; t++) {
        while ((n + 1 < form->stretches) && (piece[n + 1].packed <= t * XK_TILE_BYTES)) {
            n++;
        }
        first[t] = n;
    }
}

/* Runs may be interleaved in the packed data; pieces are not. */
static void write_list(const struct xm_flat *flat, const struct form *form, void *memory)
{
    struct writing w = {form, memory, memory, 0, true};

    for (size_t i = 0; i < flat->runs.count; i++) {
        write_run(&w, &flat->runs, i);
    }
    if (form->same > 0) {
        return;
    }
    if (!w.sorted) {
        qsort(w.pieces, w.count, sizeof(*w.pieces), compare);
    }
    w.pieces[w.count] = (struct xk_piece){0, form->size};
    write_tiles(form, w.pieces, (uint32_t *)(void *)(w.pieces + form->pieces));
}

static void describe(const struct form *form, void *memory, struct xk_listed *what)
{
    what->same = form->same;
    what->pieces = (uint32_t)form->pieces;
    what->list = (uint64_t)(uintptr_t)memory;
    what->size = form->size;
    what->unit = (uint32_t)form->aligned;
}

/* ---- making it ---- */

/* In the scratch: the list, and what is copied there. */
static bool make(struct xm_scratch *scratch, xcclStream_t stream, const struct xm_flat *flat,
                 const struct form *form, void **memory_p)
{
    void *memory, *host;

    if ((scratch->count + 3 > XM_SCRATCH_MAX) || /* others want some too */
        (xm_scratch_take(scratch, XM_POOL_DEVICE, form->bytes, &memory) != xcclSuccess) ||
        (xm_scratch_take(scratch, XM_POOL_HOST, form->bytes, &host) != xcclSuccess)) {
        return false;
    }
    write_list(flat, form, host);
    xc_trace("device %d: a list of %zu pieces", scratch->device, form->pieces);
    *memory_p = memory;
    return scratch->dev->copy_async(memory, host, form->bytes, stream) == xcclSuccess;
}

/* With the lock: the one on a device; what a reset took along is not given back. */
static struct xm_list *find(const struct xm_flat *flat, const struct xm_scratch *s)
{
    unsigned resets = xc_device_resets(s->dev, s->device, false);

    for (struct xm_list *l = flat->lists; l != NULL; l = l->next) {
        if ((l->dev == s->dev) && (l->device == s->device) && (l->resets == resets)) {
            return l;
        }
    }
    return NULL;
}

/* With the lock. NULL: XCCL_SCRATCH is reached. */
static struct xm_list *add(const struct xm_flat *flat, const struct xm_scratch *s,
                           const struct form *form)
{
    struct xm_flat *mine = (struct xm_flat *)(uintptr_t)flat;
    struct xm_list *l = NULL;

    if (total + form->bytes <= (size_t)xc_params()->scratch << 20) {
        l = calloc(1, sizeof(*l));
    }
    if (l == NULL) {
        return NULL;
    }
    l->dev = s->dev;
    l->device = s->device;
    l->resets = xc_device_resets(s->dev, s->device, false);
    l->form = *form;
    total += form->bytes;
    l->next = mine->lists;
    mine->lists = l;
    l->right = all;
    if (all != NULL) {
        all->left = l;
    }
    all = l;
    return l;
}

static void set_state(struct xm_list *l, int state)
{
    pthread_mutex_lock(&lock);
    l->state = state;
    pthread_mutex_unlock(&lock);
}

/* Nobody else touches it until its state says so. */
static bool make_kept(struct xm_list *l, xcclStream_t stream, const struct xm_flat *flat)
{
    xm_scratch_begin(&l->scratch, l->dev, l->device);
    l->stream = stream;
    bool good = make(&l->scratch, stream, flat, &l->form, &l->memory) &&
                (xm_event_take(l->dev, l->device, &l->event) == xcclSuccess) &&
                (l->dev->event_record(l->event, stream) == xcclSuccess);
    set_state(l, good ? COMING : FAILED);
    return good;
}

/* With the lock. */
static bool is_there(struct xm_list *l)
{
    if ((l->state == COMING) && (l->dev->event_query(l->event) == xcclSuccess)) {
        l->state = THERE;
        xm_event_give(l->dev, l->device, l->event);
        l->event = NULL;
        xm_scratch_trim(&l->scratch, 1);
    }
    return l->state == THERE;
}

/* With the lock. Work on its stream comes behind it. */
static bool is_usable(struct xm_list *l, xcclStream_t stream)
{
    return is_there(l) || ((l->state == COMING) && (l->stream == stream));
}

/* Of this call alone: another stream still brings the one that is kept, or it is not kept. */
static bool make_once(const struct xm_copier *copier, const struct xm_flat *flat,
                      struct xk_listed *what)
{
    struct form form = form_of(flat);
    void       *memory;

    if (!make(copier->scratch, copier->stream, flat, &form, &memory)) {
        return false;
    }
    describe(&form, memory, what);
    return true;
}

bool xm_list_find(const struct xm_copier *copier, const struct xm_flat *flat,
                  struct xk_listed *what)
{
    struct xm_list *fresh = NULL;

    /* What a program's stream has captured may outlive the type. */
    if (copier->scratch->ordered) {
        return make_once(copier, flat, what);
    }
    pthread_mutex_lock(&lock);
    struct xm_list *l = find(flat, copier->scratch);
    bool            usable = (l != NULL) && is_usable(l, copier->stream);
    if (l == NULL) {
        struct form form = form_of(flat);
        l = fresh = add(flat, copier->scratch, &form);
    }
    pthread_mutex_unlock(&lock);
    if (fresh != NULL) {
        usable = make_kept(fresh, copier->stream, flat);
    }
    if (!usable) {
        return make_once(copier, flat, what);
    }
    describe(&l->form, l->memory, what);
    return true;
}

bool xm_list_there(const struct xm_copier *copier, const struct xm_flat *flat,
                   struct xk_listed *what)
{
    if (copier->scratch->ordered) {
        return false;
    }
    pthread_mutex_lock(&lock);
    struct xm_list *l = find(flat, copier->scratch);
    bool            there = (l != NULL) && is_there(l);
    pthread_mutex_unlock(&lock);
    if (there) {
        describe(&l->form, l->memory, what);
    }
    return there;
}

/* ---- its end ---- */

/* With the lock. Whoever read it has ended. */
static void drop(struct xm_list *l)
{
    xm_event_give(l->dev, l->device, l->event);
    xm_scratch_end(&l->scratch);
    total -= l->form.bytes;
    if (l->left != NULL) {
        l->left->right = l->right;
    } else {
        all = l->right;
    }
    if (l->right != NULL) {
        l->right->left = l->left;
    }
    l->dev = NULL;
}

void xm_lists_free(struct xm_list *lists)
{
    struct xm_list *next;

    if (lists == NULL) {
        return;
    }
    pthread_mutex_lock(&lock);
    for (struct xm_list *l = lists; l != NULL; l = next) {
        next = l->next;
        if (l->dev != NULL) {
            drop(l);
        }
        free(l);
    }
    pthread_mutex_unlock(&lock);
}

void xm_lists_finalize(void)
{
    pthread_mutex_lock(&lock);
    while (all != NULL) {
        drop(all);
    }
    pthread_mutex_unlock(&lock);
}
