/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/pages.h"

#include <stdint.h>
#include <sys/mman.h>

static void *map(size_t bytes, int flags)
{
    void *at =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    return (at == MAP_FAILED) ? NULL : at;
}

void *xm_pages_map(size_t bytes)
{
    const uintptr_t huge = XM_PAGES_HUGE;
    char           *at = (bytes <= SIZE_MAX - huge) ? map(bytes + huge, 0) : NULL;

    if (at == NULL) {
        return NULL;
    }
    size_t before = (size_t)(-(uintptr_t)at % huge); /* its first huge page */
    if (before > 0) {
        munmap(at, before);
    }
    at += before;
    munmap(at + bytes, huge - before);
    madvise(at, bytes, MADV_HUGEPAGE);
    madvise(at, bytes, MADV_DONTFORK);
    return at;
}

/* Of one page that is written to a huge one would clear 2 MiB. */
void *xm_pages_map_lazily(size_t bytes)
{
    void *at = map(bytes, MAP_NORESERVE);

    if (at != NULL) {
        madvise(at, bytes, MADV_NOHUGEPAGE);
    }
    return at;
}

void xm_pages_unmap(void *at, size_t bytes)
{
    munmap(at, bytes);
}
