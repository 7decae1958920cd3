/* SPDX-License-Identifier: BSD-3-Clause */
/* One row of a table, and the words and numbers that rows and heads are made of. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/nearest.h"
#include "decide/parse.h"

static const char *const mem_names[XM_NUM_MEMS] = {
    [XM_MEM_CUDA] = "cuda",
    [XM_MEM_ROCM] = "rocm",
    [XM_MEM_CUDA_MANAGED] = "cuda_managed",
    [XM_MEM_ROCM_MANAGED] = "rocm_managed",
    [XM_MEM_HPU] = "hpu",
};

static const char *const path_names[XM_NUM_PATHS] = {
    [XM_PATH_MPI] = "mpi",
    [XM_PATH_CCL] = "ccl",
    [XM_PATH_DIRECT] = "direct",
    [XM_PATH_STAGED] = "staged",
};

const char *xm_mem_name(enum xm_mem mem)
{
    return mem_names[mem];
}

const char *xm_path_name(enum xm_path_id path)
{
    return path_names[path];
}

/* Of a line without an end the message would have no room for what is allowed. */
enum { MOST_QUOTED = 160 };

static int quoted(struct xm_part part)
{
    return (part.len <= MOST_QUOTED) ? (int)part.len : MOST_QUOTED;
}

static const char *cut_mark(struct xm_part part)
{
    return (part.len <= MOST_QUOTED) ? "" : "...";
}

xcclResult_t xm_parse_complain(const struct xm_place *place, struct xm_part part, const char *what,
                               const char *allowed)
{
    size_t column = (size_t)(part.at - place->begin) + 1;
    char   line[32] = "";

    if (place->line > 0) {
        snprintf(line, sizeof(line), "line %d, ", place->line);
    }
    if (part.len == place->whole.len) {
        return xc_fail(xcclInvalidArgument, "%s: %scolumn %zu: %s '%.*s%s'; allowed: %s",
                       place->source, line, column, what, quoted(part), part.at, cut_mark(part),
                       allowed);
    }
    return xc_fail(xcclInvalidArgument, "%s: %scolumn %zu: %s '%.*s%s' in '%.*s%s'; allowed: %s",
                   place->source, line, column, what, quoted(part), part.at, cut_mark(part),
                   quoted(place->whole), place->whole.at, cut_mark(place->whole), allowed);
}

bool xm_part_is(struct xm_part part, const char *word)
{
    return (strlen(word) == part.len) && (strncmp(part.at, word, part.len) == 0);
}

int xm_part_find(struct xm_part part, const char *const *words, int count)
{
    for (int i = 0; i < count; i++) {
        if (xm_part_is(part, words[i])) {
            return i;
        }
    }
    return -1;
}

bool xm_part_cut(struct xm_part *rest, char sep, struct xm_part *part)
{
    if (rest->at == NULL) {
        return false;
    }
    const char *end = memchr(rest->at, sep, rest->len);
    part->at = rest->at;
    part->len = (end != NULL) ? (size_t)(end - rest->at) : rest->len;
    if (end != NULL) {
        rest->len -= part->len + 1;
        rest->at = end + 1;
    } else {
        rest->at = NULL;
    }
    return true;
}

static bool is_blank(char c)
{
    return (c == ' ') || (c == '\t') || (c == '\r');
}

struct xm_part xm_part_trim(struct xm_part part)
{
    while ((part.len > 0) && is_blank(part.at[0])) {
        part.at++;
        part.len--;
    }
    while ((part.len > 0) && is_blank(part.at[part.len - 1])) {
        part.len--;
    }
    return part;
}

/* One of words, or '*' for all of them: as bits. */
static bool parse_words(struct xm_part part, const char *const *words, int count, uint32_t *bits_p)
{
    int i = xm_part_find(part, words, count);

    if (xm_part_is(part, "*")) {
        *bits_p = ((uint32_t)1 << count) - 1;
    } else if (i >= 0) {
        *bits_p = (uint32_t)1 << i;
    } else {
        return false;
    }
    return true;
}

/* Of k, m and g, and of KiB, MiB and GiB, as variables take them; -1 of another text. */
static int shift_of(const char *at, size_t len)
{
    static const char units[] = {'k', 'm', 'g'};
    bool              good = (len == 1) || ((len == 3) && (strncasecmp(at + 1, "ib", 2) == 0));

    for (int i = 0; good && (i < (int)sizeof(units)); i++) {
        if (tolower((unsigned char)at[0]) == units[i]) {
            return 10 * (i + 1);
        }
    }
    return -1;
}

/* Digits with an optional suffix, or "inf"; sizes only if suffixes. */
static bool parse_number(struct xm_part part, bool suffixes, uint64_t *value_p)
{
    uint64_t value = 0;
    size_t   i = 0;

    if (xm_part_is(part, "inf")) {
        *value_p = XM_INF;
        return true;
    }
    for (; (i < part.len) && isdigit((unsigned char)part.at[i]); i++) {
        if (value > (UINT64_MAX >> 34) / 10) {
            return false; /* leaves room for the suffix */
        }
        value = value * 10 + (uint64_t)(part.at[i] - '0');
    }
    if (i == 0) {
        return false;
    }
    int shift = (i == part.len) ? 0 : suffixes ? shift_of(part.at + i, part.len - i) : -1;
    if (shift < 0) {
        return false;
    }
    *value_p = value << shift;
    return true;
}

