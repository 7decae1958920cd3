/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/gdrcopy.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/params.h"
#include "comms/worker.h"
#include "device/symbols.h"

enum {
    PAGE = 64 << 10, /* of a GPU */
    MOST_WINDOWS = 64,
    /*
     * Longer copies are left to kernels and the runtime. The processor reads the device's memory
     * slowly: 2.8 us for 1 KiB, 8.0 us for 4 KiB; it writes 16 KiB in 1.6 us. A V100, by the README
     * of GDRCopy; nobody has measured it here.
     */
    MOST_OUT = 1 << 10,
    MOST_IN = 16 << 10,
};
/* Of the allocations whose pages are mapped. */
static const uint64_t most_of_one = (uint64_t)64 << 20, most_of_all = (uint64_t)256 << 20;

/* gdrapi.h, version 2. A handle is a structure of one word, which is passed as the word. */
typedef struct {
    unsigned long h;
} gdr_mh_t;
static struct gdr {
    void *(*open)(void);
    int (*pin)(void *g, unsigned long address, size_t size, uint64_t token, uint32_t va_space,
               gdr_mh_t *handle_p);
    int (*unpin)(void *g, gdr_mh_t handle);
    int (*map)(void *g, gdr_mh_t handle, void **at_p, size_t size);
    int (*unmap)(void *g, gdr_mh_t handle, void *at, size_t size);
    int (*to)(gdr_mh_t handle, void *mapped, const void *host, size_t size);
    int (*from)(gdr_mh_t handle, void *host, const void *mapped, size_t size);
} gdr;

enum state { UNUSED, COUNTED, BEING_MAPPED, MAPPED, REFUSED };

/* Pages of one allocation. */
struct window {
    struct xm_job               job; /* first: of its mapping */
    const struct xc_device_ops *dev;
    int                         device;
    enum state                  state;
    uint64_t                    id;         /* of the allocation */
    uint64_t                    allocation; /* its bytes */
    uintptr_t                   begin, end; /* what lies in the allocation */
    uintptr_t                   base;       /* of the pages */
    size_t                      bytes;
    long                        copies; /* that were asked for */
    uint64_t                    used;   /* when it was last looked at */
    gdr_mh_t                    handle;
    char                       *at; /* where the pages are mapped */
};

