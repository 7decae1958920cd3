/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Simulated memory. Each device, and the host's pinned memory, is one arena: a sparse memfd mapped
 * where the program sees it (without access for a device: a host that touches it faults) and at an
 * alias for the simulation. All known ranges are in one table sorted by address.
 */
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/graph.h"
#include "core/ranges.h"

#define PUNCH_FROM ((size_t)16 << 20) /* smaller blocks keep their pages: faults are slow */

struct block {
    uint32_t ranges;  /* that lie in it */
    uint32_t renewed; /* how often there was none before */
};

struct arena {
    int            fd;
    unsigned char *visible; /* NULL: not made yet */
    unsigned char *alias;
    size_t         size;
    size_t         used;
    bool           closed; /* some of its pages cannot be touched: their contexts are gone */
    struct block  *blocks; /* of a device */
    uint64_t      *ids;    /* atomic; behind the memory, for others: what begins at each place */
};

/* One a device, and a last one for pinned and managed memory. */
static struct arena     arenas[XS_MAX_DEVICES + 1];
static struct xs_range *table;
static size_t           count;
static size_t           room;
static uint64_t         next_id = 1;
static uint64_t         changes = 1; /* of the table; written with the lock held, read without */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER; /* xs_ranges_lock() for others */

/* What a thread found last: a kernel touches the same ranges again and again. */
static __thread struct {
    uint64_t        changes; /* when they were found; 0: nothing */
    unsigned        next;
    struct xs_range ranges[4];
} recent;

#define HOST_ARENA (&arenas[XS_MAX_DEVICES])

