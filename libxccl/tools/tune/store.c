/* SPDX-License-Identifier: BSD-3-Clause */
#include "tune/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static const char magic[] = "xccl-tune state 1\n";

struct tune_series *tune_series_of(struct tune_store *store, struct tune_shape shape,
                                   enum xm_coll coll)
{
    for (size_t i = 0; i < store->count; i++) {
        struct tune_series *s = &store->series[i];
        if ((s->coll == coll) && (s->shape.nodes == shape.nodes) &&
            (s->shape.per_node == shape.per_node)) {
            return s;
        }
    }
    struct tune_series *more = realloc(store->series, (store->count + 1) * sizeof(*more));
    if (more == NULL) {
        return NULL;
    }
    store->series = more;
    more[store->count] = (struct tune_series){.shape = shape, .coll = coll};
    return &more[store->count++];
}

void tune_store_free(struct tune_store *store)
{
    for (size_t i = 0; i < store->count; i++) {
        tune_points_free(&store->series[i].points);
    }
    free(store->series);
    *store = (struct tune_store){0};
}

/* What one call says now of a path that was missing in an earlier run goes for its other sizes. */
static void settle(struct tune_points *points, enum xm_path_id path, bool missing)
{
    for (size_t i = 0; i < points->count; i++) {
        struct tune_samples *s = &points->points[i].paths[path];
        if (s->doubted) {
            s->missing = missing;
            s->doubted = false;
        }
    }
}

static bool add_sample(struct tune_store *store, struct tune_shape shape, enum xm_coll coll,
                       const struct tune_request *request, double us, bool earlier)
{
    struct tune_series *series = tune_series_of(store, shape, coll);
    struct tune_point  *point =
        (series != NULL) ? tune_point_at(&series->points, request->bytes) : NULL;

    if (point == NULL) {
        return false;
    }
    series->again = series->again || series->whole;
    series->whole = false;
    struct tune_samples *s = &point->paths[request->path];
    if (s->doubted && !earlier) {
        settle(&series->points, request->path, us < 0);
    }
    s->missing = (us < 0);
    s->doubted = earlier && (us < 0);
    if ((us >= 0) && (s->count < TUNE_MAX_SAMPLES)) {
        s->us[s->count++] = us;
    }
    return true;
}

bool tune_sample_add(struct tune_store *store, struct tune_shape shape, enum xm_coll coll,
                     const struct tune_request *request, double us)
{
    return add_sample(store, shape, coll, request, us, false);
}

bool tune_state_write(FILE *f, struct tune_shape shape, enum xm_coll coll,
                      const struct tune_request *request, double us)
{
    fprintf(f, "%d %d %s %llu %s %.3f\n", shape.nodes, shape.per_node, xm_coll_name(coll),
            (unsigned long long)request->bytes, xm_path_name(request->path), us);
    return (fflush(f) == 0) && (ferror(f) == 0);
}

bool tune_state_write_whole(FILE *f, const struct tune_series *series)
{
    fprintf(f, "%d %d %s whole\n", series->shape.nodes, series->shape.per_node,
            xm_coll_name(series->coll));
    return (fflush(f) == 0) && (ferror(f) == 0);
}

static int find_name(const char *name, const char *(*name_of)(int), int count)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(name, name_of(i)) == 0) {
            return i;
        }
    }
    return -1;
}

static const char *coll_name(int i)
{
    return xm_coll_name((enum xm_coll)i);
}

static const char *path_name(int i)
{
    return xm_path_name((enum xm_path_id)i);
}

/* A line that says that a series is whole. */
static bool read_whole(const char *line, struct tune_store *store)
{
    struct tune_shape shape;
    char              coll[32];
    int               end = 0;

    if ((sscanf(line, "%d %d %31s whole%n", &shape.nodes, &shape.per_node, coll, &end) != 3) ||
        (end == 0) || (strcmp(line + end, "\n") != 0)) {
        return false;
    }
    int c = find_name(coll, coll_name, XM_NUM_COLLS);
    if ((c < 0) || (shape.nodes < 1) || (shape.per_node < 1)) {
        return false;
    }
    struct tune_series *series = tune_series_of(store, shape, (enum xm_coll)c);
    if (series != NULL) {
        series->whole = true;
        series->again = false;
    }
    return series != NULL;
}

