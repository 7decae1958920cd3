/* SPDX-License-Identifier: BSD-3-Clause */
/* Table files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "tables/tables.h"

/* No table has that much; a log named by mistake has. */
enum { MOST_BYTES = 1 << 20 };

static xcclResult_t read_all(FILE *f, const char *path, char **text_p)
{
    char        *text = malloc(MOST_BYTES + 1);
    xcclResult_t res = xcclInvalidArgument;

    if (text == NULL) {
        return xc_fail(xcclSystemError, "%s: out of memory", path);
    }
    size_t n = fread(text, 1, MOST_BYTES + 1, f);
    if (ferror(f)) {
        res = xc_fail(xcclSystemError, "%s: cannot be read: %s", path, strerror(errno));
    } else if (n > MOST_BYTES) {
        xc_fail(res, "%s: longer than %d bytes; a tuning table is a short text", path, MOST_BYTES);
    } else if (memchr(text, '\0', n) != NULL) {
        xc_fail(res, "%s: holds a byte 0; a tuning table is a text", path);
    } else {
        text[n] = '\0';
        *text_p = text;
        return xcclSuccess;
    }
    free(text);
    return res;
}

/* A FIFO would be waited for, and what one rank reads from it the others do not get. */
static xcclResult_t check_kind(int fd, const char *path)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return xc_fail(xcclSystemError, "%s: cannot be read: %s", path, strerror(errno));
    }
    if (S_ISDIR(st.st_mode)) {
        return xc_fail(xcclInvalidArgument,
                       "%s: is a folder; name a table in it, as %s/nodes-1.table", path, path);
    }
    if (!S_ISREG(st.st_mode)) {
        return xc_fail(xcclInvalidArgument,
                       "%s: is a pipe or a device; a tuning table is a regular file", path);
    }
    return xcclSuccess;
}

xcclResult_t xm_table_file_read(const char *path, char **text_p)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0) {
        return xc_fail(xcclInvalidArgument, "%s: cannot be opened: %s", path, strerror(errno));
    }
    xcclResult_t res = check_kind(fd, path);
    FILE        *f = (res == xcclSuccess) ? fdopen(fd, "r") : NULL;
    if (f == NULL) {
        close(fd);
        return (res == xcclSuccess) ? xc_fail(xcclSystemError, "%s: out of memory", path) : res;
    }
    res = read_all(f, path, text_p);
    fclose(f);
    return res;
}

xcclResult_t xm_table_file_parse(const char *path, struct xm_table **table_p)
{
    char        *text = NULL;
    xcclResult_t res = xm_table_file_read(path, &text);

    if (res == xcclSuccess) {
        res = xm_table_parse(path, text, true, table_p);
    }
    free(text);
    return res;
}

static int is_table(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');

    return (entry->d_name[0] != '.') && (dot != NULL) && (strcmp(dot, ".table") == 0);
}

/* Bytes, not the locale's order: that may differ between ranks. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

xcclResult_t xm_table_files_in(const char *folder, char ***paths_p, size_t *count_p)
{
    struct dirent **entries = NULL;
    int             n = scandir(folder, &entries, is_table, by_name);
    xcclResult_t    res = xcclSuccess;

    if ((n < 0) && (errno != ENOENT) && (errno != ENOTDIR)) {
        return xc_fail(xcclSystemError, "%s: the folder cannot be read: %s", folder,
                       strerror(errno));
    }
    n = (n > 0) ? n : 0;
    char **paths = calloc((size_t)n + 1, sizeof(*paths));
    for (int i = 0; i < n; i++) {
        if ((paths != NULL) && (asprintf(&paths[i], "%s/%s", folder, entries[i]->d_name) < 0)) {
            paths[i] = NULL;
            res = xcclSystemError;
        }
        free(entries[i]);
    }
    free(entries);
    if ((paths == NULL) || (res != xcclSuccess)) {
        xm_table_files_free(paths, (size_t)n);
        return xc_fail(xcclSystemError, "%s: out of memory", folder);
    }
    *paths_p = paths;
    *count_p = (size_t)n;
    return xcclSuccess;
}

void xm_table_files_free(char **paths, size_t count)
{
    for (size_t i = 0; (paths != NULL) && (i < count); i++) {
        free(paths[i]);
    }
    free(paths);
}
