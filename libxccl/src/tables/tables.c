/* SPDX-License-Identifier: BSD-3-Clause */
#include "tables/tables.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/launch.h"
#include "base/log.h"
#include "base/params.h"

/* Rules that were made, by the tables that they come from. */
struct made {
    struct xm_rules        *rules;
    int                     nranks;
    size_t                  count;
    const struct xm_table **tables;
    struct made            *next;
};

/* Tables that are not in force any more, but that rules handed out still point into. */
struct retired {
    struct xm_table *table;
    struct retired  *next;
};

static pthread_mutex_t  lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_tables all;
static bool             complete;
static char             share[PATH_MAX];
static char             fault[1024];
static struct made     *made;
static struct retired  *retired;
static int              for_one_rank; /* atomic: see xm_tables_for_one_rank() */

static void digest(const char *text)
{
    uint64_t hash = xc_hash_text((all.digest == 0) ? XC_HASH_BEGIN : all.digest, text);

    all.digest = xc_hash_word(hash, 1); /* where one text ends matters */
}

static xcclResult_t add(enum xm_origin origin, struct xm_table *table)
{
    struct xm_source *sources = realloc(all.sources, (all.count + 1) * sizeof(*sources));

    if (sources == NULL) {
        xm_table_free(table);
        return xc_fail(xcclSystemError, "out of memory for a tuning table");
    }
    sources[all.count++] = (struct xm_source){origin, table};
    all.sources = sources;
    return xcclSuccess;
}

static xcclResult_t add_text(enum xm_origin origin, const char *source, const char *text, bool file)
{
    struct xm_table *table = NULL;
    xcclResult_t     res = xm_table_parse(source, text, file, &table);

    return (res == xcclSuccess) ? add(origin, table) : res;
}

static xcclResult_t add_file(enum xm_origin origin, const char *path)
{
    char        *text = NULL;
    xcclResult_t res = xm_table_file_read(path, &text);

    if (res == xcclSuccess) {
        digest(text);
        res = add_text(origin, path, text, true);
    }
    free(text);
    return res;
}

/* The user's own: the first that is wrong is an error. */
static xcclResult_t add_variable(const char *path)
{
    struct stat  s;
    char       **paths = NULL;
    size_t       count = 0;
    xcclResult_t res = xcclSuccess;

    if (stat(path, &s) != 0) {
        return xc_fail(xcclInvalidArgument, "XCCL_TABLE: %s cannot be opened: %s", path,
                       strerror(errno));
    }
    if (!S_ISDIR(s.st_mode)) {
        return add_file(XM_FROM_VARIABLE, path);
    }
    res = xm_table_files_in(path, &paths, &count);
    if ((res == xcclSuccess) && (count == 0)) {
        res = xc_fail(xcclInvalidArgument, "XCCL_TABLE: %s holds no file *.table", path);
    }
    for (size_t i = 0; (res == xcclSuccess) && (i < count); i++) {
        res = add_file(XM_FROM_VARIABLE, paths[i]);
    }
    xm_table_files_free(paths, count);
    return res;
}

/* The same with the variable's name in every message. */
static xcclResult_t add_named(const char *path)
{
    static const char name[] = "XCCL_TABLE: ";
    xcclResult_t      res = add_variable(path);
    const char       *detail = xc_last_detail();

    return ((res == xcclSuccess) || (strncmp(detail, name, sizeof(name) - 1) == 0))
               ? res
               : xc_fail(res, "%s%s", name, detail);
}

static void leave_out(void)
{
    if (fault[0] == '\0') {
        snprintf(fault, sizeof(fault), "%s", xc_last_detail());
    }
    if (xc_first_of_node()) {
        xc_warn("a tuning table is left out: %s", xc_last_detail());
    }
}

/* An administrator's mistake does not end a job: the table is left out, on all ranks alike. */
static void add_folder(enum xm_origin origin, const char *folder)
{
    char **paths = NULL;
    size_t count = 0;

    if (xm_table_files_in(folder, &paths, &count) != xcclSuccess) {
        leave_out();
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (add_file(origin, paths[i]) != xcclSuccess) {
            leave_out();
        }
    }
    xm_table_files_free(paths, count);
}

static bool is_folder(const char *path)
{
    struct stat facts;

    return (stat(path, &facts) == 0) && S_ISDIR(facts.st_mode);
}

