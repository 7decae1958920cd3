/* SPDX-License-Identifier: BSD-3-Clause */
/* A table from its text: comments, head, rows. */
#include "decide/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "decide/parse.h"

/*
 * On one node kernels of our own, where they are; else the vendor's library. Measured on 2 and 4
 * H200s (docs/benchmarks/direct.md), where NCCL is faster for long reductions. The files of
 * libxccl/tables/ say it for these machines, and more cautiously for others.
 */
static const char builtin[] =
    "reduce:128m-inf:*:2:ccl"
    "#reduce:96m-inf:*:4:ccl#reduce:6m-inf:*:3:ccl#reduce:6m-inf:*:5-8:ccl"
    "#allreduce:192m-inf:*:5-8:ccl"
    "#*:*:*:2-8:direct#*:*:*:2-inf:ccl";

const char *xm_table_builtin(void)
{
    return builtin;
}

struct parser {
    struct xm_place  place;
    bool             file;
    uint32_t         seen; /* keys of the head */
    size_t           room;
    struct xm_table *table;
};

static xcclResult_t add_row(struct parser *p)
{
    struct xm_table *t = p->table;
    struct xm_row    row = {0};

    if (t->count == p->room) {
        size_t         room = (p->room == 0) ? 16 : 2 * p->room;
        struct xm_row *rows = realloc(t->rows, room * sizeof(*rows));
        if (rows == NULL) {
            return xc_fail(xcclSystemError, "%s: out of memory", p->place.source);
        }
        t->rows = rows;
        p->room = room;
    }
    xcclResult_t res = xm_parse_row(&p->place, &row);
    if (res == xcclSuccess) {
        t->rows[t->count++] = row;
    }
    return res;
}

static xcclResult_t parse_rows(struct parser *p, struct xm_part line)
{
    xcclResult_t res = xcclSuccess;

    while ((res == xcclSuccess) && xm_part_cut(&line, '#', &p->place.whole)) {
        res = add_row(p);
    }
    return res;
}

static bool is_comment(struct xm_part line)
{
    return (line.len == 0) ||
           ((line.at[0] == '#') && ((line.len == 1) || (line.at[1] == ' ') ||
                                    (line.at[1] == '\t') || (line.at[1] == '#')));
}

/*
 * A row that was joined to the one before by '#' and then moved to a line of its own looks like a
 * comment: that would be silent, so comments need a blank.
 */
static xcclResult_t parse_line(struct parser *p, struct xm_part line)
{
    p->place.whole = line;
    if (is_comment(line)) {
        return xcclSuccess;
    }
    if (line.at[0] == '#') {
        return xm_parse_complain(&p->place, line, "line",
                                 "a comment, which begins with '# '; rows on a line of their own, "
                                 "without '#' in front");
    }
    bool setting = memchr(line.at, '=', line.len) != NULL;
    if (!setting) {
        return parse_rows(p, line);
    }
    if (!p->file || (p->table->count > 0)) {
        return xm_parse_complain(&p->place, line, "setting",
                                 p->file ? "settings before the first row" : "rows; no settings");
    }
    return xm_parse_setting(&p->place, &p->table->head, &p->seen);
}

static xcclResult_t parse_lines(struct parser *p, const char *text)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8, which editors of Windows write */
    bool              marked = p->file && (strncmp(text, mark, strlen(mark)) == 0);
    const char       *begin = marked ? text + strlen(mark) : text;
    struct xm_part    rest = {begin, strlen(begin)}, line = {begin, 0};
    xcclResult_t      res = xcclSuccess;

    while ((res == xcclSuccess) && xm_part_cut(&rest, '\n', &line)) {
        p->place.line++;
        p->place.begin = line.at;
        res = parse_line(p, xm_part_trim(line));
    }
    if ((res == xcclSuccess) && p->file) {
        res = xm_head_check(&p->place, &p->table->head);
    }
    if ((res == xcclSuccess) && (p->table->count == 0)) {
        res = xm_parse_complain(&p->place, (struct xm_part){p->place.begin, 0}, "no row up to",
                                "one row or more");
    }
    return res;
}

/* "reduce.table" of a path: rows say it for each call that is logged. */
static const char *short_name(const char *source)
{
    const char *slash = strrchr(source, '/');

    return (slash != NULL) ? slash + 1 : source;
}

/* Rows carry the short name, errors the whole path. */
static xcclResult_t shorten_rows(struct xm_table *t, const char *source)
{
    size_t skip = (size_t)(short_name(source) - source);

    for (size_t i = 0; (skip > 0) && (i < t->count); i++) {
        char *text = strdup(t->rows[i].text + skip);
        if (text == NULL) {
            return xc_fail(xcclSystemError, "%s: out of memory", source);
        }
        free(t->rows[i].text);
        t->rows[i].text = text;
    }
    return xcclSuccess;
}

xcclResult_t xm_table_parse(const char *source, const char *text, bool file,
                            struct xm_table **table_p)
{
    struct parser p = {.place = {source, 0, text, {text, strlen(text)}}, .file = file};
    xcclResult_t  res = xcclSystemError;

    p.table = calloc(1, sizeof(*p.table));
    if (p.table != NULL) {
        xm_head_init(&p.table->head);
        p.table->source = strdup(source);
    }
    if ((p.table == NULL) || (p.table->source == NULL)) {
        xc_fail(res, "%s: out of memory", source);
        goto free_table;
    }
    /* Most of all, XCCL_TUNE has one line, in which an empty row is a mistake. */
    res = (file || (strchr(text, '\n') != NULL)) ? parse_lines(&p, text)
                                                 : parse_rows(&p, p.place.whole);
    if (res == xcclSuccess) {
        res = shorten_rows(p.table, source);
    }
    if (res == xcclSuccess) {
        *table_p = p.table;
        return res;
    }
free_table:
    xm_table_free(p.table);
    return res;
}

void xm_table_free(struct xm_table *table)
{
    if (table == NULL) {
        return;
    }
    for (size_t i = 0; i < table->count; i++) {
        free(table->rows[i].text);
    }
    free(table->rows);
    free(table->source);
    free(table);
}
