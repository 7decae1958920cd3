/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that a probe had to take out of MPI's queue. */
#ifndef XM_TRANSFERS_KEPT_H
#define XM_TRANSFERS_KEPT_H

#include "transfers/rendezvous.h"

/* Are there any? Then each receive has to look for its message here first. */
bool xm_kept_any(void);
/*
 * Once messages are moved here while other threads receive, each receive looks here and is given to
 * MPI, if it has to be, between these. Nothing waits for other ranks there. Leaving twice is once.
 */
void xm_kept_enter(void);
void xm_kept_leave(void);
bool xm_kept_by_threads(void);
/* May threads do that? Then each receive that MPI is given otherwise is registered until it has it.
 */
bool xm_kept_has_threads(void);
/* Need a receive neither look here nor be registered, as long as no device is in use? */
bool xm_kept_lets_pass(void);
/* -1: it is to be given to MPI as above. */
int  xm_kept_register(MPI_Comm comm, int source, int tag);
void xm_kept_unregister(int slot);
/* MPI_Probe, Iprobe, Mprobe, Improbe: a descriptor's message has the bytes of what it stands for.
 */
int xm_kept_probe(enum xm_function function, int profiling, const long *args);
/*
 * Is the message of this receive kept? Then *message_p is to be received with MPI_Mrecv or Imrecv,
 * and its status is from r.
 */
bool xm_kept_match(MPI_Comm comm, int source, int tag, MPI_Message *message_p,
                   struct xm_rendezvous *r);
/* The same of a message that the program has matched already. */
bool xm_kept_matched(MPI_Message message, struct xm_rendezvous *r);
/* Is one of this receive kept? Another thread may take it the next moment. */
bool xm_kept_has(MPI_Comm comm, int source, int tag);
void xm_kept_end(void);

#endif
