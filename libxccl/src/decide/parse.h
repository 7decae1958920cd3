/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the parser of tuning tables. */
#ifndef XM_DECIDE_PARSE_H
#define XM_DECIDE_PARSE_H

#include "decide/table.h"

/* A stretch of the text. */
struct xm_part {
    const char *at;
    size_t      len;
};

/* Where the parser is, for messages. */
struct xm_place {
    const char    *source;
    int            line;  /* 0: the text has one line */
    const char    *begin; /* of the line */
    struct xm_part whole; /* the row or the setting that is looked at */
};

/* "SOURCE: line 3, column 7: WHAT 'PART' in 'WHOLE'; allowed: ALLOWED"; WHOLE if PART is less. */
xcclResult_t xm_parse_complain(const struct xm_place *place, struct xm_part part, const char *what,
                               const char *allowed);

bool xm_part_is(struct xm_part part, const char *word);
/* Place of part in words, or -1. */
int xm_part_find(struct xm_part part, const char *const *words, int count);
/* Cut the next part off *rest at sep; false when nothing is left. */
bool xm_part_cut(struct xm_part *rest, char sep, struct xm_part *part);
/* Without blanks at its ends. */
struct xm_part xm_part_trim(struct xm_part part);
/* "lo-hi", one number for both, or '*'; with suffixes k, m and g of sizes if suffixes. */
bool xm_parse_range(struct xm_part part, bool suffixes, uint64_t *low_p, uint64_t *high_p);

/* row.c: place->whole. The text of the row is allocated. */
xcclResult_t xm_parse_row(const struct xm_place *place, struct xm_row *row);

/* head.c */
void         xm_head_init(struct xm_head *head);
xcclResult_t xm_parse_setting(const struct xm_place *place, struct xm_head *head, uint32_t *seen);
/* Once all of it was read. */
xcclResult_t xm_head_check(const struct xm_place *place, const struct xm_head *head);

#endif
