/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which rank gets which GPU. Every rank computes the whole answer from what is the same on all
 * ranks of the node, so that no two of them take one GPU while another is idle.
 */
#include <string.h>

#include "bind.h"

/* Cores of the mask that are close to the candidate; none if nothing is known of it. */
static int overlap(const struct candidate *candidate, const struct cpus *mask)
{
    struct cpus both;

    if (!candidate->near_known) {
        return 0;
    }
    cpus_and(&candidate->near, mask, &both);
    return cpus_count(&both);
}

/* The free candidate that is closest to the mask; the one that the site wishes wins among equals.
 */
static int closest_free(const struct candidate *candidates, int n, const struct cpus *mask,
                        int wish, const int used[], int limit)
{
    int best = NO_NUMBER, most = -1;

    for (int step = 0; step < n; step++) {
        int c = (wish + step) % n;
        int near = overlap(&candidates[c], mask);
        if ((used[c] < limit) && (near > most)) {
            best = c;
            most = near;
        }
    }
    return best;
}

void assign(const struct candidate *candidates, int ncandidates, int nranks,
            const struct cpus *masks, int *out_p)
{
    int used[MAX_GPUS] = {0};
    int limit = (ncandidates > 0) ? (nranks + ncandidates - 1) / ncandidates : 0;

    for (int rank = 0; rank < nranks; rank++) {
        out_p[rank] = (ncandidates > 0) ? rank % ncandidates : NO_NUMBER;
    }
    if ((masks == NULL) || (ncandidates == 0)) {
        return;
    }
    /* First those who can have their wish, so that nobody takes it from them. */
    for (int rank = 0; rank < nranks; rank++) {
        int  wish = rank % ncandidates;
        bool near = overlap(&candidates[wish], &masks[rank]) > 0;
        out_p[rank] = near ? wish : NO_NUMBER;
        used[wish] += near ? 1 : 0;
    }
    for (int rank = 0; rank < nranks; rank++) {
        if (out_p[rank] == NO_NUMBER) {
            out_p[rank] = closest_free(candidates, ncandidates, &masks[rank], rank % ncandidates,
                                       used, limit);
            used[out_p[rank]]++;
        }
    }
}
