/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loader's cache: the libraries in the folders of /etc/ld.so.conf, which dlinfo() does not list
 * among those that are searched. To ask the loader would be to load the library.
 */
#include "vendor/loader_cache.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[] = "glibc-ld.so.cache1.1";

/* Places of texts count from the head, which an older format may precede (glibc before 2.32). */
struct head {
    char     magic[sizeof(magic) - 1];
    uint32_t count, text_bytes, unused[5];
};
struct entry {
    int32_t  flags;
    uint32_t name, path, system;
    uint64_t hardware;
};
_Static_assert((sizeof(struct head) == 48) && (sizeof(struct entry) == 24), "glibc's format");

/* The text at a place of the cache; NULL if it does not end there. */
static const char *text_at(const char *cache, size_t len, uint32_t place)
{
    return ((place < len) && (memchr(cache + place, '\0', len - place) != NULL)) ? cache + place
                                                                                 : NULL;
}

static bool leads_to_file(const char *cache, size_t len, const char *name)
{
    struct head  head;
    struct entry entry;

    memcpy(&head, cache, sizeof(head));
    if (head.count > (len - sizeof(head)) / sizeof(entry)) {
        return false;
    }
    for (uint32_t i = 0; i < head.count; i++) {
        memcpy(&entry, cache + sizeof(head) + i * sizeof(entry), sizeof(entry));
        const char *own = text_at(cache, len, entry.name);
        const char *path = text_at(cache, len, entry.path);
        if ((own != NULL) && (path != NULL) && (strcmp(own, name) == 0) &&
            (access(path, R_OK) == 0)) {
            return true;
        }
    }
    return false;
}

bool xc_loader_cache_has(const char *cache, const char *name)
{
    struct stat st;
    int         fd = open(cache, O_RDONLY | O_CLOEXEC);
    bool        found = false;
    void       *text = MAP_FAILED;

    if ((fd >= 0) && (fstat(fd, &st) == 0) && (st.st_size > 0)) {
        text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    if (text != MAP_FAILED) {
        size_t      size = (size_t)st.st_size;
        const char *begin = memmem(text, size, magic, sizeof(magic) - 1);
        size_t      len = (begin != NULL) ? size - (size_t)(begin - (const char *)text) : 0;
        found = (len >= sizeof(struct head)) && leads_to_file(begin, len, name);
        munmap(text, size);
    }
    if (fd >= 0) {
        close(fd);
    }
    return found;
}
