/* SPDX-License-Identifier: BSD-3-Clause */
/* Split calls on files, until they end, and accesses to windows, until these are synchronised. */
#ifndef XM_CALLS_BEGUN_H
#define XM_CALLS_BEGUN_H

#include "transfers/transfer.h"

bool xm_begun_any(void);
/* MPI has the call. */
void xm_begun_add(struct xm_transfer *t);
/* The split call on a file, or NULL; the caller ends it. */
struct xm_transfer *xm_begun_take_split(long file);
/* What was taken is where it belongs: from here on calls need not look for it. */
void xm_begun_end(struct xm_transfer *t);
/*
 * MPI is done with the origin buffers of accesses to a window: now the program gets what they
 * fetched. rank: of those to it, < 0 of all; most: of those up to that number. One thread at a
 * time: another one that has synchronised the same window waits for it here.
 */
xcclResult_t xm_begun_deliver(long window, int rank, uint64_t most);

#endif