/* "/prefix/share/xccl", from a file in bin/, lib/ or lib/<one or two folders>/; else "". */
static void find_share(const char *installed)
{
    char path[PATH_MAX], real[PATH_MAX];

    share[0] = '\0';
    if ((installed == NULL) || (realpath(installed, real) == NULL)) {
        return;
    }
    for (int i = 0; i < 4; i++) {
        char *slash = strrchr(real, '/');
        if (slash == NULL) {
            return;
        }
        *slash = '\0';
        int n = snprintf(path, sizeof(path), "%s/share/xccl", real);
        if ((n > 0) && (n < (int)sizeof(path)) && is_folder(path)) {
            snprintf(share, sizeof(share), "%s", path);
            return;
        }
    }
}

/* A site's name becomes part of a path. */
static bool is_name(const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (!isalnum((unsigned char)*p) && (strchr("-_.", *p) == NULL)) {
            return false;
        }
    }
    return (text[0] != '\0') && (text[0] != '.');
}

bool xm_tables_lack_site(char *folder, size_t len)
{
    const char *site = xc_params()->site;
    char        path[PATH_MAX + 320];

    snprintf(folder, len, "%s/sites", share);
    if ((site == NULL) || (site[0] == '\0') || (share[0] == '\0') || !is_folder(folder)) {
        return false;
    }
    snprintf(path, sizeof(path), "%s/sites/%.255s", share, site);
    return !is_name(site) || !is_folder(path);
}

static void free_tables(void)
{
    for (size_t i = 0; i < all.count; i++) {
        xm_table_free(all.sources[i].table);
    }
    free(all.sources);
    all = (struct xm_tables){0};
    __atomic_store_n(&for_one_rank, 0, __ATOMIC_RELEASE);
}

xcclResult_t xm_tables_begin(const char *installed)
{
    const struct xc_params *p = xc_params();
    xcclResult_t            res = xcclSuccess;

    find_share(installed);
    if (p->tune != NULL) {
        res = add_text(XM_FROM_TUNE, "XCCL_TUNE", p->tune, false);
    }
    if ((res == xcclSuccess) && (p->table != NULL) && (strcmp(p->table, "none") != 0)) {
        res = add_named(p->table);
    }
    if (res != xcclSuccess) {
        free_tables();
    }
    return res;
}

/* With the lock. */
static void complete_tables(void)
{
    const struct xc_params *p = xc_params();
    char                    folder[PATH_MAX + 320];

    if (complete) {
        return;
    }
    complete = true;
    if ((share[0] != '\0') && (p->table == NULL)) {
        if ((p->site != NULL) && is_name(p->site)) {
            snprintf(folder, sizeof(folder), "%s/sites/%.255s/tables", share, p->site);
            add_folder(XM_FROM_SITE, folder);
        }
        snprintf(folder, sizeof(folder), "%s/tables", share);
        add_folder(XM_FROM_SHARE, folder);
    }
    add_text(XM_FROM_BUILTIN, "built-in table", xm_table_builtin(), false);
}

const struct xm_tables *xm_tables_all(void)
{
    pthread_mutex_lock(&lock);
    complete_tables();
    pthread_mutex_unlock(&lock);
    return &all;
}

uint64_t xm_tables_digest(void)
{
    return xm_tables_all()->digest;
}

const char *xm_tables_fault(void)
{
    return (fault[0] != '\0') ? fault : NULL;
}

static bool is_asked(const struct xm_source *source, const struct xm_setting *setting)
{
    char why[256];

    if ((source->origin == XM_FROM_TUNE) || (source->origin == XM_FROM_BUILTIN)) {
        return true;
    }
    return (setting->nodes > 0) && setting->one_tables &&
           xm_table_applies(source->table, setting, why, sizeof(why));
}

static const struct xm_rules *find_made(const struct xm_table *const *tables, size_t count,
                                        int nranks)
{
    for (const struct made *m = made; m != NULL; m = m->next) {
        if ((m->nranks == nranks) && (m->count == count) &&
            (memcmp(m->tables, tables, count * sizeof(const struct xm_table *)) == 0)) {
            return m->rules;
        }
    }
    return NULL;
}

/* With the lock. Takes the list of tables. */
static xcclResult_t make(const struct xm_table **tables, size_t count, int nranks,
                         const struct xm_rules **rules_p)
{
    struct made *m = calloc(1, sizeof(*m));
    xcclResult_t res = xcclSystemError;

    if (m == NULL) {
        xc_fail(res, "out of memory for tuning tables");
        goto free_list;
    }
    res = xm_rules_make(tables, count, nranks, &m->rules);
    if (res != xcclSuccess) {
        goto free_made;
    }
    m->nranks = nranks;
    m->count = count;
    m->tables = tables;
    m->next = made;
    made = m;
    *rules_p = m->rules;
    return xcclSuccess;

free_made:
    free(m);
free_list:
    free(tables);
    return res;
}