/* One sample's line. */
static bool read_sample(const char *line, struct tune_store *store)
{
    struct tune_shape   shape;
    struct tune_request request;
    char                coll[32], path[16], rest;
    unsigned long long  bytes;
    double              us;

    if (sscanf(line, "%d %d %31s %llu %15s %lf%c", &shape.nodes, &shape.per_node, coll, &bytes,
               path, &us, &rest) != 7) {
        return false;
    }
    int c = find_name(coll, coll_name, XM_NUM_COLLS), p = find_name(path, path_name, XM_NUM_PATHS);
    if ((c < 0) || (p < 0) || (rest != '\n') || (shape.nodes < 1) || (shape.per_node < 1) ||
        (bytes == 0)) {
        return false;
    }
    request = (struct tune_request){bytes, (enum xm_path_id)p};
    return add_sample(store, shape, (enum xm_coll)c, &request, us, true);
}

static const char between[] = "; ";       /* the parts of a key */
static const char digest[] = "settings "; /* of the part that stands for those behind it */

/* The parts of a key that another one lacks, but for their digest. */
static void put_parts(const char *key, const char *other, char *text, size_t len)
{
    text[0] = '\0';
    while (*key != '\0') {
        size_t      n = strcspn(key, ";");
        size_t      used = strlen(text);
        const char *at = other;
        bool        found = strncmp(key, digest, sizeof(digest) - 1) == 0;
        while (!found && (at != NULL)) {
            found = (strcspn(at, ";") == n) && (strncmp(at, key, n) == 0);
            at = strstr(at, between);
            at = (at != NULL) ? at + sizeof(between) - 1 : NULL;
        }
        if (!found) {
            snprintf(text + used, len - used, "%s%.*s", (used > 0) ? ", " : "", (int)n, key);
        }
        key += n;
        key += strspn(key, between);
    }
}

static void say_other_key(const char *was, const char *is, char *text, size_t len)
{
    char then[400], now[400];
    bool both;

    put_parts(was, is, then, sizeof(then));
    put_parts(is, was, now, sizeof(now));
    both = (then[0] != '\0') && (now[0] != '\0');
    snprintf(text, len,
             "it was begun with other options, or on another machine (%s%s%s%s%s), so its samples "
             "are no part of this run; give another folder, or remove it to begin anew",
             (then[0] != '\0') ? "then: " : "", then, both ? "; " : "",
             (now[0] != '\0') ? "now: " : "", now);
}

/* Read all whole lines. 0 where a line is wrong, else where the last whole one ends. */
static long read_lines(FILE *f, const char *key, struct tune_store *store, char *text, size_t len)
{
    char line[TUNE_MAX_KEY + 2];
    long end = 0;

    for (int n = 1; fgets(line, sizeof(line), f) != NULL; n++) {
        bool whole = strchr(line, '\n') != NULL;
        if ((n == 1) && (strcmp(line, magic) != 0)) {
            snprintf(text, len, "it is no state of xccl-tune");
            return 0;
        }
        if (n == 2) {
            line[strcspn(line, "\n")] = '\0';
            if (strcmp(line, key) != 0) {
                say_other_key(line, key, text, len);
                return 0;
            }
        }
        if ((n > 2) && whole && !read_sample(line, store) && !read_whole(line, store)) {
            line[strcspn(line, "\n")] = '\0';
            snprintf(text, len,
                     "line %d is no sample: '%.100s'; remove the line, or give another folder", n,
                     line);
            return 0;
        }
        if (whole || (n == 2)) {
            end = ftell(f);
        }
    }
    return end;
}

FILE *tune_state_open(const char *path, const char *key, struct tune_store *store, char *text,
                      size_t len)
{
    FILE *f = fopen(path, "a+e");
    long  end;

    if (f == NULL) {
        snprintf(text, len, "it cannot be opened: %s", strerror(errno));
        return NULL;
    }
    /* A file system without locks (Lustre may be mounted so) keeps nobody apart. */
    if ((flock(fileno(f), LOCK_EX | LOCK_NB) != 0) && (errno == EWOULDBLOCK)) {
        snprintf(text, len,
                 "another xccl-tune works in this folder; wait for it, or give another folder "
                 "(--output)");
        goto close;
    }
    if ((fseek(f, 0, SEEK_END) == 0) && (ftell(f) == 0)) {
        fprintf(f, "%s%s\n", magic, key);
        if ((fflush(f) != 0) || (ferror(f) != 0)) {
            snprintf(text, len, "it cannot be written: %s", strerror(errno));
            goto close;
        }
        return f;
    }
    rewind(f);
    end = read_lines(f, key, store, text, len);
    if (end == 0) {
        goto close;
    }
    if (ftruncate(fileno(f), end) != 0) {
        snprintf(text, len, "it cannot be cut after its last whole line: %s", strerror(errno));
        goto close;
    }
    fseek(f, 0, SEEK_END);
    return f;

close:
    fclose(f);
    return NULL;
}
