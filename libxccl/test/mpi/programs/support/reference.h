/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MT_REFERENCE_H
#define MT_REFERENCE_H

/*
 * A function of the MPI library itself, "PMPI_Allreduce": the interposer takes over some of these
 * names too, so that a plain call of it would not be a reference. Ends the program if there is
 * none.
 */
void *mt_reference(const char *name);

#endif
