/* SPDX-License-Identifier: BSD-3-Clause */
/* The profile for programs; the shape is in xccl-profile.schema.json. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/files.h"
#include "base/json_text.h"
#include "base/log.h"
#include "base/params.h"
#include "decide/decide.h"
#include "mpi/mpi.h"
#include "observe/profile.h"
#include "tables/tables.h"

static void put_text(FILE *f, const char *text)
{
    if ((text == NULL) || (text[0] == '\0')) {
        fputs("null", f);
        return;
    }
    xc_json_text(f, text);
}

static void put_field(FILE *f, const char *name, const char *text)
{
    fprintf(f, "\"%s\": ", name);
    put_text(f, text);
    fputs(", ", f);
}

/* What may be asked behind XCCL_TUNE; a row's reason names the one that was. */
static void put_tables(FILE *f)
{
    const struct xm_tables *all = xm_tables_all();
    const char             *separator = "";

    fputs("\"tables\": [", f);
    for (size_t i = 0; i < all->count; i++) {
        if (all->sources[i].origin != XM_FROM_TUNE) {
            fputs(separator, f);
            put_text(f, all->sources[i].table->source);
            separator = ", ";
        }
    }
    fputs("], ", f);
}

static void put_about(FILE *f, const struct xm_profile *p, const struct xm_profile_about *about)
{
    char      version[32], host[256] = "", when[32];
    time_t    now = time(NULL);
    struct tm utc;

    gmtime_r(&now, &utc);
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
    snprintf(version, sizeof(version), "%d.%d.%d", XCCL_MAJOR, XCCL_MINOR, XCCL_PATCH);
    gethostname(host, sizeof(host) - 1);
    fputs("{\"schema\": \"xccl-profile-1\", ", f);
    put_field(f, "version", version);
    put_field(f, "mpi", about->mpi);
    put_field(f, "program", about->program);
    put_field(f, "host", host);
    put_field(f, "date", when);
    put_field(f, "tune", xc_params()->tune);
    put_tables(f);
    fprintf(f, "\"ranks\": %d, \"ranks_merged\": %u, ", about->world, p->ranks);
    fprintf(f, "\"run_seconds\": %.9f, \"run_seconds_most\": %.9f, ", (double)p->run_ns / 1e9,
            (double)p->most_ns / 1e9);
    fprintf(f, "\"lost_calls\": %llu, \"lost_seconds\": %.9f,\n \"rows\": [",
            (unsigned long long)p->lost_calls, (double)p->lost_ns / 1e9);
}

static void put_sizes(FILE *f, const struct xm_profile_row *row)
{
    int class = row->key.size_class;

    if (row->key.memory == 0) {
        fputs("\"bytes_from\": null, \"bytes_below\": null, ", f);
    } else {
        uint64_t from = (class == 0) ? 0 : (uint64_t)1 << (class - 1);
        uint64_t below = (class == 0) ? 1 : (class < 64) ? (uint64_t)1 << class : UINT64_MAX;
        fprintf(f, "\"bytes_from\": %llu, \"bytes_below\": %llu, ", (unsigned long long)from,
                (unsigned long long)below);
    }
}

static void put_row(FILE *f, const struct xm_profile_row *row, const struct xm_profile *p)
{
    fputs("\n  {", f);
    put_field(f, "call", xm_mpi_function_name((enum xm_function)row->key.function));
    if (row->key.ranks > 0) {
        fprintf(f, "\"ranks\": %d, ", row->key.ranks);
    } else {
        fputs("\"ranks\": null, ", f);
    }
    put_sizes(f, row);
    put_field(f, "memory", xm_profile_text(row->key.memory));
    put_field(f, "path", xm_profile_text(row->key.path));
    put_field(f, "reason", row->reason);
    put_field(f, "otherwise", xm_profile_text(row->key.other));
    fprintf(f, "\"otherwise_possible\": %s, ",
            (row->key.other == 0) ? "null"
            : row->key.unsure     ? "null"
                                  : "true");
    fprintf(f, "\"calls\": %llu, \"bytes\": %llu, ", (unsigned long long)row->calls,
            (unsigned long long)row->bytes);
    fprintf(f, "\"seconds\": %.9f, \"share\": %.6f, ", (double)row->ns / 1e9,
            (p->run_ns > 0) ? (double)row->ns / (double)p->run_ns : 0.0);
    fprintf(f, "\"on_ranks\": %llu, \"seconds_least\": %.9f, \"seconds_most\": %.9f, ",
            (unsigned long long)row->ranks, (double)row->least_ns / 1e9,
            (double)row->most_ns / 1e9);
    fprintf(f, "\"completions\": %llu, \"completion_seconds\": %.9f}",
            (unsigned long long)row->completions, (double)row->completion_ns / 1e9);
}

/* A FIFO or a device is written to itself, and one behind a link unless another user made that. */
static bool is_stream(const char *path)
{
    struct stat named, there;

    return (lstat(path, &named) == 0) && (stat(path, &there) == 0) && !S_ISREG(there.st_mode) &&
           !S_ISDIR(there.st_mode) &&
           (!S_ISLNK(named.st_mode) || (named.st_uid == 0) || (named.st_uid == geteuid()));
}

/* Of a spawned world, whose parent may write to the same name: with its host and process. */
static void name_apart(const char *file, char *pattern, size_t len)
{
    size_t stem = strlen(file) - strlen(".json"); /* as all of them end */

    snprintf(pattern, len, "%.*s.%%h.%%p.json", (int)stem, file);
}

bool xm_profile_write(const struct xm_profile *p, const struct xm_profile_about *about,
                      const char *file)
{
    char path[PATH_MAX], part[PATH_MAX + 16], apart[PATH_MAX];

    xc_expand_file_name(file, path, sizeof(path));
    bool stream = is_stream(path);
    if (about->spawned && !stream && (strstr(file, "%p") == NULL)) {
        name_apart(file, apart, sizeof(apart));
        xc_expand_file_name(apart, path, sizeof(path));
    }
    /* Of its own: the jobs of a script, or a job and what it spawned, may end at the same time. */
    snprintf(part, sizeof(part), "%s.XXXXXX.part", path);
    int   fd = stream ? xc_file_open(path, true) : mkostemps(part, (int)strlen(".part"), O_CLOEXEC);
    FILE *f = (fd >= 0) ? fdopen(fd, "w") : NULL;
    if (f == NULL) {
        xc_fail(xcclSystemError, "cannot write %.900s: %s", path, strerror(errno));
        return false;
    }
    put_about(f, p, about);
    for (uint32_t i = 0; i < p->count; i++) {
        fputs((i > 0) ? "," : "", f);
        put_row(f, &p->rows[i], p);
    }
    fputs("\n ]}\n", f);
    bool good = (ferror(f) == 0);
    if ((fclose(f) != 0) || !good || (!stream && (rename(part, path) != 0))) {
        xc_fail(xcclSystemError, "cannot write %.900s: %s", path, strerror(errno));
        if (!stream) {
            unlink(part);
        }
        return false;
    }
    return true;
}