xcclResult_t xm_tables_rules(const struct xm_setting *setting, const struct xm_rules **rules_p)
{
    size_t       count = 0;
    xcclResult_t res = xcclSuccess;

    pthread_mutex_lock(&lock);
    complete_tables();
    const struct xm_table **tables = calloc(all.count + 1, sizeof(const struct xm_table *));
    for (size_t i = 0; (tables != NULL) && (i < all.count); i++) {
        if (is_asked(&all.sources[i], setting)) {
            tables[count++] = all.sources[i].table;
        }
    }
    if (tables == NULL) {
        res = xc_fail(xcclSystemError, "out of memory for tuning tables");
    } else {
        const struct xm_rules *known = find_made(tables, count, setting->nranks);
        if (known != NULL) {
            *rules_p = known;
            free(tables);
        } else {
            res = make(tables, count, setting->nranks, rules_p);
        }
    }
    pthread_mutex_unlock(&lock);
    return res;
}

static bool is_for_one_rank(const struct xm_source *source)
{
    const struct xm_table *t = source->table;
    bool                   any = false;

    if ((source->origin == XM_FROM_TUNE) || (source->origin == XM_FROM_BUILTIN) ||
        (t->head.ranks.low > 1)) {
        return false;
    }
    for (size_t i = 0; i < t->count; i++) {
        any = any || (t->rows[i].ranks_low <= 1);
    }
    return any;
}

bool xm_tables_for_one_rank(void)
{
    enum { UNKNOWN, NO, YES };
    int known = __atomic_load_n(&for_one_rank, __ATOMIC_ACQUIRE);

    if (__builtin_expect(known == UNKNOWN, 0)) {
        pthread_mutex_lock(&lock);
        complete_tables();
        known = NO;
        for (size_t i = 0; i < all.count; i++) {
            known = is_for_one_rank(&all.sources[i]) ? YES : known;
        }
        __atomic_store_n(&for_one_rank, known, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&lock);
    }
    return known == YES;
}

/* With the lock: take out the rows of XCCL_TUNE, which rules still point into. */
static xcclResult_t retire_tune(void)
{
    if ((all.count == 0) || (all.sources[0].origin != XM_FROM_TUNE)) {
        return xcclSuccess;
    }
    struct retired *r = malloc(sizeof(*r));
    if (r == NULL) {
        return xc_fail(xcclSystemError, "out of memory for a tuning table");
    }
    *r = (struct retired){all.sources[0].table, retired};
    retired = r;
    memmove(&all.sources[0], &all.sources[1], (all.count - 1) * sizeof(all.sources[0]));
    all.count--;
    return xcclSuccess;
}

static void put_first(void)
{
    struct xm_source last = all.sources[all.count - 1];

    memmove(&all.sources[1], &all.sources[0], (all.count - 1) * sizeof(all.sources[0]));
    all.sources[0] = last;
}

xcclResult_t xm_tables_tune(const char *text)
{
    const char      *rows = (text != NULL) ? text : xc_params()->tune;
    const char      *source = (text != NULL) ? "xcclTuneMPI" : "XCCL_TUNE";
    struct xm_table *table = NULL;
    xcclResult_t     res = xcclSuccess;

    if (rows != NULL) {
        res = xm_table_parse(source, rows, false, &table);
    }
    if (res != xcclSuccess) {
        return res;
    }
    pthread_mutex_lock(&lock);
    complete_tables();
    res = retire_tune();
    if (res != xcclSuccess) {
        xm_table_free(table);
    } else if (table != NULL) {
        res = add(XM_FROM_TUNE, table);
        if (res == xcclSuccess) {
            put_first();
        }
    }
    pthread_mutex_unlock(&lock);
    return res;
}

void xm_tables_end(void)
{
    pthread_mutex_lock(&lock);
    while (made != NULL) {
        struct made *m = made;
        made = m->next;
        xm_rules_free(m->rules);
        free(m->tables);
        free(m);
    }
    while (retired != NULL) {
        struct retired *r = retired;
        retired = r->next;
        xm_table_free(r->table);
        free(r);
    }
    free_tables();
    complete = false;
    fault[0] = '\0';
    pthread_mutex_unlock(&lock);
}
