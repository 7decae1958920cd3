/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Included in front of MPICH's tests, so that what they allocate is managed memory, or with
 * SUITE_MALLOC=device simulated device memory that the host may touch.
 */
#ifndef MT_SUITE_MALLOC_H
#define MT_SUITE_MALLOC_H

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "cuda_runtime_api.h"

enum { SUITE_BLOCKS = 1 << 16, SUITE_PAGE = 4096 };

struct suite_block {
    void  *start; /* NULL where there is none */
    size_t bytes;
};

struct suite_heap {
    pthread_mutex_t    lock;
    int                last; /* of the blocks in use */
    struct suite_block blocks[SUITE_BLOCKS];
};

/* One for all files of a program. */
__attribute__((weak)) struct suite_heap suite_heap = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline void *suite_take(size_t bytes)
{
    const char *kind = getenv("SUITE_MALLOC");
    void       *start = NULL;
    size_t      padded = (bytes + SUITE_PAGE) / SUITE_PAGE * SUITE_PAGE;

    if ((kind == NULL) || (strcmp(kind, "device") != 0)) {
        return (cudaMallocManaged(&start, bytes, cudaMemAttachGlobal) == 0) ? start : NULL;
    }
    /* The simulation maps device memory without access. Blocks share pages: one may be opened by
     * several, and none is closed. */
    if (cudaMalloc(&start, padded) != 0) {
        return NULL;
    }
    mprotect((void *)((uintptr_t)start / SUITE_PAGE * SUITE_PAGE), padded + SUITE_PAGE,
             PROT_READ | PROT_WRITE);
    return start;
}

static inline void *suite_malloc(size_t bytes)
{
    void *start;
    int   i = 0;

    pthread_mutex_lock(&suite_heap.lock);
    while ((i < SUITE_BLOCKS) && (suite_heap.blocks[i].start != NULL)) {
        i++;
    }
    start = (i < SUITE_BLOCKS) ? suite_take(bytes) : NULL;
    if (start != NULL) {
        suite_heap.blocks[i] = (struct suite_block){start, bytes};
        suite_heap.last = (i > suite_heap.last) ? i : suite_heap.last;
    }
    pthread_mutex_unlock(&suite_heap.lock);
    return start;
}

static inline void *suite_calloc(size_t count, size_t bytes)
{
    void *start = suite_malloc(count * bytes);

    return (start != NULL) ? memset(start, 0, count * bytes) : NULL;
}

/* Forget a block, and say how large it was; false for memory of the C library's. */
static inline int suite_forget(void *start, size_t *bytes_p)
{
    int found = 0;

    pthread_mutex_lock(&suite_heap.lock);
    for (int i = 0; (start != NULL) && (i <= suite_heap.last) && !found; i++) {
        if (suite_heap.blocks[i].start == start) {
            *bytes_p = suite_heap.blocks[i].bytes;
            suite_heap.blocks[i].start = NULL;
            found = 1;
        }
    }
    pthread_mutex_unlock(&suite_heap.lock);
    return found;
}

static inline void suite_free(void *start)
{
    size_t bytes;

    if (suite_forget(start, &bytes)) {
        cudaFree(start);
    } else {
        free(start);
    }
}

static inline void *suite_realloc(void *start, size_t bytes)
{
    size_t before = 0;
    void  *made = suite_malloc(bytes);

    if (suite_forget(start, &before)) {
        memcpy(made, start, (before < bytes) ? before : bytes);
        cudaFree(start);
    } else if (start != NULL) {
        abort(); /* no test does */
    }
    return made;
}

#define malloc suite_malloc
#define calloc suite_calloc
#define realloc suite_realloc
#define free suite_free

#endif
