/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded into a program that knows nothing of devices: what it and its libraries allocate lies
 * in simulated device memory that the host may touch, as on GPUs that share the host's page tables.
 * What MPI, xccl and the simulation allocate stays host memory.
 *
 *   DEVICE_HEAP_MIB=<n>     device memory for each rank, 512 by default; what is more is the host's
 *   DEVICE_HEAP_LEAST=<n>   smaller blocks are the host's, 16 bytes by default
 *
 * Each rank says at its end how many blocks there were. Outside of mpirun there are none.
 */
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The C library's own, under the names that it has for those who replace them. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void  __libc_free(void *block);

enum { SMALLEST = 64, CLASSES = 64, PAGES = 4096, FREED = 0xee };

enum state { UNTRIED, ABSENT, USABLE };

/* In front of each block. */
struct head {
    void    *begin; /* of its room */
    size_t   bytes; /* that were asked for */
    uint64_t size_class;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static enum state      state; /* atomic */
static char           *heap, *unused, *heap_end;
static void           *idle[CLASSES];
static unsigned long   blocks;
/* Of pages with code: the number of the page, and in the lowest bit whether device memory is for
 * it. Atomic. */
static uintptr_t     callers[PAGES];
static __thread bool inside; /* what is called from here allocates as ever */

static size_t setting(const char *name, size_t otherwise)
{
    const char *text = getenv(name);

    return (text != NULL) ? strtoul(text, NULL, 10) : otherwise;
}

static const char *own_rank(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    return (rank != NULL) ? rank : getenv("PMI_RANK");
}

static int open_device(const char *rank, size_t bytes)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    void *context, *memory;
    int   devices = 0;

    if (library == NULL) {
        return -1;
    }
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    int (*count)(int *) = (int (*)(int *))dlsym(library, "cuDeviceGetCount");
    int (*retain)(void **, int) = (int (*)(void **, int))dlsym(library, "cuDevicePrimaryCtxRetain");
    int (*set)(void *) = (int (*)(void *))dlsym(library, "cuCtxSetCurrent");
    int (*allocate)(void **, size_t) = (int (*)(void **, size_t))dlsym(library, "cuMemAlloc_v2");
    if ((init(0) != 0) || (count(&devices) != 0) || (devices == 0) ||
        (retain(&context, atoi(rank) % devices) != 0) || (set(context) != 0) ||
        (allocate(&memory, bytes) != 0)) {
        return -1;
    }
    heap = unused = memory;
    heap_end = heap + bytes;
    return mprotect(heap, bytes, PROT_READ | PROT_WRITE);
}

/* With the lock held. */
static enum state begin(void)
{
    const char *rank = own_rank();
    enum state  now = ABSENT;

    if (rank != NULL) {
        now = (open_device(rank, setting("DEVICE_HEAP_MIB", 512) << 20) == 0) ? USABLE : ABSENT;
        if (now == ABSENT) {
            fprintf(stderr, "device heap: no simulated CUDA device can be used\n");
        }
    }
    __atomic_store_n(&state, now, __ATOMIC_RELEASE);
    return now;
}

static void __attribute__((destructor)) end(void)
{
    if (blocks > 0) {
        fprintf(stderr, "device heap: %lu blocks\n", blocks);
    }
}

/* Powers of two, and three halves of them. */
static uint64_t class_of(size_t bytes, size_t *room_p)
{
    uint64_t size_class = 0;
    size_t   room = SMALLEST;

    while (room < bytes) {
        size_class++;
        room = (size_class % 2 == 1) ? (room / 2) * 3 : (room / 3) * 4;
    }
    *room_p = room;
    return size_class;
}

static void *take_room(uint64_t size_class, size_t room)
{
    char *begins = NULL;

    pthread_mutex_lock(&lock);
    if ((state == USABLE) || ((state == UNTRIED) && (begin() == USABLE))) {
        begins = idle[size_class];
        if (begins != NULL) {
            memcpy(&idle[size_class], begins, sizeof(void *));
        } else if (room <= (size_t)(heap_end - unused)) {
            begins = unused;
            unused += room;
        }
        blocks += (begins != NULL);
    }
    pthread_mutex_unlock(&lock);
    return begins;
}

static void *take(size_t bytes, size_t alignment)
{
    size_t room, align = (alignment > SMALLEST) ? alignment : SMALLEST;

    if (bytes > (size_t)1 << 40) {
        return NULL;
    }
    uint64_t size_class = class_of(bytes + align + sizeof(struct head), &room);
    inside = true;
    char *begins = take_room(size_class, room);
    inside = false;
    if (begins == NULL) {
        return NULL;
    }
    char *block = (char *)(((uintptr_t)begins + sizeof(struct head) + align - 1) & ~(align - 1));
    ((struct head *)block)[-1] = (struct head){begins, bytes, size_class};
    return block;
}

static bool is_ours(const void *block)
{
    return (heap != NULL) && ((const char *)block >= heap) && ((const char *)block < heap_end);
}

