/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/setting.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

void xc_setting_count_nodes(struct xm_setting *s, uint64_t *hosts)
{
    int begin = 0;

    qsort(hosts, (size_t)s->nranks, sizeof(*hosts), compare);
    s->nodes = 0;
    s->per_node_least = s->nranks;
    s->per_node_most = 0;
    for (int i = 1; i <= s->nranks; i++) {
        if ((i < s->nranks) && (hosts[i] == hosts[begin])) {
            continue;
        }
        int here = i - begin;
        s->nodes++;
        s->per_node_least = (here < s->per_node_least) ? here : s->per_node_least;
        s->per_node_most = (here > s->per_node_most) ? here : s->per_node_most;
        begin = i;
    }
}
