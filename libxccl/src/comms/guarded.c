/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/guarded.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Just before what is given out. */
struct head {
    void  *mapping;
    size_t bytes; /* of the mapping, with the page that is none */
};

enum { ALIGNMENT = 16 };
_Static_assert(sizeof(struct head) % ALIGNMENT == 0, "what follows is aligned");

static size_t rounded_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

void *xm_guarded_alloc(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = rounded_up(bytes, ALIGNMENT);

    if (room > SIZE_MAX / 2) {
        return NULL;
    }
    size_t used = rounded_up(sizeof(struct head) + room, page);
    char  *at = mmap(NULL, used + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        return NULL;
    }
    mprotect(at + used, page, PROT_NONE); /* refused: it is memory as any other */
    char        *memory = at + used - room;
    struct head *head = (struct head *)memory - 1;
    *head = (struct head){at, used + page};
    return memory;
}

void xm_guarded_free(void *memory)
{
    if (memory != NULL) {
        struct head head = ((struct head *)memory)[-1];
        munmap(head.mapping, head.bytes);
    }
}
