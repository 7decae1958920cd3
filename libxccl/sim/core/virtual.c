/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual memory management: a program reserves addresses, creates memory, maps it at some of the
 * addresses and lets devices touch it, each by itself. A reservation is mapped twice as an arena
 * is, so that a buffer that crosses mappings is in one piece for the simulation, too. What each
 * call refuses is what CUDA's driver 13.0 refused on an H200.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/ranges.h"

struct xs_backing {
    struct xs_backing        *next;
    struct xs_allocation_prop prop;
    size_t                    bytes;
    int                       fd;
    int                       handles;  /* that the program has not released */
    int                       mappings; /* it lives as long as it is mapped */
};

struct xs_reservation {
    struct xs_reservation *next;
    uintptr_t              base;
    size_t                 bytes;
    unsigned char         *alias;
};

/* Both with the lock of the ranges held. */
static struct xs_backing     *backings;
static struct xs_reservation *reservations;

static bool whole(size_t bytes)
{
    return (bytes != 0) && (bytes % XS_GRANULARITY == 0);
}

static bool is_device(const struct xs_location *location)
{
    return (location->type == XS_LOCATION_DEVICE) && (location->id >= 0) &&
           (location->id < xs_config()->devices);
}

static enum xs_error check_prop(const struct xs_allocation_prop *prop)
{
    if ((prop == NULL) || (prop->type != XS_ALLOCATION_PINNED)) {
        return XS_INVALID_VALUE;
    }
    if (!is_device(&prop->location)) {
        return XS_INVALID_DEVICE;
    }
    return ((prop->handle_types & ~XS_HANDLE_POSIX_FD) != 0) ? XS_NOT_SUPPORTED : XS_OK;
}

enum xs_error xs_virtual_granularity(const struct xs_allocation_prop *prop, int option,
                                     size_t *bytes_p)
{
    enum xs_error res = check_prop(prop);

    if ((res != XS_OK) || (bytes_p == NULL) || (option < 0) || (option > 1)) {
        return (res != XS_OK) ? res : XS_INVALID_VALUE;
    }
    *bytes_p = XS_GRANULARITY; /* the least and the recommended one */
    return XS_OK;
}

/* ---- addresses ---- */

static void *map_nothing(void *at, size_t bytes)
{
    return mmap(at, bytes, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | ((at != NULL) ? MAP_FIXED : 0), -1,
                0);
}

/* Addresses that are a multiple of the alignment. */
static unsigned char *map_aligned(size_t bytes, size_t alignment)
{
    unsigned char *all = map_nothing(NULL, bytes + alignment);

    if (all == MAP_FAILED) {
        return NULL;
    }
    size_t before = (alignment - (uintptr_t)all % alignment) % alignment;
    if (before > 0) {
        munmap(all, before);
    }
    if (before < alignment) {
        munmap(all + before + bytes, alignment - before);
    }
    return all + before;
}

enum xs_error xs_virtual_reserve(size_t bytes, size_t alignment, void **ptr_p)
{
    if ((ptr_p == NULL) || !whole(bytes) || ((alignment & (alignment - 1)) != 0)) {
        return XS_INVALID_VALUE;
    }
    alignment = (alignment < XS_GRANULARITY) ? XS_GRANULARITY : alignment;
    struct xs_reservation *r = malloc(sizeof(*r));
    unsigned char         *visible = map_aligned(bytes, alignment);
    void                  *alias = map_nothing(NULL, bytes);
    if ((r == NULL) || (visible == NULL) || (alias == MAP_FAILED)) {
        if (visible != NULL) {
            munmap(visible, bytes);
        }
        if (alias != MAP_FAILED) {
            munmap(alias, bytes);
        }
        free(r);
        return XS_OUT_OF_MEMORY;
    }
    xs_ranges_lock();
    *r = (struct xs_reservation){reservations, (uintptr_t)visible, bytes, alias};
    reservations = r;
    xs_ranges_unlock();
    *ptr_p = visible;
    return XS_OK;
}

