/* SPDX-License-Identifier: BSD-3-Clause */
/* What a user is told at the start of a job. */
#ifndef XM_ENTRIES_ANNOUNCE_H
#define XM_ENTRIES_ANNOUNCE_H

/*
 * With MPI initialised: at info that xccl is active, by rank 0; and a warning, once per node, where
 * the launcher started several processes and each of them is alone, where what XCCL_PROFILE or
 * XCCL_DUMP_DIR asks for cannot be written at the end, and where XCCL_SITE names no site of this
 * installation. Loads nothing.
 */
void xm_announce(void);

#endif
