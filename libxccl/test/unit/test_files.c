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

int main(void)
{
    static const char *const made[] = {"log", "report", "precious", "planted", "fifo"};

    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    test_owner_alone();
    test_links_are_replaced();
    test_fifo();
    for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
        unlink(in_folder(made[i]));
    }
    rmdir(folder);
    return xt_done("files that xccl writes");
}
