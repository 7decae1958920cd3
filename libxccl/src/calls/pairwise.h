/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbourhood collectives and MPI_Alltoallw as messages, one along each edge, which go from
 * device to device as those of the program do. Once any rank of a communicator has come with a
 * device, all of them carry all of its calls so, whatever memory they pass: no more is to be agreed
 * on. Until then MPI does, which takes a little less time for host memory. The ranks ask each other
 * where a topology is made, and in blocking calls number 1, 4, 16, ...
 */
#ifndef XM_CALLS_PAIRWISE_H
#define XM_CALLS_PAIRWISE_H

#include "ops/op.h"

/* A communicator with a topology has just been made, by all its ranks together. */
void xm_pairwise_made(MPI_Comm comm);
/* One that a persistent request has for itself, of device memory: it takes the messages, too. */
xcclResult_t xm_pairwise_apart(MPI_Comm comm, enum xm_coll coll);

/* Does the next call on it go to MPI, without a look at its arguments? Not for MPI_COMM_NULL. */
bool xm_pairwise_are_mpis(MPI_Comm comm, enum xm_coll coll, bool blocking);
/* It has. */
void xm_pairwise_count(MPI_Comm comm, enum xm_coll coll, bool blocking);

/* The path of such a collective, in its place among the calls of its communicator. */
xcclResult_t xm_pairwise_choose(struct xm_op *op, const struct xm_path **path_p);

#endif