/* Index of the first range that begins behind address. */
static size_t behind(uintptr_t address)
{
    size_t low = 0;
    size_t high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (table[middle].base <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct xs_range *find(const void *ptr)
{
    size_t i = behind((uintptr_t)ptr);

    if ((i == 0) || ((uintptr_t)ptr - table[i - 1].base >= table[i - 1].size)) {
        return NULL;
    }
    return &table[i - 1];
}

static void changed(void)
{
    __atomic_add_fetch(&changes, 1, __ATOMIC_RELEASE);
}

static bool insert(const struct xs_range *range)
{
    size_t at = behind(range->base);

    if (count == room) {
        size_t           more = (room == 0) ? 64 : room * 2;
        struct xs_range *bigger = realloc(table, more * sizeof(*table));

        if (bigger == NULL) {
            return false;
        }
        table = bigger;
        room = more;
    }
    xs_live(range->imported ? XS_LIVE_MAPPING : XS_LIVE_ALLOCATION, 1);
    memmove(&table[at + 1], &table[at], (count - at) * sizeof(*table));
    table[at] = *range;
    count++;
    changed();
    return true;
}

static void erase(const struct xs_range *range)
{
    size_t at = (size_t)(range - table);

    xs_live(range->imported ? XS_LIVE_MAPPING : XS_LIVE_ALLOCATION, -1);
    memmove(&table[at], &table[at + 1], (count - at - 1) * sizeof(*table));
    count--;
    changed();
}

/* Where the ids are in the file of an arena. */
static size_t ids_at(size_t size)
{
    return (size + XS_ALIGNMENT - 1) / XS_ALIGNMENT * XS_ALIGNMENT;
}

static enum xs_error arena_make(struct arena *arena, bool device)
{
    size_t size = xs_config()->memory;
    size_t whole = ids_at(size) + (size / XS_ALIGNMENT + 1) * sizeof(uint64_t);
    int    fd = xs_file_create(device ? "xccl-sim-device" : "xccl-sim-host", whole);
    void  *alias;
    void  *visible;

    if (fd < 0) {
        return XS_OPERATING_SYSTEM;
    }
    alias = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (alias == MAP_FAILED) {
        close(fd);
        return XS_OPERATING_SYSTEM;
    }
    visible = alias;
    if (device) {
        visible = mmap(NULL, size, PROT_NONE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    }
    if (visible == MAP_FAILED) {
        munmap(alias, whole);
        close(fd);
        return XS_OPERATING_SYSTEM;
    }
    madvise(alias, whole, MADV_DONTDUMP);
    size_t used = arena->used; /* by what is not in it */
    *arena =
        (struct arena){.fd = fd, .visible = visible, .alias = alias, .size = size, .used = used};
    arena->blocks = device ? calloc(size / XS_BLOCK + 1, sizeof(*arena->blocks)) : NULL;
    arena->ids = (uint64_t *)(void *)(arena->alias + ids_at(size));
    return (!device || (arena->blocks != NULL)) ? XS_OK : XS_OUT_OF_MEMORY;
}

/* A range begins or ends in the blocks where it lies; the number of the first one's memory. */
static uint32_t count_blocks(const struct arena *arena, const struct xs_range *range, int change)
{
    size_t first = range->place.offset / XS_BLOCK;
    size_t last = (range->place.offset + range->size - 1) / XS_BLOCK;

    for (size_t i = first; (arena->blocks != NULL) && (i <= last); i++) {
        struct block *block = &arena->blocks[i];

        block->renewed += ((change > 0) && (block->ranges == 0));
        block->ranges += (uint32_t)change;
    }
    return (arena->blocks != NULL) ? arena->blocks[first].renewed : 0;
}

/* Pinned memory has pages of its own, which its context takes along. */
static size_t alignment_in(const struct arena *arena)
{
    return (arena == HOST_ARENA) ? (size_t)sysconf(_SC_PAGESIZE) : XS_ALIGNMENT;
}

/* First gap of at least bytes; 0: none. */
static uintptr_t first_fit(const struct arena *arena, size_t bytes)
{
    uintptr_t base = (uintptr_t)arena->visible;
    uintptr_t end = base + arena->size;
    uintptr_t at = base;
    size_t    align = alignment_in(arena);

    for (size_t i = behind(base - 1); (i < count) && (table[i].base < end); i++) {
        if ((table[i].base >= at) && (table[i].base - at >= bytes)) {
            return at;
        }
        at = (table[i].base + table[i].size + align - 1) & ~(uintptr_t)(align - 1);
    }
    return ((at < end) && (end - at >= bytes)) ? at : 0;
}

/* With the lock held for writing. */
static enum xs_error allocate(struct xs_range *range)
{
    struct arena *arena = (range->kind == XS_MEM_DEVICE) ? &arenas[range->device] : HOST_ARENA;
    enum xs_error res = XS_OK;

    if (arena->visible == NULL) {
        res = arena_make(arena, range->kind == XS_MEM_DEVICE);
    }
    if (res != XS_OK) {
        return res;
    }
    range->base = first_fit(arena, range->size);
    if (range->base == 0) {
        return XS_OUT_OF_MEMORY;
    }
    size_t offset = range->base - (uintptr_t)arena->visible;
    range->alias = arena->alias + offset;
    range->place = (struct xs_place){xs_process_number(), arena->fd,
                                     xs_process_start(xs_process_number()), offset};
    range->id = next_id++;
    range->block = count_blocks(arena, range, 1);
    if (!insert(range)) {
        count_blocks(arena, range, -1);
        return XS_OUT_OF_MEMORY;
    }
    if (arena->closed) {
        mprotect((void *)range->base, range->size, PROT_READ | PROT_WRITE);
    }
    arena->used += range->size;
    __atomic_store_n(&arena->ids[offset / XS_ALIGNMENT], range->id, __ATOMIC_RELEASE);
    return XS_OK;
}

enum xs_error xs_mem_take(struct xs_ctx *ctx, enum xs_kind kind, size_t bytes, unsigned flags,
                          void **ptr_p)
{
    struct xs_range range = {
        .size = bytes, .kind = kind, .flags = flags, .device = ctx->device, .ctx = ctx};

    if ((bytes == 0) || (ptr_p == NULL)) {
        return XS_INVALID_VALUE;
    }
    if (((kind == XS_MEM_DEVICE) && xs_fault(XS_FAULT_ALLOC, NULL)) ||
        (bytes > xs_config()->memory)) {
        return XS_OUT_OF_MEMORY;
    }
    pthread_rwlock_wrlock(&lock);
    enum xs_error res = allocate(&range);
    pthread_rwlock_unlock(&lock);
    if (res == XS_OK) {
        *ptr_p = (void *)range.base;
    }
    return res;
}

static enum xs_error check(void)
{
    enum xs_error res = xs_capture_guard();

    return (res == XS_OK) ? xs_crashed() : res;
}

enum xs_error xs_mem_alloc(struct xs_ctx *ctx, enum xs_kind kind, size_t bytes, unsigned flags,
                           void **ptr_p)
{
    enum xs_error res = check();

    if (res != XS_OK) {
        return res;
    }
    xs_ctx_pass(ctx);
    if (xs_config()->alloc_waits) {
        xs_ctx_sync(ctx);
    }
    return xs_mem_take(ctx, kind, bytes, flags, ptr_p);
}

/* ---- for virtual.c and ipc.c ---- */

void xs_ranges_lock(void)
{
    pthread_rwlock_wrlock(&lock);
}

void xs_ranges_unlock(void)
{
    pthread_rwlock_unlock(&lock);
}

struct xs_range *xs_ranges_find(const void *ptr)
{
    return find(ptr);
}

struct xs_range *xs_ranges_next(uintptr_t address)
{
    size_t i = behind(address - 1);

    return (i < count) ? &table[i] : NULL;
}

bool xs_ranges_add(struct xs_range *range)
{
    range->id = next_id++;
    return insert(range);
}

void xs_ranges_remove(const struct xs_range *range)
{
    erase(range);
}

void xs_ranges_changed(void)
{
    changed();
}

bool xs_ranges_use(int device, size_t bytes)
{
    bool fits = (bytes <= xs_config()->memory) &&
                (arenas[device].used <= (size_t)xs_config()->memory - bytes);

    arenas[device].used += fits ? bytes : 0;
    return fits;
}

void xs_ranges_unuse(int device, size_t bytes)
{
    arenas[device].used -= bytes;
}

size_t xs_ranges_ids(int device)
{
    return ids_at(arenas[device].size);
}

/* Give whole pages inside a freed block back to the system. */
static void give_back(const struct arena *arena, const struct xs_range *range)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t first = (range->place.offset + page - 1) & ~(page - 1);
    size_t end = (range->place.offset + range->size) & ~(page - 1);

    if ((range->size >= PUNCH_FROM) && (end > first)) {
        fallocate(arena->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)first,
                  (off_t)(end - first));
    }
}

static bool clear(const struct arena *arena, size_t offset, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), end = offset + bytes;
    size_t first = (offset + page - 1) & ~(page - 1), last = end & ~(page - 1);

    if (fallocate(arena->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)first,
                  (off_t)(last - first)) != 0) {
        return false;
    }
    memset(arena->alias + offset, 0, first - offset);
    memset(arena->alias + last, 0, end - last);
    return true;
}