static struct xs_reservation *reservation_of(uintptr_t at, size_t bytes)
{
    for (struct xs_reservation *r = reservations; r != NULL; r = r->next) {
        if ((at >= r->base) && (at - r->base < r->bytes) && (bytes <= r->bytes - (at - r->base))) {
            return r;
        }
    }
    return NULL;
}

/* Is anything mapped there? */
static bool any_mapped(uintptr_t at, size_t bytes)
{
    const struct xs_range *next = xs_ranges_next(at);

    return (xs_ranges_find((const void *)at) != NULL) ||
           ((next != NULL) && (next->base < at + bytes));
}

enum xs_error xs_virtual_unreserve(void *ptr, size_t bytes)
{
    struct xs_reservation **link = &reservations;
    enum xs_error           res = XS_INVALID_VALUE;

    xs_ranges_lock();
    while ((*link != NULL) && ((*link)->base != (uintptr_t)ptr)) {
        link = &(*link)->next;
    }
    if ((*link != NULL) && ((*link)->bytes == bytes) && !any_mapped((uintptr_t)ptr, bytes)) {
        struct xs_reservation *r = *link;

        *link = r->next;
        munmap(ptr, bytes);
        munmap(r->alias, bytes);
        free(r);
        res = XS_OK;
    }
    xs_ranges_unlock();
    return res;
}

/* ---- memory ---- */

static bool is_backing(const struct xs_backing *backing)
{
    const struct xs_backing *b = backings;

    while ((b != NULL) && (b != backing)) {
        b = b->next;
    }
    return (b != NULL) && (b->handles > 0);
}

static struct xs_backing *add(const struct xs_allocation_prop *prop, size_t bytes, int fd)
{
    struct xs_backing *b = calloc(1, sizeof(*b));

    if (b != NULL) {
        *b = (struct xs_backing){backings, *prop, bytes, fd, 1, 0};
        backings = b;
    }
    return b;
}

enum xs_error xs_virtual_create(size_t bytes, const struct xs_allocation_prop *prop,
                                struct xs_backing **backing_p)
{
    enum xs_error res = check_prop(prop);

    if ((res != XS_OK) || (backing_p == NULL) || !whole(bytes)) {
        return (res != XS_OK) ? res : XS_INVALID_VALUE;
    }
    if (xs_fault(XS_FAULT_ALLOC, NULL)) {
        return XS_OUT_OF_MEMORY;
    }
    int fd = xs_file_create("xccl-sim-backing", bytes);
    xs_ranges_lock();
    struct xs_backing *b = NULL;
    if ((fd >= 0) && xs_ranges_use(prop->location.id, bytes)) {
        b = add(prop, bytes, fd);
        if (b == NULL) {
            xs_ranges_unuse(prop->location.id, bytes);
        }
    }
    xs_ranges_unlock();
    if (b == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return XS_OUT_OF_MEMORY;
    }
    *backing_p = b;
    return XS_OK;
}

static void drop_if_unused(struct xs_backing *backing)
{
    struct xs_backing **link = &backings;

    if ((backing->handles > 0) || (backing->mappings > 0)) {
        return;
    }
    while (*link != backing) {
        link = &(*link)->next;
    }
    *link = backing->next;
    xs_ranges_unuse(backing->prop.location.id, backing->bytes);
    close(backing->fd);
    free(backing);
}

enum xs_error xs_virtual_release(struct xs_backing *backing)
{
    enum xs_error res = XS_INVALID_VALUE;

    xs_ranges_lock();
    if (is_backing(backing)) {
        backing->handles--;
        drop_if_unused(backing);
        res = XS_OK;
    }
    xs_ranges_unlock();
    return res;
}

enum xs_error xs_virtual_properties(struct xs_backing *backing, struct xs_allocation_prop *prop_p)
{
    enum xs_error res = XS_INVALID_VALUE;

    xs_ranges_lock();
    if (is_backing(backing) && (prop_p != NULL)) {
        *prop_p = backing->prop;
        res = XS_OK;
    }
    xs_ranges_unlock();
    return res;
}

