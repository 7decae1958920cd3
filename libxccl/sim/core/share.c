/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory shared between processes without a name anywhere: files of memfd_create(), which others
 * open through /proc/<pid>/fd. They vanish with the last process that has them. XCCL_SIM_PROC names
 * another /proc, for ranks that do not see each other in theirs.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/core.h"

/* Above what programs expect for their own files. */
#define LOWEST_FD 128

static uint64_t read_start(int pid)
{
    char path[PATH_MAX];
    char text[1024];

    /* Of its first thread: qemu makes up a process's own /proc/<pid>/stat, without this number. */
    snprintf(path, sizeof(path), "%s/%d/task/%d/stat", xs_config()->proc, pid, pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t length = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (length <= 0) {
        return 0;
    }
    text[length] = '\0';
    /* The command's name may hold anything; the fields begin behind its last parenthesis. */
    char *p = strrchr(text, ')');
    if ((p == NULL) || (p[1] != ' ') || (p[2] == 'Z') || (p[2] == 'X')) {
        return 0;
    }
    p += 2;
    for (int field = 3; (field < 22) && (p != NULL); field++) {
        p = strchr(p + 1, ' ');
    }
    return (p == NULL) ? 0 : strtoull(p, NULL, 10) + 1; /* 0 is taken */
}

/* What is asked often of this process itself, and changes with a fork only. */
static struct {
    uint64_t start;  /* atomic */
    int      number; /* atomic: in XCCL_SIM_PROC */
    int      pid;    /* atomic; set last */
} own;

static void know_own(void)
{
    int  pid = getpid();
    char path[PATH_MAX], text[16] = "";

    if (__atomic_load_n(&own.pid, __ATOMIC_ACQUIRE) == pid) {
        return;
    }
    snprintf(path, sizeof(path), "%s/self", xs_config()->proc);
    int number = (readlink(path, text, sizeof(text) - 1) > 0) ? atoi(text) : pid;
    __atomic_store_n(&own.number, number, __ATOMIC_RELAXED);
    __atomic_store_n(&own.start, read_start(number), __ATOMIC_RELAXED);
    __atomic_store_n(&own.pid, pid, __ATOMIC_RELEASE);
}

int xs_process_number(void)
{
    know_own();
    return __atomic_load_n(&own.number, __ATOMIC_RELAXED);
}

uint64_t xs_process_start(int pid)
{
    return (pid == xs_process_number()) ? __atomic_load_n(&own.start, __ATOMIC_RELAXED)
                                        : read_start(pid);
}

int xs_file_create(const char *label, uint64_t size)
{
    int fd = memfd_create(label, MFD_CLOEXEC);

    if (fd < 0) {
        return -1;
    }
    if (ftruncate(fd, (off_t)size) != 0) {
        close(fd);
        return -1;
    }
    int high = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST_FD);
    if (high < 0) {
        return fd; /* few descriptors allowed: the low one serves too */
    }
    close(fd);
    return high;
}

int xs_file_open(int pid, uint64_t start, int fd)
{
    char path[PATH_MAX];

    if (xs_process_start(pid) != start) {
        errno = ESRCH;
        return -1;
    }
    snprintf(path, sizeof(path), "%s/%d/fd/%d", xs_config()->proc, pid, fd);
    return open(path, O_RDWR | O_CLOEXEC);
}

struct mapping {
    struct mapping *next;
    int32_t         pid;
    int32_t         fd;
    uint64_t        start;
    unsigned char  *address;
};

static struct mapping *mappings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static unsigned char *map_file(const struct xs_place *place)
{
    struct stat status;
    void       *address = MAP_FAILED;
    int         fd = xs_file_open(place->pid, place->start, place->fd);

    if (fd < 0) {
        return NULL;
    }
    if ((fstat(fd, &status) == 0) && S_ISREG(status.st_mode)) {
        address = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_NORESERVE, fd, 0);
    }
    close(fd);
    return (address == MAP_FAILED) ? NULL : address;
}

unsigned char *xs_place_map(const struct xs_place *place)
{
    struct mapping *mapping;

    pthread_mutex_lock(&lock);
    for (mapping = mappings; mapping != NULL; mapping = mapping->next) {
        if ((mapping->pid == place->pid) && (mapping->fd == place->fd) &&
            (mapping->start == place->start)) {
            break;
        }
    }
    if (mapping == NULL) {
        unsigned char *address = map_file(place);

        mapping = (address == NULL) ? NULL : malloc(sizeof(*mapping));
        if (mapping != NULL) {
            *mapping = (struct mapping){mappings, place->pid, place->fd, place->start, address};
            mappings = mapping;
        }
    }
    pthread_mutex_unlock(&lock);
    return (mapping == NULL) ? NULL : mapping->address;
}
