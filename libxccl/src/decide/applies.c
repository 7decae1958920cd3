/* SPDX-License-Identifier: BSD-3-Clause */
/* Which tables are asked on a communicator, and what a row says to a call. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "decide/parse.h"

/* Does the text match a pattern in which * stands for anything? */
static bool matches(const char *text, struct xm_part pattern)
{
    const char *star = NULL, *after = NULL, *p = pattern.at, *end = pattern.at + pattern.len;

    while (*text != '\0') {
        if ((p < end) && (*p == '*')) {
            star = ++p;
            after = text;
        } else if ((p < end) && (*p == *text)) {
            p++;
            text++;
        } else if (star != NULL) {
            p = star;
            text = ++after;
        } else {
            return false;
        }
    }
    while ((p < end) && (*p == '*')) {
        p++;
    }
    return p == end;
}

static bool is_listed(const char *model, const char *patterns)
{
    struct xm_part rest = {patterns, strlen(patterns)}, one = {patterns, 0};

    while (xm_part_cut(&rest, ',', &one)) {
        if (matches(model, xm_part_trim(one))) {
            return true;
        }
    }
    return false;
}

static bool within(const struct xm_range *range, int least, int most)
{
    return ((uint64_t)least >= range->low) && ((uint64_t)most <= range->high);
}

static bool is_everything(const struct xm_range *range)
{
    return (range->low == 0) && (range->high == XM_INF);
}

static bool fails(char *why, size_t len, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static bool fails(char *why, size_t len, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vsnprintf(why, len, fmt, args);
    va_end(args);
    return false;
}

/* "2-8", "2-inf" or "4". */
static const char *range_text(const struct xm_range *range, char *buf, size_t len)
{
    if (range->low == range->high) {
        snprintf(buf, len, "%" PRIu64, range->low);
    } else if (range->high == XM_INF) {
        snprintf(buf, len, "%" PRIu64 "-inf", range->low);
    } else {
        snprintf(buf, len, "%" PRIu64 "-%" PRIu64, range->low, range->high);
    }
    return buf;
}

static bool counts_apply(const struct xm_head *h, const struct xm_setting *s, char *why, size_t len)
{
    char wanted[64];

    if (!within(&h->ranks, s->nranks, s->nranks)) {
        return fails(why, len, "ranks: %d, the table is for %s", s->nranks,
                     range_text(&h->ranks, wanted, sizeof(wanted)));
    }
    if (!is_everything(&h->nodes) && ((s->nodes == 0) || !within(&h->nodes, s->nodes, s->nodes))) {
        return fails(why, len, "nodes: %d, the table is for %s", s->nodes,
                     range_text(&h->nodes, wanted, sizeof(wanted)));
    }
    if (!is_everything(&h->per_node) &&
        ((s->nodes == 0) || !within(&h->per_node, s->per_node_least, s->per_node_most))) {
        return fails(why, len, "ranks_per_node: %d to %d, the table is for %s", s->per_node_least,
                     s->per_node_most, range_text(&h->per_node, wanted, sizeof(wanted)));
    }
    return true;
}

static bool library_applies(const struct xm_head *h, const struct xm_setting *s, char *why,
                            size_t len)
{
    uint64_t version = xm_version_number(s->ccl_version);

    if (h->ccl[0] == '\0') {
        return true;
    }
    if (strcmp(h->ccl, s->ccl) != 0) {
        return fails(why, len, "ccl: %s, the table is for %s",
                     (s->ccl[0] != '\0') ? s->ccl : "none", h->ccl);
    }
    if ((version < h->ccl_version.low) || (version > h->ccl_version.high)) {
        return fails(why, len, "ccl: version %d of %s, the table is for others", s->ccl_version,
                     s->ccl);
    }
    return true;
}

bool xm_table_applies(const struct xm_table *table, const struct xm_setting *s, char *why,
                      size_t len)
{
    const struct xm_head *h = &table->head;

    why[0] = '\0';
    if ((h->gpu[0] != '\0') && ((s->gpu[0] == '\0') || !is_listed(s->gpu, h->gpu))) {
        return fails(why, len, "gpu: %s, the table is for %s",
                     (s->gpu[0] != '\0') ? s->gpu : "not known, or not the same on all ranks",
                     h->gpu);
    }
    if (!counts_apply(h, s, why, len) || !library_applies(h, s, why, len)) {
        return false;
    }
    if ((h->network != XM_NETWORK_ANY) && ((h->network == XM_NETWORK_FABRIC) != s->fabric)) {
        return fails(why, len, "network: %s",
                     s->fabric ? "fabric, the table is for tcp" : "tcp, the table is for fabric");
    }
    if ((h->mpi != XM_AWARENESS_ANY) && ((h->mpi == XM_AWARENESS_AWARE) != s->gpu_aware)) {
        return fails(why, len, "mpi: %s",
                     s->gpu_aware ? "gpu-aware, the table is for staged"
                                  : "staged, the table is for gpu-aware");
    }
    return true;
}

enum xm_verdict xm_row_verdict(const struct xm_row *row, unsigned available,
                               const struct xm_facts *facts)
{
    if (((row->colls >> facts->coll) & 1) == 0) {
        return XM_ROW_OTHER_COLL;
    }
    if (((row->mems >> facts->mem) & 1) == 0) {
        return XM_ROW_OTHER_MEM;
    }
    if (((uint64_t)facts->nranks < row->ranks_low) || ((uint64_t)facts->nranks > row->ranks_high)) {
        return XM_ROW_OTHER_RANKS;
    }
    if ((facts->bytes < row->bytes_low) ||
        ((facts->bytes >= row->bytes_high) && (row->bytes_high != XM_INF))) {
        return XM_ROW_OTHER_BYTES;
    }
    return (((available >> row->path) & 1) != 0) ? XM_ROW_MATCHES : XM_ROW_NO_PATH;
}
