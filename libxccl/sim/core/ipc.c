/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of other processes: handles, and what is mapped by them. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/ranges.h"

#define IPC_MAGIC 0x63636c78696d7331ULL

struct ipc_handle {
    uint64_t        magic;
    struct xs_place place;
    uint64_t        size;
    uint64_t        id;
    int32_t         node;
    uint32_t        block;
    uint64_t        ids; /* where they are in the file */
};
_Static_assert(sizeof(struct ipc_handle) <= 64, "a handle has 64 bytes");

enum xs_error xs_ipc_export(const void *ptr, unsigned char handle[64])
{
    struct xs_range   range;
    struct ipc_handle made = {.magic = IPC_MAGIC, .node = xs_config()->node};

    if (xs_crashed() != XS_OK) {
        return xs_crashed();
    }
    /* Pools, and what the program maps itself, have handles of other kinds. */
    if (!xs_mem_find(ptr, &range) || (range.kind != XS_MEM_DEVICE) || range.imported ||
        ((range.flags & XS_MEM_POOL) != 0) || (range.reservation != NULL)) {
        return XS_INVALID_VALUE;
    }
    made.place = range.place;
    made.size = range.size;
    /* HIP promises no other handle for what lies at the same place later. */
    made.id = (xs_config()->flavour == XS_CUDA) ? range.id : 0;
    made.block = range.block;
    made.ids = xs_ranges_ids(range.device);
    memset(handle, 0, 64);
    memcpy(handle, &made, sizeof(made));
    return XS_OK;
}

/*
 * As CUDA's driver: what was freed where the new memory lies, or with the rest of its block, is
 * still mapped. With the lock held.
 */
static bool is_mapped_still(const struct ipc_handle *made)
{
    const struct xs_place *place = &made->place;
    bool                   found = false;

    for (const struct xs_range *r = xs_ranges_next(1); (r != NULL) && !found;
         r = xs_ranges_next(r->base + 1)) {
        uint64_t at = r->place.offset;
        bool     apart = (at + r->size <= place->offset) || (place->offset + made->size <= at);

        if (r->imported && (r->place.pid == place->pid) && (r->place.start == place->start) &&
            (r->place.fd == place->fd)) {
            found = (!apart && (r->origin != made->id)) ||
                    ((at / XS_BLOCK == place->offset / XS_BLOCK) && (r->block != made->block));
        }
    }
    return found && (xs_config()->flavour == XS_CUDA);
}

enum xs_error xs_ipc_import(struct xs_ctx *ctx, const unsigned char handle[64], void **ptr_p)
{
    struct ipc_handle made;
    struct xs_range   range = {
          .kind = XS_MEM_DEVICE, .imported = true, .device = ctx->device, .ctx = ctx};
    size_t into;

    memcpy(&made, handle, sizeof(made));
    if (xs_crashed() != XS_OK) {
        return xs_crashed();
    }
    if (xs_fault(XS_FAULT_IPC, NULL)) {
        return XS_MAP_FAILED;
    }
    if (made.magic != IPC_MAGIC) {
        return XS_INVALID_VALUE;
    }
    if (made.node != xs_config()->node) {
        return XS_MAP_FAILED; /* a pretend one, whose host memory is this one's all the same */
    }
    if (made.place.pid == xs_process_number()) {
        return XS_INVALID_CONTEXT; /* as the runtimes say of the process that made the handle */
    }
    xs_ranges_lock();
    bool stale = is_mapped_still(&made);
    xs_ranges_unlock();
    if (stale) {
        return XS_ALREADY_MAPPED;
    }
    into = made.place.offset & ((size_t)sysconf(_SC_PAGESIZE) - 1);
    unsigned char *file = xs_place_map(&made.place);
    if (file == NULL) {
        return XS_MAP_FAILED;
    }
    void *visible =
        mmap(NULL, made.size + into, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (visible == MAP_FAILED) {
        return XS_MAP_FAILED;
    }
    range.base = (uintptr_t)visible + into;
    range.size = made.size;
    range.alias = file + made.place.offset;
    range.place = made.place;
    range.block = made.block;
    range.lives =
        (const uint64_t *)(const void *)(file + made.ids) + made.place.offset / XS_ALIGNMENT;
    range.origin = (made.id != 0) ? made.id : __atomic_load_n(range.lives, __ATOMIC_ACQUIRE);
    xs_ranges_lock();
    bool good = xs_ranges_add(&range);
    xs_ranges_unlock();
    if (!good) {
        munmap(visible, made.size + into);
        return XS_OUT_OF_MEMORY;
    }
    *ptr_p = (void *)range.base;
    return XS_OK;
}

void xs_ipc_unmap(const struct xs_range *range)
{
    uintptr_t within = range->base & ((uintptr_t)sysconf(_SC_PAGESIZE) - 1);

    munmap((void *)(range->base - within), range->size + within);
    xs_ranges_remove(range);
}

static enum xs_error close_import(const void *ptr)
{
    enum xs_error res = XS_INVALID_VALUE;

    xs_ranges_lock();
    struct xs_range *range = xs_ranges_find(ptr);
    if ((range != NULL) && range->imported && (range->base == (uintptr_t)ptr)) {
        xs_ipc_unmap(range);
        res = XS_OK;
    }
    xs_ranges_unlock();
    return res;
}

/* As the real driver does, it waits for all that the device is given. */
enum xs_error xs_ipc_close(void *ptr)
{
    struct xs_range closing;
    enum xs_error   res = xs_crashed();

    if ((res != XS_OK) || !xs_mem_find(ptr, &closing) || !closing.imported) {
        return (res != XS_OK) ? res : XS_INVALID_VALUE;
    }
    xs_ctx_sync_alone(closing.ctx);
    res = close_import(ptr);
    xs_ctx_sync_alone_end(closing.ctx);
    return res;
}
