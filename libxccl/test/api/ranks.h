/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks as processes of one program: no MPI, no launcher. */
#ifndef XT_RANKS_H
#define XT_RANKS_H

#include <stdbool.h>
#include <stddef.h>

#include <xccl/xccl.h>

/* Seen by the program and all ranks of all runs. */
struct xt_shared {
    long calls;              /* collectives that ran and were compared, on rank 0 */
    long elements;           /* compared, on all ranks */
    char covered[16][16][8]; /* collective, type, operation */
};
extern struct xt_shared *xt_shared;

/* What a rank knows of itself. */
struct xt_rank {
    int rank;
    int nranks;
    int read_fd;       /* from rank 0; rank 0: -1 */
    int write_fds[16]; /* to each rank; rank 0 only */
};

/* Call once, before xt_run(). */
void xt_ranks_open(void);

/*
 * Run body in nranks processes; true if all of them returned 0. When one ends badly the others are
 * killed, so that nobody waits for it. Each process has a time limit of `seconds`.
 */
bool xt_run(int nranks, int seconds, int (*body)(const struct xt_rank *self));

/* Give rank 0's bytes to all. */
void xt_share(const struct xt_rank *self, void *bytes, size_t len);

/* A communicator over all ranks. Ends the process on failure. */
xcclComm_t xt_comm(const struct xt_rank *self);

#endif