bool xs_mem_clear(void *alias, size_t bytes)
{
    bool done = false;

    pthread_rwlock_rdlock(&lock);
    for (int i = 0; (bytes >= PUNCH_FROM) && !done && (i <= XS_MAX_DEVICES); i++) {
        size_t offset = (uintptr_t)alias - (uintptr_t)arenas[i].alias;
        done = (arenas[i].alias != NULL) && (offset < arenas[i].size) &&
               clear(&arenas[i], offset, bytes);
    }
    pthread_rwlock_unlock(&lock);
    return done;
}

static void release(struct xs_range *range)
{
    if (range->imported) {
        xs_ipc_unmap(range);
        return;
    }
    if (range->kind != XS_MEM_REGISTERED) {
        struct arena *arena = (range->kind == XS_MEM_DEVICE) ? &arenas[range->device] : HOST_ARENA;

        arena->used -= range->size;
        __atomic_store_n(&arena->ids[range->place.offset / XS_ALIGNMENT], 0, __ATOMIC_RELEASE);
        count_blocks(arena, range, -1);
        give_back(arena, range);
    }
    erase(range);
}

enum xs_error xs_mem_release(void *ptr, enum xs_kind kind)
{
    enum xs_error res = XS_INVALID_VALUE;

    pthread_rwlock_wrlock(&lock);
    struct xs_range *range = find(ptr);
    if ((range != NULL) && (range->base == (uintptr_t)ptr) && !range->imported &&
        (range->reservation == NULL) &&
        ((range->kind == kind) || ((kind == XS_MEM_DEVICE) && (range->kind == XS_MEM_MANAGED)))) {
        release(range);
        res = XS_OK;
    }
    pthread_rwlock_unlock(&lock);
    return res;
}

