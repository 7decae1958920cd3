/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/array.h"

#include <stdlib.h>
#include <string.h>

#include "transfers/watcher.h"

/* So few are looked at one by one before MPI may complete any. */
enum { FEW = 16 };

static void *carve(char **at, size_t bytes)
{
    void *piece = *at;

    *at += (bytes + 7) / 8 * 8;
    return piece;
}

/* Of it little more is touched than the call needs. */
static bool make_room(struct xm_array *a)
{
    size_t n = (size_t)a->count;
    size_t each = sizeof(*a->entries) + sizeof(*a->fixed) + sizeof(*a->fixes) + sizeof(*a->ended) +
                  sizeof(*a->statuses) + sizeof(*a->hideable) + sizeof(*a->used) + sizeof(*a->ops);
    char *at = malloc(n * each + 8 * 8);

    if (at == NULL) {
        return false;
    }
    a->entries = carve(&at, n * sizeof(*a->entries));
    a->ops = carve(&at, n * sizeof(*a->ops));
    a->fixes = carve(&at, n * sizeof(*a->fixes));
    a->ended = carve(&at, n * sizeof(*a->ended));
    a->statuses = carve(&at, n * sizeof(*a->statuses));
    a->used = carve(&at, n * sizeof(*a->used));
    a->hideable = carve(&at, n * sizeof(*a->hideable));
    a->fixed = carve(&at, n * sizeof(*a->fixed));
    memset(a->fixed, 0, n * sizeof(*a->fixed));
    memset(a->ops, 0, n * sizeof(*a->ops));
    return true;
}

bool xm_completes_some(enum xm_function function)
{
    switch (function) {
    case XM_FN_MPI_Test:
    case XM_FN_MPI_Testany:
    case XM_FN_MPI_Testsome:
    case XM_FN_MPI_Waitany:
    case XM_FN_MPI_Waitsome:
        return true;
    default:
        return false;
    }
}

/* Functions that wait in MPI for all of what it may complete first. */
static bool waits_in_mpi(enum xm_function function)
{
    return (function == XM_FN_MPI_Wait) || (function == XM_FN_MPI_Waitall);
}

static void note_op(struct xm_array *a, int i, const struct xm_entry *e)
{
    if (e != NULL) {
        a->ours = a->any_op = true;
        a->ops[i] = e->op;
    }
}

int xm_array_find_op(const struct xm_array *a, const struct xm_op *op)
{
    int i = 0;

    if ((a->count == 1) || (a->entries == NULL)) {
        return a->count - 1;
    }
    while ((i < a->count) && (a->ops[i] != op)) {
        i++;
    }
    return (i < a->count) ? i : -1;
}

/* What MPI is to see of number i. True: the program's own request is not always right. */
static bool sort_in(struct xm_array *a, int i)
{
    struct xm_entry *e = a->entries[i];

    a->used[i] = a->given[i];
    if ((e == NULL) || (e->op != NULL)) {
        a->entries[i] = NULL; /* MPI may free that of an operation */
        note_op(a, i, e);
        return false;
    }
    if (xm_entry_is_persistent(e)) {
        a->used[i] = e->inner;
        note_op(a, i, xm_entry_find(e->inner));
    } else if (xm_array_is_mpi_first(a, i)) {
        a->ours = a->any_first = true;
    } else {
        a->ours = true;
        a->hideable[a->num_hideable++] = i;
    }
    return true;
}

/*
 * Of hundreds of receives that are nothing more, most calls complete none. Nobody else can get the
 * handle of one that MPI has completed: there are no threads.
 */
static void find_late(struct xm_array *a)
{
    size_t n = (size_t)a->count;

    a->late = a->ours = a->any_first = true;
    memcpy(a->used, a->given, n * sizeof(*a->used));
    memset(a->entries, 0, n * sizeof(*a->entries));
}

void xm_array_find_late(struct xm_array *a, int i)
{
    if (a->late && (a->entries[i] == NULL) && (a->used[i] == XM_HANDLE(MPI_REQUEST_NULL)) &&
        (a->given[i] != XM_HANDLE(MPI_REQUEST_NULL))) {
        a->entries[i] = xm_entry_of_simple(a->given[i]);
    }
}

bool xm_array_open(struct xm_array *a, enum xm_function function, int count, MPI_Request *requests)
{
    bool copy = false;

    *a = (struct xm_array){.count = count, .given = requests, .used = requests};
    if ((count <= 0) || (requests == NULL)) {
        return true; /* MPI says what is wrong with it, if anything */
    }
    a->looks = (function == XM_FN_MPI_Request_get_status);
    bool many = (count > FEW) || (xm_watched_receives() > FEW);
    bool none = a->looks || (waits_in_mpi(function) && xm_entries_may_be_offered());
    a->first = none                                    ? XM_FIRST_NONE
               : (xm_completes_some(function) && many) ? XM_FIRST_SHORT
                                                       : XM_FIRST_SIMPLE;
    if ((xm_entries_hidden() == 0) || ((count == 1) && !xm_entries_any(1, requests))) {
        a->ours = xm_entries_any(count, requests);
        if (!a->ours || (count == 1)) {
            return true;
        }
    }
    if (!make_room(a)) {
        return false;
    }
    if ((count > FEW) && !none && xm_entries_are_simple()) {
        find_late(a);
        return true;
    }
    xm_entries_find(count, requests, a->first, a->entries);
    for (int i = 0; i < count; i++) {
        copy = sort_in(a, i) || copy;
    }
    if (!copy) {
        a->used = requests;
    }
    if (!copy && !a->any_op) {
        free(a->entries);
        a->entries = NULL;
    }
    return true;
}

void xm_array_close(struct xm_array *a)
{
    if (a->entries == NULL) {
        return;
    }
    for (int i = 0; (i < a->count) && !a->late; i++) {
        struct xm_entry *e = a->entries[i];
        if (e == NULL) {
            a->given[i] = a->used[i];
        } else if (xm_entry_is_persistent(e)) {
            e->inner = a->used[i];
        }
    }
    if (a->late) {
        memcpy(a->given, a->used, (size_t)a->count * sizeof(*a->given));
    } else if (a->any_first) {
        xm_entries_found_again(a->count, a->entries);
    }
    free(a->entries); /* and all the others with it */
}
