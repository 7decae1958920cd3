/* SPDX-License-Identifier: BSD-3-Clause */
/* From what is known of rank, site, machine and visibility: what every rank of the node gets. */
#include <string.h>

#include "bind.h"

struct context {
    const struct options  *options;
    const struct launch   *launch;
    const struct site_map *map;
    const struct machine  *machine;
    const struct visible  *visible;
    const struct cpus     *allowed;
    struct candidate       candidates[MAX_GPUS];
    int                    ncandidates;
    int                    chosen[MAX_RANKS];
};

static void add_candidate(struct context *c, int gpu, int row)
{
    struct candidate *candidate = &c->candidates[c->ncandidates++];

    candidate->gpu = gpu;
    candidate->row = row;
    if ((row != NO_NUMBER) && c->map->row[row].cores_known) {
        candidate->near_known = true;
        candidate->near = c->map->row[row].cores;
    } else {
        candidate->near_known = c->machine->gpu[gpu].near_known;
        candidate->near = c->machine->gpu[gpu].near;
    }
}

/* Visible GPUs: those of the site's map in its order, then any others. */
static void list_candidates(struct context *c)
{
    bool by_map = (c->options->bind == BIND_AUTO) || (c->options->bind == BIND_SITE);
    bool taken[MAX_GPUS] = {false};

    for (int row = 0; by_map && (row < c->map->rows); row++) {
        for (int i = 0; i < c->visible->count; i++) {
            int gpu = c->visible->gpu[i];
            if ((gpu == c->map->row[row].gpu) && !taken[gpu]) {
                taken[gpu] = true;
                add_candidate(c, gpu, row);
            }
        }
    }
    for (int i = 0; i < c->visible->count; i++) {
        if (!taken[c->visible->gpu[i]]) {
            taken[c->visible->gpu[i]] = true;
            add_candidate(c, c->visible->gpu[i], NO_NUMBER);
        }
    }
}

static const struct cpus *mask_of(const struct context *c, int rank)
{
    bool own = (rank == c->launch->local_rank);

    return (!own && c->launch->masks_known) ? &c->launch->masks[rank] : c->allowed;
}

/* Where the launcher has bound this rank, and tells nothing of the others, theirs are others. */
static bool knows_mask(const struct context *c, int rank)
{
    return (rank == c->launch->local_rank) || c->launch->masks_known ||
           (c->options->mask != NULL) ||
           (c->machine->known && cpus_within(&c->machine->offered, c->allowed));
}

/* Part number `part` of `parts` of the cores in set, SMT siblings together; all if they are too
 * few. */
static void split(const struct machine *machine, const struct cpus *set, int part, int parts,
                  struct cpus *out_p)
{
    static short first[CPUS_MAX];
    int          cores = 0, seen = 0;

    memset(first, 0, sizeof(first));
    for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
        if (cpus_has(set, cpu) && (first[machine->core_of[cpu]]++ == 0)) {
            cores++;
        }
    }
    *out_p = *set;
    if ((parts < 2) || (cores < parts)) {
        return;
    }
    cpus_clear(out_p);
    for (int core = 0; core < CPUS_MAX; core++) {
        if (first[core] == 0) {
            continue;
        }
        if ((seen >= part * cores / parts) && (seen < (part + 1) * cores / parts)) {
            for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
                if (cpus_has(set, cpu) && (machine->core_of[cpu] == core)) {
                    cpus_add(out_p, cpu);
                }
            }
        }
        seen++;
    }
}

/* hwloc gives several GPUs the same cores: the ranks that use them divide these among them. */
static void divide(const struct context *c, int nranks, int rank, struct cpus *wanted_p)
{
    const struct candidate *mine = &c->candidates[c->chosen[rank]];
    int                     parts = 0, part = 0;

    if (((mine->row != NO_NUMBER) && c->map->row[mine->row].cores_known) ||
        !cpus_within(&mine->near, mask_of(c, rank))) {
        return; /* the site has divided them, or Slurm has */
    }
    for (int other = 0; other < nranks; other++) {
        if (cpus_equal(&c->candidates[c->chosen[other]].near, &mine->near)) {
            part += (other < rank) ? 1 : 0;
            parts++;
        }
    }
    split(c->machine, &mine->near, part, parts, wanted_p);
}

static int numa_of(const struct machine *machine, const struct cpus *cpus)
{
    for (int i = 0; i < machine->nnumas; i++) {
        if (cpus_within(cpus, &machine->numa[i].cpus)) {
            return machine->numa[i].number;
        }
    }
    return NO_NUMBER;
}

