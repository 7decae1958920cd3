/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From Open MPI 5 on its functions for Fortran write into the request that they get of a collective
 * with arrays: they take it for the structure of Open MPI's own non-blocking collectives, which is
 * larger than the requests that ours are. So they get a stand-in in its place, and then the
 * number of our request for it.
 */
#ifndef XM_OPS_FORTRAN_REQUEST_H
#define XM_OPS_FORTRAN_REQUEST_H

/* Open MPI's function for Fortran is about to get *request_p: a stand-in, where it is ours. */
void xm_fortran_request_put(void **request_p);

/* MPI_Request_c2f: (request). The number that a request has in Fortran. */
long xm_fortran_request_c2f(int profiling, const long *args);

#endif
