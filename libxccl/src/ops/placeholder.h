/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From Open MPI 5 on its functions for Fortran write into the request that they get of a collective
 * with arrays: they take it for the structure of Open MPI's own non-blocking collectives, which is
 * larger than the requests that ours are. So they get a placeholder in its place, and then the
 * number of our request for it.
 */
#ifndef XM_OPS_PLACEHOLDER_H
#define XM_OPS_PLACEHOLDER_H

/* Open MPI's function for Fortran is about to get *request_p: a placeholder, where it is ours. */
void xm_placeholder_put(void **request_p);

/* MPI_Request_c2f: (request). The number that a request has in Fortran. */
long xm_placeholder_c2f(int profiling, const long *args);

#endif