static void choose_cores(const struct context *c, const struct plan *plan, int rank,
                         struct share *share)
{
    const struct candidate *mine = &c->candidates[c->chosen[rank]];
    struct cpus             wanted = mine->near;
    bool                    by_row = (mine->row != NO_NUMBER) && c->map->row[mine->row].cores_known;

    if (!share->cpus_known) {
        return;
    }
    if (c->options->bind == BIND_NONE) {
        share->how = "cores left as they are (--bind none)";
    } else if (plan->lone) {
        share->how = "cores left as they are: a lone rank may drive every GPU";
    } else if (!mine->near_known) {
        share->how = "cores left as they are: nothing says which are close to the GPU";
    } else {
        if (!plan->own_view) {
            divide(c, plan->nranks, rank, &wanted);
        }
        cpus_and(&wanted, mask_of(c, rank), &wanted);
        share->bind = cpus_count(&wanted) > 0;
        share->outside = !share->bind;
        share->how = share->outside ? "cores left as they are: none of those wanted may be used"
                                    : (by_row ? "site map" : "hwloc");
        share->cpus = share->bind ? wanted : share->cpus;
    }
}

static void fill_share(const struct context *c, const struct plan *plan, int rank,
                       struct share *share)
{
    const struct candidate *mine = &c->candidates[c->chosen[rank]];
    const struct map_row   *row = (mine->row != NO_NUMBER) ? &c->map->row[mine->row] : NULL;
    const struct gpu       *gpu = &c->machine->gpu[mine->gpu];

    share->gpu = mine->gpu;
    share->device = visible_device(c->machine, c->visible, mine->gpu, c->options->gpus);
    choose_cores(c, plan, rank, share);
    share->numa = (row != NULL) && share->bind ? row->numa : NO_NUMBER;
    if ((share->numa == NO_NUMBER) && share->cpus_known) {
        share->numa = numa_of(c->machine, &share->cpus);
    }
    if ((row != NULL) && (row->nic[0] != '\0')) {
        snprintf(share->nic, sizeof(share->nic), "%s", row->nic);
        share->nic_by_site = true;
        share->nic_distance = (strcmp(row->nic, gpu->nic) == 0) ? gpu->nic_distance : "map";
    } else {
        snprintf(share->nic, sizeof(share->nic), "%s", gpu->nic);
        share->nic_by_site = (row != NULL); /* the site says: the one that the machine names */
        share->nic_distance = gpu->nic_distance;
    }
}

void plan_make(const struct options *options, const struct launch *launch,
               const struct site_map *map, const struct machine *machine,
               const struct visible *visible, const struct cpus *allowed, struct plan *plan_p)
{
    static struct context c;

    c = (struct context){options, launch, map, machine, visible, allowed, {{0}}, 0, {0}};
    memset(plan_p, 0, sizeof(*plan_p));
    plan_p->nranks = launch->local_size;
    if (plan_p->nranks <= launch->local_rank) { /* not said: at least one a GPU */
        plan_p->nranks =
            (visible->count > launch->local_rank) ? visible->count : launch->local_rank + 1;
    }
    plan_p->nranks = (plan_p->nranks > MAX_RANKS) ? MAX_RANKS : plan_p->nranks;
    plan_p->lone = (launch->local_size == 1) && (visible->count > 1);
    plan_p->own_view = visible_per_task(visible) && (plan_p->nranks > 1);
    list_candidates(&c);
    assign(c.candidates, c.ncandidates, plan_p->nranks,
           (launch->masks_known && !plan_p->own_view) ? launch->masks : NULL, c.chosen);
    if (plan_p->own_view && !visible->opaque) {
        c.chosen[launch->local_rank] = 0; /* the first that Slurm left visible */
    }
    for (int rank = 0; rank < plan_p->nranks; rank++) {
        struct share *share = &plan_p->share[rank];

        *share = (struct share){.gpu = NO_NUMBER, .device = NO_NUMBER, .numa = NO_NUMBER};
        share->cpus_known = knows_mask(&c, rank);
        share->how = "cores not known: the launcher has bound each rank, whose own line says where";
        if (share->cpus_known) {
            share->cpus = *mask_of(&c, rank);
            share->how = "no GPU found";
        }
        if (visible->opaque) {
            share->how = "cores left as they are: a slice of a GPU (MIG) has no known place";
            share->device = rank % visible->count;
        } else if (c.ncandidates > 0) {
            fill_share(&c, plan_p, rank, share);
        }
    }
}
