/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GDRCopy, version 2: libgdrapi.so.2. Its driver is there with XCCL_SIM_GDRCOPY=1.
 *
 * Stricter than the real one. A mapping of memory that was freed shows there what came to lie in
 * its place, or faults; here the process ends. What the processor has written is seen there by and
 * by; here not before the next call for the mapping, which pushes it ahead.
 */
#include <stdlib.h>
#include <string.h>

#include "core/core.h"

#define PUBLIC __attribute__((visibility("default")))
#define PAGE ((uintptr_t)64 << 10)

typedef struct {
    unsigned long h;
} gdr_mh_t;

struct gdr {
    int unused;
};

struct pin {
    uintptr_t base; /* of the pages */
    size_t    size;
    char     *alias;  /* of base: only what is allocated may be touched there */
    uint64_t  newest; /* allocation when it was made: others are not what was pinned */
    bool      mapped;
    void     *late; /* what was written and has not arrived, and where it belongs */
    void     *late_to;
    size_t    late_size;
};

PUBLIC struct gdr *gdr_open(void);
PUBLIC int         gdr_close(struct gdr *g);
PUBLIC void        gdr_runtime_get_version(int *major, int *minor);
PUBLIC int gdr_pin_buffer(struct gdr *g, unsigned long address, size_t size, uint64_t p2p_token,
                          uint32_t va_space, gdr_mh_t *handle);
PUBLIC int gdr_unpin_buffer(struct gdr *g, gdr_mh_t handle);
PUBLIC int gdr_map(struct gdr *g, gdr_mh_t handle, void **at, size_t size);
PUBLIC int gdr_unmap(struct gdr *g, gdr_mh_t handle, void *at, size_t size);
PUBLIC int gdr_copy_to_mapping(gdr_mh_t handle, void *mapped, const void *host, size_t size);
PUBLIC int gdr_copy_from_mapping(gdr_mh_t handle, void *host, const void *mapped, size_t size);

enum { GDR_EINVAL = 22, GDR_ENOMEM = 12 };

static int copies_to, copies_from, pinned, most_pinned; /* atomic */

__attribute__((destructor)) static void tell(void)
{
    xs_log(XS_LOG_INFO, "GDRCopy: %d copies to devices, %d from devices, %d pins at most",
           copies_to, copies_from, most_pinned);
}

static void count_pin(int change)
{
    int now = __atomic_add_fetch(&pinned, change, __ATOMIC_RELAXED);

    xs_live(XS_LIVE_PIN, change);
    if (now > most_pinned) {
        most_pinned = now;
    }
}

static void arrive(struct pin *pin)
{
    if (pin->late != NULL) {
        memcpy(pin->late_to, pin->late, pin->late_size);
        free(pin->late);
        pin->late = NULL;
    }
}

static struct pin *pin_of(gdr_mh_t handle)
{
    struct pin *pin = (struct pin *)handle.h;

    if (pin != NULL) {
        arrive(pin);
    }
    return pin;
}

struct gdr *gdr_open(void)
{
    return xs_config()->gdrcopy ? calloc(1, sizeof(struct gdr)) : NULL;
}

int gdr_close(struct gdr *g)
{
    free(g);
    return 0;
}

void gdr_runtime_get_version(int *major, int *minor)
{
    *major = 2;
    *minor = 5;
}

/* Memory of this process that is in the pages: of a pool, or of another process, is not pinned. */
static bool find_in(uintptr_t base, size_t size, struct xs_range *range_p)
{
    enum { STEP = 512 }; /* allocations begin at such addresses */

    for (uintptr_t at = base; at < base + size; at += STEP) {
        if (xs_mem_find((const void *)at, range_p) && (range_p->kind == XS_MEM_DEVICE) &&
            (range_p->reservation == NULL) && !range_p->imported &&
            ((range_p->flags & XS_MEM_POOL) == 0)) {
            return true;
        }
    }
    return false;
}

int gdr_pin_buffer(struct gdr *g, unsigned long address, size_t size, uint64_t p2p_token,
                   uint32_t va_space, gdr_mh_t *handle)
{
    uintptr_t       base = address & ~(PAGE - 1);
    size_t          whole = ((address + size + PAGE - 1) & ~(PAGE - 1)) - base;
    struct xs_range range;

    (void)p2p_token;
    (void)va_space;
    if ((g == NULL) || (handle == NULL) || (size == 0) || !find_in(base, whole, &range) ||
        xs_fault(XS_FAULT_PIN, NULL)) {
        return GDR_EINVAL;
    }
    struct pin *pin = malloc(sizeof(*pin));
    if (pin == NULL) {
        return GDR_ENOMEM;
    }
    *pin = (struct pin){.base = base,
                        .size = whole,
                        .alias = (char *)((uintptr_t)range.alias - range.base + base),
                        .newest = xs_mem_newest()};
    count_pin(1);
    handle->h = (unsigned long)pin;
    return 0;
}

int gdr_unpin_buffer(struct gdr *g, gdr_mh_t handle)
{
    struct pin *pin = pin_of(handle);

    if ((g == NULL) || (pin == NULL) || pin->mapped) {
        return GDR_EINVAL;
    }
    free(pin);
    count_pin(-1);
    return 0;
}

int gdr_map(struct gdr *g, gdr_mh_t handle, void **at, size_t size)
{
    struct pin *pin = pin_of(handle);

    if ((g == NULL) || (pin == NULL) || pin->mapped || (size > pin->size)) {
        return GDR_EINVAL;
    }
    pin->mapped = true;
    *at = pin->alias;
    return 0;
}

int gdr_unmap(struct gdr *g, gdr_mh_t handle, void *at, size_t size)
{
    struct pin *pin = pin_of(handle);

    if ((g == NULL) || (pin == NULL) || !pin->mapped || (at != pin->alias) || (size > pin->size)) {
        return GDR_EINVAL;
    }
    pin->mapped = false;
    return 0;
}

/* What the processor touches must be what was pinned. */
static void check(const struct pin *pin, const void *mapped, size_t size)
{
    uintptr_t       from = pin->base + ((uintptr_t)mapped - (uintptr_t)pin->alias);
    struct xs_range range;

    if (!pin->mapped || (from < pin->base) || (from + size > pin->base + pin->size) ||
        !xs_mem_find((const void *)from, &range) || (range.id > pin->newest) ||
        (size > range.base + range.size - from)) {
        xs_log(XS_LOG_WARN, "GDRCopy: %zu bytes at %#lx are not the memory that was pinned", size,
               (unsigned long)from);
        abort();
    }
}

int gdr_copy_to_mapping(gdr_mh_t handle, void *mapped, const void *host, size_t size)
{
    struct pin *pin = pin_of(handle);

    check(pin, mapped, size);
    __atomic_add_fetch(&copies_to, 1, __ATOMIC_RELAXED);
    pin->late = malloc(size);
    if (pin->late == NULL) {
        return GDR_ENOMEM;
    }
    memcpy(pin->late, host, size);
    pin->late_to = mapped;
    pin->late_size = size;
    return 0;
}

int gdr_copy_from_mapping(gdr_mh_t handle, void *host, const void *mapped, size_t size)
{
    check(pin_of(handle), mapped, size);
    __atomic_add_fetch(&copies_from, 1, __ATOMIC_RELAXED);
    memcpy(host, mapped, size);
    return 0;
}
