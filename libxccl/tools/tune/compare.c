/* SPDX-License-Identifier: BSD-3-Clause */
/* Where two tables choose differently: both are asked between all borders that either has. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "tune/rows.h"

struct values {
    size_t    count;
    uint64_t *list;
};

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void sort_once(struct values *v)
{
    size_t kept = 0;

    qsort(v->list, v->count, sizeof(v->list[0]), by_value);
    for (size_t i = 0; i < v->count; i++) {
        if ((i == 0) || (v->list[i] != v->list[kept - 1])) {
            v->list[kept++] = v->list[i];
        }
    }
    v->count = kept;
}

static void add(struct values *v, uint64_t value)
{
    if (value != XM_INF) {
        v->list[v->count++] = value;
    }
}

/* One rank has nothing to choose; of more than an int holds there are none. */
static void add_ranks(struct values *v, uint64_t value)
{
    if ((value > 2) && (value <= INT_MAX)) {
        add(v, value);
    }
}

/* The sizes and the numbers of ranks at which a choice may change: those behind a range, too. */
static bool gather(const struct xm_table *a, const struct xm_table *b, struct values *sizes,
                   struct values *ranks)
{
    const struct xm_table *both[] = {a, b};
    size_t                 rows = a->count + b->count;

    sizes->list = calloc(2 * rows + 1, sizeof(uint64_t));
    ranks->list = calloc(2 * rows + 1, sizeof(uint64_t));
    if ((sizes->list == NULL) || (ranks->list == NULL)) {
        return false;
    }
    add(sizes, 0);
    add(ranks, 2);
    for (int t = 0; t < 2; t++) {
        for (size_t i = 0; i < both[t]->count; i++) {
            const struct xm_row *row = &both[t]->rows[i];
            add(sizes, row->bytes_low);
            add(sizes, row->bytes_high);
            add_ranks(ranks, row->ranks_low);
            add_ranks(ranks, (row->ranks_high < INT_MAX) ? row->ranks_high + 1 : XM_INF);
        }
    }
    sort_once(sizes);
    sort_once(ranks);
    return true;
}

static const char *choice_of(const struct xm_table *table, const struct xm_facts *facts)
{
    for (size_t i = 0; i < table->count; i++) {
        if (xm_row_verdict(&table->rows[i], ~0u, facts) == XM_ROW_MATCHES) {
            return xm_path_name(table->rows[i].path);
        }
    }
    return "no row";
}

/* "4 ranks", "9-inf ranks": from the number at this place to the next one at which choices change.
 */
static const char *ranks_text(const struct values *ranks, size_t i, char *buf, size_t len)
{
    uint64_t low = ranks->list[i];

    if (i + 1 == ranks->count) {
        snprintf(buf, len, "%" PRIu64 "-inf ranks", low);
    } else if (ranks->list[i + 1] == low + 1) {
        snprintf(buf, len, "%" PRIu64 " ranks", low);
    } else {
        snprintf(buf, len, "%" PRIu64 "-%" PRIu64 " ranks", low, ranks->list[i + 1] - 1);
    }
    return buf;
}

/* One collective, kind of memory and number of ranks. */
static int compare_sizes(FILE *f, const struct xm_table *a, const struct xm_table *b,
                         struct xm_facts facts, const char *ranks, const struct values *sizes)
{
    char        low[32], high[32];
    const char *left = NULL, *right = NULL;
    uint64_t    from = 0;
    int         found = 0;

    for (size_t i = 0; i <= sizes->count; i++) {
        bool end = (i == sizes->count);
        facts.bytes = end ? 0 : sizes->list[i];
        const char *l = end ? NULL : choice_of(a, &facts), *r = end ? NULL : choice_of(b, &facts);
        if ((l == left) && (r == right)) {
            continue;
        }
        if (left != right) {
            fprintf(f, "%s, %s, %s, %s-%s: %s -> %s\n", xm_coll_name(facts.coll),
                    xm_mem_name(facts.mem), ranks, tune_size_text(from, low, sizeof(low)),
                    tune_size_text(end ? XM_INF : facts.bytes, high, sizeof(high)), left, right);
            found++;
        }
        left = l;
        right = r;
        from = facts.bytes;
    }
    return found;
}

static bool differ(const struct xm_range *a, const struct xm_range *b)
{
    return (a->low != b->low) || (a->high != b->high);
}

/* Settings that say for which communicators a table is. */
static int compare_heads(FILE *f, const struct xm_head *a, const struct xm_head *b)
{
    const struct {
        const char *name;
        bool        differs;
    } settings[] = {
        {"gpu", strcmp(a->gpu, b->gpu) != 0},
        {"ranks", differ(&a->ranks, &b->ranks)},
        {"nodes", differ(&a->nodes, &b->nodes)},
        {"ranks_per_node", differ(&a->per_node, &b->per_node)},
        {"ccl", (strcmp(a->ccl, b->ccl) != 0) || differ(&a->ccl_version, &b->ccl_version)},
        {"network", a->network != b->network},
        {"mpi", a->mpi != b->mpi},
    };
    int found = 0;

    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        if (settings[i].differs) {
            fprintf(f, "%s: another setting: the tables are for different communicators\n",
                    settings[i].name);
            found++;
        }
    }
    return found;
}

static int compare_choices(FILE *f, const struct xm_table *a, const struct xm_table *b,
                           const struct values *sizes, const struct values *ranks)
{
    char text[64];
    int  found = 0;

    for (int coll = 0; coll < XM_NUM_COLLS; coll++) {
        for (int mem = 0; mem < XM_NUM_MEMS; mem++) {
            for (size_t r = 0; r < ranks->count; r++) {
                struct xm_facts facts = {(enum xm_coll)coll, (enum xm_mem)mem, 0,
                                         (int)ranks->list[r], NULL};
                found +=
                    compare_sizes(f, a, b, facts, ranks_text(ranks, r, text, sizeof(text)), sizes);
            }
        }
    }
    return found;
}

/* Without them nobody could tell equal choices of two machines from choices not looked at. */
static void print_rows(FILE *f, const struct xm_table *table)
{
    fprintf(f, "the same choices:\n");
    for (size_t i = 0; i < table->count; i++) {
        fprintf(f, "  %s\n", strrchr(table->rows[i].text, ' ') + 1); /* behind the table's name */
    }
}

int tune_compare(FILE *f, const struct xm_table *a, const struct xm_table *b)
{
    struct values sizes = {0}, ranks = {0};
    int           found = -1;

    if (gather(a, b, &sizes, &ranks)) {
        int settings = compare_heads(f, &a->head, &b->head);
        int choices = compare_choices(f, a, b, &sizes, &ranks);
        if ((settings > 0) && (choices == 0)) {
            print_rows(f, a);
        }
        found = settings + choices;
    }
    free(sizes.list);
    free(ranks.list);
    return found;
}