/* The numbers of what was freed are to be seen if they are used. */
static void give(void *block)
{
    struct head head = ((struct head *)block)[-1];

    memset(block, FREED, head.bytes);
    pthread_mutex_lock(&lock);
    memcpy(head.begin, &idle[head.size_class], sizeof(void *));
    idle[head.size_class] = head.begin;
    pthread_mutex_unlock(&lock);
}

/* Does this file belong to the program, and not to MPI and what is below it? */
static bool is_application(const char *file)
{
    static const char *const others[] = {
        "libmpi",     "libopen-", "libompi",  "liboshmem", "mca_",    "pmix_",
        "libpmix",    "libpmi",   "libevent", "libhwloc",  "libuc",   "libfabr",
        "libibv",     "librdma",  "libxccl",  "libcuda",   "libnccl", "libc.so",
        "libdl",      "libpthr",  "ld-linux", "libgcc",    "libpsm",  "libnl",
        "libpciacce", "libefa",   "libsanit", "libasan",   "libubsan"};
    const char *slash = strrchr(file, '/');
    const char *name = (slash != NULL) ? slash + 1 : file;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strncmp(name, others[i], strlen(others[i])) == 0) {
            return false;
        }
    }
    return true;
}

static bool is_for(size_t bytes, void *caller)
{
    static size_t least; /* atomic */
    uintptr_t     page = (uintptr_t)caller & ~(uintptr_t)(PAGES - 1);
    uintptr_t    *slot = &callers[(page / PAGES) % PAGES];
    Dl_info       info;

    if (inside || (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == ABSENT)) {
        return false;
    }
    if (__atomic_load_n(&least, __ATOMIC_RELAXED) == 0) {
        __atomic_store_n(&least, setting("DEVICE_HEAP_LEAST", 16), __ATOMIC_RELAXED);
    }
    if (bytes < __atomic_load_n(&least, __ATOMIC_RELAXED)) {
        return false;
    }
    uintptr_t known = __atomic_load_n(slot, __ATOMIC_RELAXED);
    if ((known & ~(uintptr_t)1) != page) {
        inside = true;
        bool found = (dladdr(caller, &info) != 0) && (info.dli_fname != NULL);
        inside = false;
        known = page | (found && is_application(info.dli_fname));
        __atomic_store_n(slot, known, __ATOMIC_RELAXED);
    }
    return (known & 1) != 0;
}

/* NULL: it is the C library's to allocate. */
static void *device_block(size_t bytes, size_t alignment, void *caller)
{
    return is_for(bytes, caller) ? take(bytes, alignment) : NULL;
}

void *malloc(size_t bytes)
{
    void *block = device_block(bytes, 1, __builtin_return_address(0));

    return (block != NULL) ? block : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    size_t all;
    bool   fits = !__builtin_mul_overflow(count, bytes, &all);
    void  *block = fits ? device_block(all, 1, __builtin_return_address(0)) : NULL;

    return (block != NULL) ? memset(block, 0, all) : __libc_calloc(count, bytes);
}

void free(void *block)
{
    if (is_ours(block)) {
        give(block);
    } else {
        __libc_free(block);
    }
}

void *realloc(void *block, size_t bytes)
{
    if (!is_ours(block)) {
        void *first = (block == NULL) ? device_block(bytes, 1, __builtin_return_address(0)) : NULL;
        return (first != NULL) ? first : __libc_realloc(block, bytes);
    }
    if (bytes == 0) {
        give(block);
        return NULL;
    }
    size_t before = ((struct head *)block)[-1].bytes;
    void  *moved = take(bytes, 1);
    if (moved == NULL) {
        moved = __libc_malloc(bytes);
    }
    if (moved != NULL) {
        memcpy(moved, block, (before < bytes) ? before : bytes);
        give(block);
    }
    return moved;
}

void *memalign(size_t alignment, size_t bytes)
{
    void *block = device_block(bytes, alignment, __builtin_return_address(0));

    return (block != NULL) ? block : __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    void *block = device_block(bytes, alignment, __builtin_return_address(0));

    return (block != NULL) ? block : __libc_memalign(alignment, bytes);
}

int posix_memalign(void **block_p, size_t alignment, size_t bytes)
{
    void *block = device_block(bytes, alignment, __builtin_return_address(0));

    if (block == NULL) {
        block = __libc_memalign(alignment, bytes);
    }
    if (block == NULL) {
        return ENOMEM;
    }
    *block_p = block;
    return 0;
}

size_t malloc_usable_size(void *block)
{
    static size_t (*next)(void *); /* atomic */

    if (is_ours(block)) {
        return ((struct head *)block)[-1].bytes;
    }
    if (__atomic_load_n(&next, __ATOMIC_ACQUIRE) == NULL) {
        __atomic_store_n(&next, (size_t(*)(void *))dlsym(RTLD_NEXT, "malloc_usable_size"),
                         __ATOMIC_RELEASE);
    }
    return next(block);
}