bool xm_parse_range(struct xm_part part, bool suffixes, uint64_t *low_p, uint64_t *high_p)
{
    const char *dash = memchr(part.at, '-', part.len);

    if (xm_part_is(part, "*")) {
        *low_p = 0;
        *high_p = XM_INF;
        return true;
    }
    if (dash == NULL) {
        if (!parse_number(part, suffixes, low_p)) {
            return false;
        }
        *high_p = *low_p;
    } else {
        struct xm_part low = {part.at, (size_t)(dash - part.at)};
        struct xm_part high = {dash + 1, part.len - low.len - 1};
        if (!parse_number(low, suffixes, low_p) || !parse_number(high, suffixes, high_p)) {
            return false;
        }
    }
    /* What nothing lies in is a mistake: no ranks and no nodes, or more than there can be. */
    bool none = !suffixes && (*high_p == 0);
    return (*low_p <= *high_p) && (*low_p != XM_INF) && !none;
}

static xcclResult_t parse_bytes(const struct xm_place *place, struct xm_part part,
                                struct xm_row *row)
{
    if (!xm_parse_range(part, true, &row->bytes_low, &row->bytes_high) ||
        ((row->bytes_low == row->bytes_high) && (memchr(part.at, '-', part.len) != NULL))) {
        return xm_parse_complain(place, part, "bytes",
                                 "lo-hi with lo < hi, as 0-64k or 1m-inf, or *");
    }
    if ((row->bytes_low == row->bytes_high) && (row->bytes_high != XM_INF)) {
        row->bytes_high++; /* one size: [size, size + 1) */
    }
    return xcclSuccess;
}

/*
 * Those that a row can decide on, and the one that was most likely meant. The others are taken, and
 * have no effect.
 */
static void coll_words(struct xm_part part, char *buf, size_t len)
{
    char        typed[32];
    bool        full = (part.len > 4) && (strncasecmp(part.at, "MPI_", 4) == 0);
    size_t      skip = full ? 4 : 0; /* as in MPI_Allreduce */
    size_t      n = 0, half = (part.len - skip) / 2;
    size_t      least = ((half < 3) ? half : 3) + 1; /* further away is not a likely slip */
    const char *meant = NULL;

    snprintf(typed, sizeof(typed), "%.*s", (int)((part.len - skip < 31) ? part.len - skip : 31),
             part.at + skip);
    for (int coll = 0; coll < XM_NUM_COLLS; coll++) {
        if (!xm_coll_on_device((enum xm_coll)coll)) {
            continue;
        }
        const char *name = xm_coll_name((enum xm_coll)coll);
        size_t      distance = xc_edit_distance(typed, name);
        n += (size_t)snprintf(buf + n, (n < len) ? len - n : 0, "%s, ", name);
        if (distance < least) {
            least = distance;
            meant = name;
        }
    }
    snprintf(buf + n, (n < len) ? len - n : 0, "*%s%s%s", (meant != NULL) ? "; did you mean " : "",
             (meant != NULL) ? meant : "", (meant != NULL) ? "?" : "");
}

static xcclResult_t parse_coll(const struct xm_place *place, struct xm_part part,
                               struct xm_row *row)
{
    char words[400];

    if (!parse_words(part, xm_coll_names(), XM_NUM_COLLS, &row->colls)) {
        coll_words(part, words, sizeof(words));
        return xm_parse_complain(place, part, "collective", words);
    }
    return xcclSuccess;
}

xcclResult_t xm_parse_row(const struct xm_place *place, struct xm_row *row)
{
    struct xm_part rest = place->whole;
    struct xm_part field[5], extra;
    uint32_t       path;
    int            n = 0;

    while ((n < 5) && xm_part_cut(&rest, ':', &field[n])) {
        n++;
    }
    if ((n < 5) || xm_part_cut(&rest, ':', &extra)) {
        return xm_parse_complain(place, place->whole, "not five fields:",
                                 "coll:bytes:mem:ranks:path, as allreduce:64k-inf:cuda:2-inf:ccl");
    }
    xcclResult_t res = parse_coll(place, field[0], row);
    if (res == xcclSuccess) {
        res = parse_bytes(place, field[1], row);
    }
    if (res != xcclSuccess) {
        return res;
    }
    if (!parse_words(field[2], mem_names, XM_NUM_MEMS, &row->mems)) {
        return xm_parse_complain(place, field[2], "memory",
                                 "cuda, rocm, cuda_managed, rocm_managed, hpu, *");
    }
    if (!xm_parse_range(field[3], false, &row->ranks_low, &row->ranks_high)) {
        return xm_parse_complain(place, field[3], "ranks",
                                 "lo-hi, as 2-8 or 2-inf, one number, or *");
    }
    if (xm_part_is(field[4], "*") || !parse_words(field[4], path_names, XM_NUM_PATHS, &path)) {
        return xm_parse_complain(place, field[4], "path", "mpi, ccl, direct, staged");
    }
    row->path = (enum xm_path_id)__builtin_ctz(path);
    char line[16] = "";
    if (place->line > 0) {
        snprintf(line, sizeof(line), ":%d", place->line);
    }
    row->line = place->line;
    if (asprintf(&row->text, "%s%s %.*s", place->source, line, (int)place->whole.len,
                 place->whole.at) < 0) {
        row->text = NULL;
        return xc_fail(xcclSystemError, "%s: out of memory", place->source);
    }
    return xcclSuccess;
}
