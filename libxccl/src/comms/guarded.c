/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/guarded.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Just before what is given out. */
struct head {
    void  *begin;
    size_t bytes; /* of the mapping, with the page that is none; 0: it is of the heap */
};

enum {
    ALIGNMENT = 16,
    /*
     * Each takes two of the mappings that a process may have (vm.max_map_count, 65,530 by default),
     * and tens of thousands of agreements can be under way. Without any left malloc() fails, too.
     */
    MOST_GUARDED = 4096,
    /*
     * Mappings are kept for later: what hooks into munmap(), as UCX does for its cache, may keep
     * 150 bytes of each for ever (MPICH 4.3), and every agreement would take two.
     */
    MOST_KEPT = 64
};

static int             guarded; /* atomic: given out and not freed */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char           *kept[MOST_KEPT]; /* each of one page, and that which is none */
static int             num_kept;
_Static_assert(sizeof(struct head) % ALIGNMENT == 0, "what follows is aligned");

static size_t rounded_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static void *of_the_heap(size_t room)
{
    struct head *head = calloc(1, sizeof(*head) + room);

    if (head == NULL) {
        return NULL;
    }
    *head = (struct head){head, 0};
    return head + 1;
}

/* NULL: none is there. */
static char *take_kept(void)
{
    pthread_mutex_lock(&lock);
    char *at = (num_kept > 0) ? kept[--num_kept] : NULL;
    pthread_mutex_unlock(&lock);
    return at;
}

static bool keep(char *at)
{
    pthread_mutex_lock(&lock);
    bool room = (num_kept < MOST_KEPT);
    if (room) {
        kept[num_kept++] = at;
    }
    pthread_mutex_unlock(&lock);
    return room;
}

static char *map(size_t used, size_t page)
{
    char *at = mmap(NULL, used + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED) {
        return NULL;
    }
    mprotect(at + used, page, PROT_NONE); /* refused: it is memory as any other */
    return at;
}

static void *of_a_mapping(size_t room)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t used = rounded_up(sizeof(struct head) + room, page);
    char  *at = (used == page) ? take_kept() : NULL;

    if (at != NULL) {
        memset(at, 0, used);
    } else {
        at = map(used, page);
    }
    if (at == NULL) {
        return NULL;
    }
    char        *memory = at + used - room;
    struct head *head = (struct head *)memory - 1;
    *head = (struct head){at, used + page};
    return memory;
}

void *xm_guarded_alloc(size_t bytes)
{
    size_t room = rounded_up(bytes, ALIGNMENT);
    void  *memory = NULL;

    if ((room < bytes) || (room > SIZE_MAX / 2)) {
        return NULL;
    }
    if (__atomic_add_fetch(&guarded, 1, __ATOMIC_RELAXED) <= MOST_GUARDED) {
        memory = of_a_mapping(room);
    }
    if (memory == NULL) {
        __atomic_sub_fetch(&guarded, 1, __ATOMIC_RELAXED);
        memory = of_the_heap(room);
    }
    return memory;
}

void xm_guarded_free(void *memory)
{
    if (memory == NULL) {
        return;
    }
    struct head *head = (struct head *)memory - 1;
    if (head->bytes == 0) {
        free(head->begin);
        return;
    }
    if ((head->bytes != 2 * (size_t)sysconf(_SC_PAGESIZE)) || !keep(head->begin)) {
        munmap(head->begin, head->bytes);
    }
    __atomic_sub_fetch(&guarded, 1, __ATOMIC_RELAXED);
}