/* What is given back by a thread. */
struct leaving {
    struct xm_job job; /* first */
    gdr_mh_t      handle;
    void         *at;
    size_t        bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct window   windows[MOST_WINDOWS];
static uint64_t        looks;
static pthread_once_t  once = PTHREAD_ONCE_INIT;
static void           *opened; /* NULL: GDRCopy cannot be used */

static void open_library(void)
{
    static const char *const      sonames[] = {"libgdrapi.so.2", NULL};
    static const struct xc_symbol symbols[] = {
        {"gdr_open", offsetof(struct gdr, open)},
        {"gdr_pin_buffer", offsetof(struct gdr, pin)},
        {"gdr_unpin_buffer", offsetof(struct gdr, unpin)},
        {"gdr_map", offsetof(struct gdr, map)},
        {"gdr_unmap", offsetof(struct gdr, unmap)},
        {"gdr_copy_to_mapping", offsetof(struct gdr, to)},
        {"gdr_copy_from_mapping", offsetof(struct gdr, from)},
    };
    const char *missing = NULL;

    if (!xc_symbols_open(sonames, false, symbols, sizeof(symbols) / sizeof(symbols[0]), &gdr,
                         &missing)) {
        xc_warn("XCCL_GDRCOPY: %s%s; small copies go without GDRCopy",
                (missing != NULL) ? "libgdrapi.so.2 has no " : "libgdrapi.so.2 cannot be opened",
                (missing != NULL) ? missing : "");
        return;
    }
    opened = gdr.open();
    if (opened == NULL) {
        xc_warn("XCCL_GDRCOPY: gdr_open failed: is the kernel module gdrdrv loaded? Small copies "
                "go without GDRCopy; GDRCOPY_ENABLE_LOGGING=1 tells more");
    }
}

static void give_back(gdr_mh_t handle, void *at, size_t bytes)
{
    (void)gdr.unmap(opened, handle, at, bytes);
    (void)gdr.unpin(opened, handle);
}

static void let_go(struct xm_job *job)
{
    struct leaving *l = (struct leaving *)job;

    give_back(l->handle, l->at, l->bytes);
    free(l);
}

/* With the lock held. Without a thread its pages stay mapped. */
static void drop(struct window *w)
{
    struct leaving *l = (w->state == MAPPED) ? malloc(sizeof(*l)) : NULL;

    if (l != NULL) {
        *l = (struct leaving){{.run = let_go}, w->handle, w->at, w->bytes};
        if (xm_worker_start(&l->job) != xcclSuccess) {
            free(l);
        }
    }
    w->state = UNUSED;
}

static void say_once(const struct window *w, bool good)
{
    static bool said[2]; /* atomic */

    if (!__atomic_exchange_n(&said[good], true, __ATOMIC_RELAXED)) {
        xc_info("GDRCopy: %zu KiB of device %d %s", w->bytes >> 10, w->device,
                good ? "are mapped: small copies go there" : "could not be mapped");
    }
}

/* On a thread. Nobody else changes what is being mapped. */
static void map(struct xm_job *job)
{
    struct window *w = (struct window *)job;
    void          *at = NULL, *saved;
    bool           good = false;

    pthread_once(&once, open_library);
    if ((opened != NULL) && (w->dev->enter(w->device, &saved) == xcclSuccess)) {
        good = (gdr.pin(opened, w->base, w->bytes, 0, 0, &w->handle) == 0);
        if (good && (gdr.map(opened, w->handle, &at, w->bytes) != 0)) {
            (void)gdr.unpin(opened, w->handle);
            good = false;
        }
        w->dev->leave(saved);
        say_once(w, good);
    }
    pthread_mutex_lock(&lock);
    w->at = at;
    w->state = good ? MAPPED : REFUSED;
    pthread_mutex_unlock(&lock);
}

/* With the lock held. What was freed is never found again, since ids do not come twice. */
static void drop_freed(void)
{
    for (int i = 0; i < MOST_WINDOWS; i++) {
        struct window       *w = &windows[i];
        struct xc_allocation a;
        if ((w->state == MAPPED) &&
            (!w->dev->mem_allocation((const void *)w->begin, &a) || (a.id != w->id))) {
            drop(w);
        }
    }
}

/* The bytes of all allocations that are mapped, or are about to be. */
static uint64_t mapped_bytes(void)
{
    uint64_t sum = 0;

    for (int i = 0; i < MOST_WINDOWS; i++) {
        bool counted = (windows[i].state != MAPPED) && (windows[i].state != BEING_MAPPED);
        for (int j = 0; (j < i) && !counted; j++) {
            counted = (windows[j].id == windows[i].id) &&
                      ((windows[j].state == MAPPED) || (windows[j].state == BEING_MAPPED));
        }
        sum += counted ? 0 : windows[i].allocation;
    }
    return sum;
}

/* With the lock held. */
static void begin_mapping(struct window *w)
{
    drop_freed();
    w->state = BEING_MAPPED;
    w->job = (struct xm_job){.run = map};
    if ((w->allocation > most_of_one) || (mapped_bytes() > most_of_all) ||
        (xm_worker_start(&w->job) != xcclSuccess)) {
        w->state = REFUSED;
    }
}

/* A place for pages that were not seen before: that of those which were not for longest. */
static struct window *take_place(void)
{
    struct window *oldest = NULL;