static void release_it(void *id)
{
    pthread_rwlock_wrlock(&lock);
    for (size_t i = 0; i < count; i++) {
        if (table[i].id == (uint64_t)(uintptr_t)id) {
            release(&table[i]);
            break;
        }
    }
    pthread_rwlock_unlock(&lock);
}

enum xs_error xs_mem_release_async(struct xs_stream *stream, const struct xs_range *range)
{
    return xs_call_async(stream, release_it, (void *)(uintptr_t)range->id);
}

enum xs_error xs_mem_free(void *ptr, enum xs_kind kind)
{
    struct xs_range range;
    enum xs_error   res = check();

    if (res != XS_OK) {
        return res;
    }
    if (xs_mem_find(ptr, &range) && (range.base == (uintptr_t)ptr) && (range.ctx != NULL)) {
        xs_ctx_sync_alone(range.ctx);
        res = xs_mem_release(ptr, kind);
        xs_ctx_sync_alone_end(range.ctx);
        return res;
    }
    return xs_mem_release(ptr, kind);
}

/* Nobody can touch pinned memory of a context that is gone. */
static void close_pages(const struct xs_range *range)
{
    if (!range->imported && ((range->kind == XS_MEM_HOST) || (range->kind == XS_MEM_MANAGED))) {
        HOST_ARENA->closed = true;
        mprotect((void *)range->base, range->size, PROT_NONE);
    }
}

void xs_mem_free_all(struct xs_ctx *ctx)
{
    pthread_rwlock_wrlock(&lock);
    for (size_t i = count; i-- > 0;) {
        if (table[i].ctx == ctx) {
            close_pages(&table[i]);
            release(&table[i]);
        }
    }
    pthread_rwlock_unlock(&lock);
}

enum xs_error xs_mem_register(struct xs_ctx *ctx, void *ptr, size_t bytes, unsigned flags)
{
    struct xs_range range = {.base = (uintptr_t)ptr,
                             .size = bytes,
                             .kind = XS_MEM_REGISTERED,
                             .flags = flags,
                             .device = ctx->device,
                             .ctx = ctx,
                             .alias = ptr};
    enum xs_error   res = XS_OK;

    if ((ptr == NULL) || (bytes == 0)) {
        return XS_INVALID_VALUE;
    }
    pthread_rwlock_wrlock(&lock);
    size_t next = behind((uintptr_t)ptr);
    if ((find(ptr) != NULL) || ((next < count) && (table[next].base < range.base + bytes))) {
        res = XS_HOST_ALREADY_REGISTERED;
    } else {
        range.id = next_id++;
        res = insert(&range) ? XS_OK : XS_OUT_OF_MEMORY;
    }
    pthread_rwlock_unlock(&lock);
    return res;
}

static enum xs_error forget_registered(const void *ptr)
{
    enum xs_error res = XS_HOST_NOT_REGISTERED;

    pthread_rwlock_wrlock(&lock);
    struct xs_range *range = find(ptr);
    if ((range != NULL) && (range->base == (uintptr_t)ptr) && (range->kind == XS_MEM_REGISTERED)) {
        release(range);
        res = XS_OK;
    }
    pthread_rwlock_unlock(&lock);
    return res;
}

enum xs_error xs_mem_unregister(void *ptr)
{
    struct xs_range range;

    if (!xs_mem_find(ptr, &range) || (range.kind != XS_MEM_REGISTERED)) {
        return XS_HOST_NOT_REGISTERED;
    }
    xs_ctx_sync_alone(range.ctx);
    enum xs_error res = forget_registered(ptr);
    xs_ctx_sync_alone_end(range.ctx);
    return res;
}

static const struct xs_range *find_recent(const void *ptr)
{
    if (recent.changes != __atomic_load_n(&changes, __ATOMIC_ACQUIRE)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof(recent.ranges) / sizeof(recent.ranges[0]); i++) {
        if ((uintptr_t)ptr - recent.ranges[i].base < recent.ranges[i].size) {
            return &recent.ranges[i];
        }
    }
    return NULL;
}