enum xs_error xs_virtual_export(struct xs_backing *backing, int handle_type, int *fd_p)
{
    enum xs_error res = XS_INVALID_VALUE;

    xs_ranges_lock();
    if (is_backing(backing) && (fd_p != NULL) && (handle_type == XS_HANDLE_POSIX_FD) &&
        (backing->prop.handle_types == XS_HANDLE_POSIX_FD)) {
        int fd = fcntl(backing->fd, F_DUPFD_CLOEXEC, 0);

        if (fd >= 0) {
            *fd_p = fd;
        }
        res = (fd >= 0) ? XS_OK : XS_OPERATING_SYSTEM;
    }
    xs_ranges_unlock();
    return res;
}

/* The memory is the other process's, of a device that both call the first: no file says which. */
enum xs_error xs_virtual_import(int fd, int handle_type, struct xs_backing **backing_p)
{
    const struct xs_allocation_prop prop = {.type = XS_ALLOCATION_PINNED,
                                            .handle_types = XS_HANDLE_POSIX_FD,
                                            .location = {XS_LOCATION_DEVICE, 0}};
    struct stat                     status;

    if ((handle_type != XS_HANDLE_POSIX_FD) || (backing_p == NULL) || (fstat(fd, &status) != 0) ||
        !S_ISREG(status.st_mode) || !whole((size_t)status.st_size)) {
        return XS_INVALID_VALUE;
    }
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* the program closes its own */
    if (own < 0) {
        return XS_OPERATING_SYSTEM;
    }
    xs_ranges_lock();
    struct xs_backing *b =
        xs_ranges_use(0, (size_t)status.st_size) ? add(&prop, (size_t)status.st_size, own) : NULL;
    xs_ranges_unlock();
    if (b == NULL) {
        close(own);
        return XS_OUT_OF_MEMORY;
    }
    *backing_p = b;
    return XS_OK;
}

/* ---- mappings ---- */

/* It has no place: other processes reach it by a file that the program sends them, or not at all.
 */
static enum xs_error map(struct xs_reservation *r, uintptr_t at, struct xs_backing *backing)
{
    unsigned char  *alias = r->alias + (at - r->base);
    struct xs_range range = {.base = at,
                             .size = backing->bytes,
                             .kind = XS_MEM_DEVICE,
                             .device = backing->prop.location.id,
                             .alias = alias,
                             .reservation = r,
                             .backing = backing};

    if (mmap(alias, backing->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, backing->fd,
             0) == MAP_FAILED) {
        return XS_OUT_OF_MEMORY;
    }
    if (!xs_ranges_add(&range)) {
        map_nothing(alias, backing->bytes);
        return XS_OUT_OF_MEMORY;
    }
    backing->mappings++;
    return XS_OK;
}

enum xs_error xs_virtual_map(void *ptr, size_t bytes, size_t offset, struct xs_backing *backing)
{
    uintptr_t     at = (uintptr_t)ptr;
    enum xs_error res = XS_INVALID_VALUE;

    xs_ranges_lock();
    struct xs_reservation *r = reservation_of(at, bytes);
    if ((r != NULL) && is_backing(backing) && (at % XS_GRANULARITY == 0) &&
        !any_mapped(at, bytes)) {
        /* Memory is mapped as a whole. */
        res = ((offset != 0) || (bytes != backing->bytes)) ? XS_NOT_SUPPORTED : map(r, at, backing);
    }
    xs_ranges_unlock();
    return res;
}

/* The mapping that begins at *at_p or behind it, and ends before end; *at_p: its end. */
static struct xs_range *next_mapping(uintptr_t *at_p, uintptr_t end)
{
    struct xs_range *range = xs_ranges_next(*at_p);

    if ((range == NULL) || (range->base >= end)) {
        return NULL;
    }
    *at_p = range->base + range->size;
    return range;
}

/* Does the stretch begin and end between mappings? */
static bool cuts_none(uintptr_t at, size_t bytes)
{
    const struct xs_range *first = xs_ranges_find((const void *)at);
    const struct xs_range *last = xs_ranges_find((const void *)(at + bytes - 1));

    return ((first == NULL) || (first->base == at)) &&
           ((last == NULL) || (last->base + last->size == at + bytes));
}

