/* SPDX-License-Identifier: BSD-3-Clause */
#include "decide/table.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static const char *const coll_names[XM_NUM_COLLS] = {
#define XM_COLL_NAME(name, small, capitals, n, ni, np, kinds) [XM_##capitals] = #small,
    XM_COLLECTIVES(XM_COLL_NAME)
#undef XM_COLL_NAME
};

static const char *const mem_names[XM_NUM_MEMS] = {
    [XM_MEM_CUDA] = "cuda",
    [XM_MEM_ROCM] = "rocm",
    [XM_MEM_CUDA_MANAGED] = "cuda_managed",
    [XM_MEM_ROCM_MANAGED] = "rocm_managed",
};

static const char *const path_names[XM_NUM_PATHS] = {
    [XM_PATH_MPI] = "mpi",
    [XM_PATH_CCL] = "ccl",
    [XM_PATH_DIRECT] = "direct",
};

const char *xm_mem_name(enum xm_mem mem)
{
    return mem_names[mem];
}

const char *xm_path_name(enum xm_path_id path)
{
    return path_names[path];
}

/* A stretch of the text. */
struct part {
    const char *at;
    size_t      len;
};

/* Where we are, for messages. */
struct place {
    const char *source;
    const char *text;
    struct part token;
};

static xcclResult_t complain(const struct place *place, struct part part, const char *what,
                             const char *allowed)
{
    return xc_fail(xcclInvalidArgument, "%s: column %zu: %s '%.*s' in token '%.*s'; allowed: %s",
                   place->source, (size_t)(part.at - place->text) + 1, what, (int)part.len, part.at,
                   (int)place->token.len, place->token.at, allowed);
}

static bool is_word(struct part part, const char *word)
{
    return (strlen(word) == part.len) && (strncmp(part.at, word, part.len) == 0);
}

static int find_word(struct part part, const char *const *words, int count)
{
    for (int i = 0; i < count; i++) {
        if (is_word(part, words[i])) {
            return i;
        }
    }
    return -1;
}

/* One of words, or '*' for all of them: as bits. */
static bool parse_words(struct part part, const char *const *words, int count, uint32_t *bits_p)
{
    int i = find_word(part, words, count);

    if (is_word(part, "*")) {
        *bits_p = ((uint32_t)1 << count) - 1;
    } else if (i >= 0) {
        *bits_p = (uint32_t)1 << i;
    } else {
        return false;
    }
    return true;
}

/* Digits with an optional k, m or g, or "inf"; sizes only if suffixes. */
static bool parse_number(struct part part, bool suffixes, uint64_t *value_p)
{
    uint64_t value = 0;
    size_t   i = 0;

    if (is_word(part, "inf")) {
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
    if (suffixes && (i + 1 == part.len)) {
        switch (tolower((unsigned char)part.at[i])) {
        case 'k':
            value <<= 10;
            break;
        case 'm':
            value <<= 20;
            break;
        case 'g':
            value <<= 30;
            break;
        default:
            return false;
        }
        i++;
    }
    *value_p = value;
    return i == part.len;
}

/* "lo-hi", one number for both, or '*'. */
static bool parse_range(struct part part, bool suffixes, uint64_t *low_p, uint64_t *high_p)
{
    const char *dash = memchr(part.at, '-', part.len);

    if (is_word(part, "*")) {
        *low_p = 0;
        *high_p = XM_INF;
        return true;
    }
    if (dash == NULL) {
        if (!parse_number(part, suffixes, low_p)) {
            return false;
        }
        *high_p = *low_p;
        return true;
    }
    struct part low = {part.at, (size_t)(dash - part.at)};
    struct part high = {dash + 1, part.len - low.len - 1};
    return parse_number(low, suffixes, low_p) && parse_number(high, suffixes, high_p) &&
           (*low_p <= *high_p) && (*low_p != XM_INF);
}

static xcclResult_t parse_bytes(const struct place *place, struct part part, struct xm_token *token)
{
    if (!parse_range(part, true, &token->bytes_low, &token->bytes_high) ||
        ((token->bytes_low == token->bytes_high) && (memchr(part.at, '-', part.len) != NULL))) {
        return complain(place, part, "bytes", "lo-hi with lo < hi, as 0-64k or 1m-inf, or *");
    }
    if ((token->bytes_low == token->bytes_high) && (token->bytes_high != XM_INF)) {
        token->bytes_high++; /* one size: [size, size + 1) */
    }
    return xcclSuccess;
}

/* Cut the next part off *rest at sep; false when nothing is left. */
static bool cut(struct part *rest, char sep, struct part *part)
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

static xcclResult_t parse_token(const struct place *place, struct xm_token *token)
{
    static const char colls[] =
#define XM_COLL_LISTED(name, small, capitals, n, ni, np, kinds) #small ", "
        XM_COLLECTIVES(XM_COLL_LISTED)
#undef XM_COLL_LISTED
            "*";
    struct part rest = place->token;
    struct part field[5], extra;
    uint32_t    path;
    int         n = 0;

    while ((n < 5) && cut(&rest, ':', &field[n])) {
        n++;
    }
    if ((n < 5) || cut(&rest, ':', &extra)) {
        return complain(place, place->token, "number of fields of",
                        "coll:bytes:mem:ranks:path, as allreduce:64k-inf:cuda:2-inf:ccl");
    }
    if (!parse_words(field[0], coll_names, XM_NUM_COLLS, &token->colls)) {
        return complain(place, field[0], "collective", colls);
    }
    xcclResult_t res = parse_bytes(place, field[1], token);
    if (res != xcclSuccess) {
        return res;
    }
    if (!parse_words(field[2], mem_names, XM_NUM_MEMS, &token->mems)) {
        return complain(place, field[2], "memory", "cuda, rocm, cuda_managed, rocm_managed, *");
    }
    if (!parse_range(field[3], false, &token->ranks_low, &token->ranks_high)) {
        return complain(place, field[3], "ranks", "lo-hi, as 2-8 or 2-inf, one number, or *");
    }
    if (is_word(field[4], "*") || !parse_words(field[4], path_names, XM_NUM_PATHS, &path)) {
        return complain(place, field[4], "path", "mpi, ccl, direct");
    }
    token->path = (enum xm_path_id)__builtin_ctz(path);
    if (asprintf(&token->text, "%s %.*s", place->source, (int)place->token.len, place->token.at) <
        0) {
        token->text = NULL;
        return xc_fail(xcclSystemError, "%s: out of memory", place->source);
    }
    return xcclSuccess;
}

xcclResult_t xm_table_parse(const char *source, const char *text, struct xm_table **table_p)
{
    struct place place = {source, text, {text, 0}};
    struct part  rest = {text, strlen(text)};
    size_t       max = 1;

    for (const char *p = text; *p != '\0'; p++) {
        max += (*p == '#');
    }
    struct xm_table *table = calloc(1, sizeof(*table) + max * sizeof(table->tokens[0]));
    if (table == NULL) {
        return xc_fail(xcclSystemError, "%s: out of memory", source);
    }
    while (cut(&rest, '#', &place.token)) {
        xcclResult_t res = parse_token(&place, &table->tokens[table->count]);
        if (res != xcclSuccess) {
            xm_table_free(table);
            return res;
        }
        table->count++;
    }
    *table_p = table;
    return xcclSuccess;
}

void xm_table_free(struct xm_table *table)
{
    if (table == NULL) {
        return;
    }
    for (size_t i = 0; i < table->count; i++) {
        free(table->tokens[i].text);
    }
    free(table);
}