/* With the lock held. */
static void keep_recent(const struct xs_range *range)
{
    if (recent.changes != changes) {
        memset(&recent, 0, sizeof(recent));
        recent.changes = changes;
    }
    recent.ranges[recent.next++ % (sizeof(recent.ranges) / sizeof(recent.ranges[0]))] = *range;
}

bool xs_mem_find(const void *ptr, struct xs_range *range_p)
{
    const struct xs_range *range = find_recent(ptr);

    if (range != NULL) {
        *range_p = *range;
        return true;
    }
    pthread_rwlock_rdlock(&lock);
    range = find(ptr);
    if (range != NULL) {
        keep_recent(range);
        *range_p = *range;
    }
    pthread_rwlock_unlock(&lock);
    return range != NULL;
}

uint64_t xs_mem_newest(void)
{
    pthread_rwlock_rdlock(&lock);
    uint64_t newest = next_id - 1;
    pthread_rwlock_unlock(&lock);
    return newest;
}

enum xs_error xs_mem_sync_memops(const void *ptr, bool on)
{
    enum xs_error res = XS_OK;

    pthread_rwlock_wrlock(&lock);
    struct xs_range *range = find(ptr);
    if ((range == NULL) || (range->kind != XS_MEM_DEVICE)) {
        res = XS_INVALID_VALUE;
    } else if (((range->flags & XS_MEM_POOL) != 0) || (range->reservation != NULL)) {
        res = XS_NOT_SUPPORTED;
    } else {
        range->sync_memops = on;
        changed();
    }
    pthread_rwlock_unlock(&lock);
    return res;
}

enum xs_error xs_mem_arena(int device, uintptr_t *base_p, size_t *bytes_p)
{
    struct arena *arena = &arenas[device];
    enum xs_error res = XS_OK;

    pthread_rwlock_wrlock(&lock);
    if (arena->visible == NULL) {
        res = arena_make(arena, true);
    }
    pthread_rwlock_unlock(&lock);
    *base_p = (uintptr_t)arena->visible;
    *bytes_p = arena->size;
    return res;
}

void xs_mem_info(int device, size_t *free_p, size_t *total_p)
{
    pthread_rwlock_rdlock(&lock);
    *total_p = xs_config()->memory;
    *free_p = *total_p - arenas[device].used;
    pthread_rwlock_unlock(&lock);
}

/* Mappings that follow each other, each open to a device. Their aliases follow each other too. */
static bool touches_all(const void *ptr, size_t bytes)
{
    uintptr_t                    at = (uintptr_t)ptr;
    uintptr_t                    end = at + bytes;
    const struct xs_reservation *reservation = NULL;

    pthread_rwlock_rdlock(&lock);
    while (at < end) {
        const struct xs_range *range = find((const void *)at);

        if ((range == NULL) || (range->access == 0) ||
            ((reservation != NULL) && (range->reservation != reservation))) {
            break;
        }
        reservation = range->reservation;
        at = range->base + range->size;
    }
    pthread_rwlock_unlock(&lock);
    return at >= end;
}

void *xs_mem_touch(const void *ptr, size_t bytes, struct xs_range *range_p)
{
    struct xs_range range;

    if (!xs_mem_find(ptr, &range)) {
        range = (struct xs_range){.kind = XS_MEM_HOST, .device = -1};
        *range_p = range;
        return (void *)(uintptr_t)ptr;
    }
    *range_p = range;
    /* Another process has freed it: on a device a stale mapping shows what was there before. */
    if (range.imported && (__atomic_load_n(range.lives, __ATOMIC_ACQUIRE) != range.origin)) {
        return NULL;
    }
    size_t offset = (uintptr_t)ptr - range.base;
    bool   inside = (bytes <= range.size - offset);
    if (range.reservation != NULL) {
        inside = inside ? (range.access != 0) : touches_all(ptr, bytes);
    }
    return inside ? range.alias + offset : NULL;
}

bool xs_mem_reaches(const struct xs_range *range, const struct xs_ctx *ctx)
{
    if ((range->kind != XS_MEM_DEVICE) || range->imported) {
        return true;
    }
    if (range->reservation != NULL) {
        return ((range->access >> ctx->device) & 1) != 0;
    }
    return (range->device == ctx->device) || xs_peer_enabled(ctx, range->device);
}
