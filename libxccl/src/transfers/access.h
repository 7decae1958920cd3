/* SPDX-License-Identifier: BSD-3-Clause */
/* Accesses to windows of which something comes back. */
#ifndef XM_TRANSFERS_ACCESS_H
#define XM_TRANSFERS_ACCESS_H

#include "transfers/transfer.h"

/*
 * Accesses are numbered once MPI has them. A call synchronises those that are not above the last
 * number before it: other threads may begin some meanwhile.
 */
uint64_t xm_access_next(void);
uint64_t xm_access_last(void);

/* From when MPI has it until the transfer is discarded; nothing for other transfers. */
void xm_access_begin(struct xm_transfer *t);
void xm_access_end(struct xm_transfer *t);
/* poll() of an access, while no other thread finishes it. */
bool xm_access_poll(struct xm_transfer *t, bool (*poll)(struct xm_transfer *t));

/* Is it to this window, and to this rank or to any (rank < 0)? */
bool xm_access_is(const struct xm_transfer *t, long window, int rank);

/* Finish those that MPI has synchronised, whose requests the program still holds, if any. */
bool         xm_accesses_any(void);
xcclResult_t xm_accesses_synchronised(long window, int rank, uint64_t most);

#endif
