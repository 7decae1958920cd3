/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A short file without a name, mapped again and again until the room is long enough: however much
 * is written there, it is never more than that file. Neither the limit of a process's data nor the
 * kernel's account of promised memory counts it.
 */
#include "paths/placeholder.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files.h"

enum { MOST_PIECES = 256 }; /* a process has some 65000 mappings */
static const size_t least_piece = (size_t)2 << 20;

struct xm_placeholder {
    void                  *at;
    size_t                 bytes;
    struct xm_placeholder *next;
};

static xcclResult_t failed(const char *what)
{
    return xc_fail(xcclSystemError, "%s for a placeholder of host memory failed: %s", what,
                   strerror(errno));
}

/* Where the addresses are there already. */
static bool fill(char *at, size_t bytes, int file, size_t piece)
{
    for (size_t done = 0; done < bytes; done += piece) {
        size_t length = (bytes - done < piece) ? (bytes - done) : piece;
        if (mmap(at + done, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) ==
            MAP_FAILED) {
            return false;
        }
    }
    return true;
}

static xcclResult_t map(struct xm_placeholder *p)
{
    size_t piece = (p->bytes / MOST_PIECES / least_piece + 1) * least_piece;
    int    file = memfd_create("xccl-placeholder", MFD_CLOEXEC);

    if (file < 0) {
        return failed("memfd_create");
    }
    xcclResult_t res =
        (xc_file_lengthen(file, (off_t)piece) == 0) ? xcclSuccess : failed("ftruncate");
    if (res == xcclSuccess) {
        p->at = mmap(NULL, p->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        res = (p->at != MAP_FAILED) ? xcclSuccess : failed("mmap");
    }
    if ((res == xcclSuccess) && !fill(p->at, p->bytes, file, piece)) {
        res = failed("mmap");
        munmap(p->at, p->bytes);
    }
    close(file);
    return res;
}

xcclResult_t xm_placeholder_take(struct xm_placeholder **list, size_t bytes, void **ptr_p)
{
    struct xm_placeholder *p = malloc(sizeof(*p));

    if (p == NULL) {
        return xc_fail(xcclSystemError, "out of memory");
    }
    *p = (struct xm_placeholder){NULL, (bytes > 0) ? bytes : 1, *list};
    xcclResult_t res = map(p);
    if (res != xcclSuccess) {
        free(p);
        return res;
    }
    *list = p;
    *ptr_p = p->at;
    return xcclSuccess;
}

void xm_placeholder_free(struct xm_placeholder **list)
{
    while (*list != NULL) {
        struct xm_placeholder *p = *list;
        *list = p->next;
        munmap(p->at, p->bytes);
        free(p);
    }
}
