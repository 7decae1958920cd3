/* SPDX-License-Identifier: BSD-3-Clause */
/* The requests of a call that waits for them or tests them, as MPI is to see them. */
#ifndef XM_OPS_ARRAY_H
#define XM_OPS_ARRAY_H

#include "ops/entry.h"

/* What MPI's status of a message that was fetched is to say. */
struct xm_fix {
    MPI_Count bytes; /* XM_WHOLE: MPI knows */
    int       code;
    bool      raised; /* that; else the communicator's handler is to be called: */
    MPI_Comm  comm;
    bool      instead; /* of a persistent request, another one than the program's */
    bool      kept;    /* then MPI does not know these: */
    int       source, tag;
};

/* A request that MPI has completed first: see enum xm_first. */
struct xm_ended {
    int               at; /* in the array */
    int               code;
    const MPI_Status *status;
};

/* The requests of a call, as MPI is to see them. */
struct xm_array {
    int          count;
    MPI_Request *given; /* the program's */
    MPI_Request *used;  /* given itself, or a copy; all the others are there with a copy only: */
    struct xm_entry    **entries; /* of persistent collectives and transfers, or NULL */
    const struct xm_op **ops;     /* that of each that is an operation's */
    bool                *fixed;   /* is one of these used? */
    struct xm_fix       *fixes;
    struct xm_ended     *ended;
    int                  num_ended;
    MPI_Status          *statuses; /* for a program that wants none */
    int                 *hideable; /* transfers that MPI sees once they are over */
    int                  num_hideable;
    bool                 ours; /* is any of them an operation's or a transfer's? */
    bool          looks;       /* the call completes none, and other threads may look at them too */
    enum xm_first first;       /* what MPI may complete before it was looked at */
    bool          any_first;   /* there are such */
    bool          any_op;
    bool          late;   /* entries are found when MPI has completed their requests */
    int           hidden; /* transfers that are not over */
    bool          raises; /* a handler is to hear of the call's code: that of */
    MPI_Comm      raises_on;
};

/* For a call of this function; false: out of memory. xm_array_close() afterwards, in any case. */
bool xm_array_open(struct xm_array *a, enum xm_function function, int count, MPI_Request *requests);
/* What MPI has set to null is over: for a persistent request, until it is started again. */
void xm_array_close(struct xm_array *a);

/* May MPI complete this one before it is looked at? */
static inline bool xm_array_is_mpi_first(const struct xm_array *a, int i)
{
    return (a->entries[i] != NULL) && xm_entry_is_first(a->entries[i], a->first);
}

/* Which of them was this operation's? -1: none. */
int xm_array_find_op(const struct xm_array *a, const struct xm_op *op);

/* MPI has completed number i, and it is looked for now, unless it was before. */
void xm_array_find_late(struct xm_array *a, int i);

/* Functions that complete what is over, and leave the others. */
bool xm_completes_some(enum xm_function function);

#endif