    for (int i = 0; i < MOST_WINDOWS; i++) {
        struct window *w = &windows[i];
        if (w->state == UNUSED) {
            return w;
        }
        if ((w->state != BEING_MAPPED) && ((oldest == NULL) || (w->used < oldest->used))) {
            oldest = w;
        }
    }
    if (oldest != NULL) {
        drop(oldest);
    }
    return oldest;
}

static struct window *add(const struct xc_device_ops *dev, int device,
                          const struct xc_allocation *a, uintptr_t from, uintptr_t to)
{
    struct window *w = take_place();

    if (w == NULL) {
        return NULL;
    }
    uintptr_t base = from & ~(uintptr_t)(PAGE - 1);
    uintptr_t end = (to + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    *w = (struct window){.dev = dev,
                         .device = device,
                         .state = COUNTED,
                         .id = a->id,
                         .allocation = a->bytes,
                         .begin = (base > a->base) ? base : (uintptr_t)a->base,
                         .end = (end < a->base + a->bytes) ? end : (uintptr_t)(a->base + a->bytes),
                         .base = base,
                         .bytes = end - base};
    return w;
}

/* With the lock held. */
static struct window *find(const struct xc_allocation *a, uintptr_t from, uintptr_t to)
{
    for (int i = 0; i < MOST_WINDOWS; i++) {
        struct window *w = &windows[i];
        if ((w->state != UNUSED) && (w->id == a->id) && (w->begin <= from) && (to <= w->end)) {
            return w;
        }
    }
    return NULL;
}

/*
 * What the processor has written may still be on its way to the device. A read cannot overtake it:
 * after that one whoever looks there sees it, kernels that run already too.
 */
static bool copy(const struct window *w, char *memory, char *host, size_t bytes, bool in)
{
    char *at = w->at + ((uintptr_t)memory - w->base);
    char  last;

    if (!in) {
        return gdr.from(w->handle, host, at, bytes) == 0;
    }
    return (gdr.to(w->handle, at, host, bytes) == 0) &&
           (gdr.from(w->handle, &last, at + bytes - 1, 1) == 0);
}

static bool try_copy(const struct xc_device_ops *dev, int device, char *memory, char *host,
                     size_t bytes, bool in)
{
    uintptr_t            from = (uintptr_t)memory, to = from + bytes;
    struct xc_allocation a;
    bool                 copied = false;

    if ((dev->mem_allocation == NULL) || !dev->mem_allocation(memory, &a) ||
        (to > a.base + a.bytes) || (pthread_mutex_trylock(&lock) != 0)) {
        return false;
    }
    struct window *w = find(&a, from, to);
    if (w == NULL) {
        w = add(dev, device, &a, from, to);
    }
    if (w != NULL) {
        w->used = ++looks;
        copied = (w->state == MAPPED) && copy(w, memory, host, bytes, in);
        if ((w->state == COUNTED) && (++w->copies >= xc_params()->gdrcopy)) {
            begin_mapping(w);
        }
    }
    pthread_mutex_unlock(&lock);
    return copied;
}

bool xm_gdrcopy_out(const struct xc_device_ops *dev, int device, char *host, char *memory,
                    size_t bytes)
{
    return (xc_params()->gdrcopy > 0) && (bytes > 0) && (bytes <= MOST_OUT) &&
           try_copy(dev, device, memory, host, bytes, false);
}

bool xm_gdrcopy_in(const struct xc_device_ops *dev, int device, char *memory, char *host,
                   size_t bytes)
{
    return (xc_params()->gdrcopy > 0) && (bytes > 0) && (bytes <= MOST_IN) &&
           try_copy(dev, device, memory, host, bytes, true);
}

/* The library stays open: sessions may begin anew. */
void xm_gdrcopy_finalize(void)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_WINDOWS; i++) {
        struct window *w = &windows[i];
        if (w->state == MAPPED) {
            give_back(w->handle, w->at, w->bytes);
        }
        w->state = (w->state == BEING_MAPPED) ? w->state : UNUSED;
    }
    pthread_mutex_unlock(&lock);
}