/* There may be nothing mapped in some of the stretch. Work on it is not waited for. */
enum xs_error xs_virtual_unmap(void *ptr, size_t bytes)
{
    uintptr_t        at = (uintptr_t)ptr;
    uintptr_t        end = at + bytes;
    enum xs_error    res = XS_INVALID_VALUE;
    struct xs_range *range;

    xs_ranges_lock();
    if (whole(bytes) && (reservation_of(at, bytes) != NULL) && any_mapped(at, bytes) &&
        cuts_none(at, bytes)) {
        while ((range = next_mapping(&at, end)) != NULL) {
            struct xs_backing *backing = range->backing;

            map_nothing(range->alias, range->size);
            xs_ranges_remove(range);
            backing->mappings--;
            drop_if_unused(backing);
        }
        res = XS_OK;
    }
    xs_ranges_unlock();
    return res;
}

static bool all_mapped(uintptr_t at, uintptr_t end)
{
    while (at < end) {
        const struct xs_range *range = xs_ranges_find((const void *)at);

        if ((range == NULL) || (range->reservation == NULL)) {
            return false;
        }
        at = range->base + range->size;
    }
    return true;
}

enum xs_error xs_virtual_set_access(void *ptr, size_t bytes, const struct xs_access_desc *descs,
                                    size_t count)
{
    uintptr_t        at = (uintptr_t)ptr;
    uintptr_t        end = at + bytes;
    uint64_t         open = 0;
    uint64_t         close = 0;
    struct xs_range *range;

    for (size_t i = 0; (descs != NULL) && (i < count); i++) {
        if (!is_device(&descs[i].location) ||
            ((descs[i].flags != XS_ACCESS_NONE) && (descs[i].flags != XS_ACCESS_READ_WRITE))) {
            return (descs[i].flags == XS_ACCESS_READ) ? XS_NOT_SUPPORTED : XS_INVALID_VALUE;
        }
        *((descs[i].flags == XS_ACCESS_NONE) ? &close : &open) |= (uint64_t)1
                                                                  << descs[i].location.id;
    }
    if ((descs == NULL) || (count == 0) || !whole(bytes)) {
        return XS_INVALID_VALUE;
    }
    xs_ranges_lock();
    bool good = cuts_none(at, bytes) && all_mapped(at, end);
    while (good && ((range = next_mapping(&at, end)) != NULL)) {
        range->access = (range->access & ~close) | open;
    }
    xs_ranges_changed();
    xs_ranges_unlock();
    return good ? XS_OK : XS_INVALID_VALUE;
}

enum xs_error xs_virtual_get_access(const void *ptr, const struct xs_location *location,
                                    unsigned long long *flags_p)
{
    struct xs_range range;

    if ((location == NULL) || (flags_p == NULL) || !is_device(location) ||
        !xs_mem_find(ptr, &range) || (range.reservation == NULL)) {
        return XS_INVALID_VALUE;
    }
    *flags_p = ((range.access >> location->id) & 1) ? XS_ACCESS_READ_WRITE : XS_ACCESS_NONE;
    return XS_OK;
}

enum xs_error xs_virtual_retain(const void *ptr, struct xs_backing **backing_p)
{
    enum xs_error res = XS_INVALID_VALUE;

    xs_ranges_lock();
    const struct xs_range *range = xs_ranges_find(ptr);
    if ((range != NULL) && (range->reservation != NULL) && (backing_p != NULL)) {
        range->backing->handles++;
        *backing_p = range->backing;
        res = XS_OK;
    }
    xs_ranges_unlock();
    return res;
}

void xs_virtual_describe(const struct xs_range *range, uintptr_t *base_p, size_t *bytes_p,
                         int *handle_types_p)
{
    *base_p = range->reservation->base;
    *bytes_p = range->reservation->bytes;
    *handle_types_p = range->backing->prop.handle_types;
}
