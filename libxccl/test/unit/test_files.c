/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that xccl writes are their owner's alone, follow nobody's link, and keep nobody waiting. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "check.h"

static char folder[] = "/tmp/xccl-test-files-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[64];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void write_text(const char *path, bool append, const char *text)
{
    int fd = xc_file_open(path, append);

    CHECK(fd >= 0, "%s: %s", path, strerror(errno));
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text), "%s", path);
    close(fd);
}

static void check_file(const char *path, off_t size)
{
    struct stat found;

    CHECK(lstat(path, &found) == 0, "%s", path);
    CHECK(S_ISREG(found.st_mode) && ((found.st_mode & 0777) == 0600), "mode %o", found.st_mode);
    CHECK(found.st_size == size, "%ld bytes", (long)found.st_size);
}

static void test_owner_alone(void)
{
    umask(0);
    write_text(in_folder("log"), true, "one");
    write_text(in_folder("log"), true, "two");
    check_file(in_folder("log"), 6);
    write_text(in_folder("report"), false, "three");
    write_text(in_folder("report"), false, "four");
    check_file(in_folder("report"), 4);
}

static void test_links_are_replaced(void)
{
    char target[64];

    snprintf(target, sizeof(target), "%s", in_folder("precious"));
    write_text(target, true, "precious");
    CHECK(symlink(target, in_folder("planted")) == 0, "%s", strerror(errno));
    write_text(in_folder("planted"), false, "new");
    check_file(in_folder("planted"), 3);
    check_file(target, 8);
}

static void test_fifo(void)
{
    CHECK(mkfifo(in_folder("fifo"), 0600) == 0, "%s", strerror(errno));
    CHECK(xc_file_open(in_folder("fifo"), true) < 0, "nobody reads it");
    CHECK(errno == ENXIO, "%s", strerror(errno));
    int reader = open(in_folder("fifo"), O_RDONLY | O_NONBLOCK);
    int fd = xc_file_open(in_folder("fifo"), true);
    CHECK((fd >= 0) && ((fcntl(fd, F_GETFL) & O_NONBLOCK) == 0), "it would lose lines");
    close(fd);
    close(reader);
}

/* What a program without a standard output opens next gets what it prints. */
static void test_out_of_the_way(void)
{
    struct rlimit few, before;
    int           kept = dup(STDOUT_FILENO);
    struct stat   there, here;

    close(STDOUT_FILENO);
    int low = open("/dev/null", O_RDONLY), fd = xc_file_aside(dup(low));
    CHECK(low == STDOUT_FILENO, "the first file is %d", low);
    CHECK(fd >= 64, "file %d is in the way", fd);
    CHECK((fstat(low, &there) == 0) && (fstat(fd, &here) == 0) && (there.st_ino == here.st_ino),
          "it is another file");
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0, "a program that is executed gets it");
    CHECK(xc_file_aside(fd) == fd, "it moves for nothing");
    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = 32;
    setrlimit(RLIMIT_NOFILE, &few);
    int last = xc_file_aside(low);
    setrlimit(RLIMIT_NOFILE, &before);
    CHECK((last > STDERR_FILENO) && (last < 32), "with few files it is %d", last);
    errno = EMFILE;
    CHECK((xc_file_aside(-1) == -1), "no file becomes one");
    dup2(kept, STDOUT_FILENO);
    close(fd);
    close(last);
    close(kept);
}

int main(void)
{
    static const char *const made[] = {"log", "report", "precious", "planted", "fifo"};

    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    test_owner_alone();
    test_links_are_replaced();
    test_fifo();
    test_out_of_the_way();
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        unlink(in_folder(made[i]));
    }
    rmdir(folder);
    return xt_done("files that xccl writes");
}
