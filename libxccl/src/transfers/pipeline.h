/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who takes messages in pieces: what the ranks of MPI_COMM_WORLD have agreed on in MPI_Init, and
 * what all such messages of this process share. How one is sent and received: pieces.h.
 */
#ifndef XM_TRANSFERS_PIPELINE_H
#define XM_TRANSFERS_PIPELINE_H

#include "transfers/rendezvous.h"

#define XM_PIPELINE_MAGIC 0x7863636c70697065u

/*
 * With XCCL_THREADS=multiple, in MPI_Init of every rank, which waits for the others: does MPI let
 * all threads call it, and does this process look for descriptors? Those who can get a communicator
 * for the pieces.
 */
xcclResult_t xm_pipeline_agree(void);
/* In MPI_Finalize: no message is under way. */
void xm_pipeline_end(void);
/*
 * From here on this process sends none so: those on a communicator of an MPI-4 session may be
 * received after MPI_Finalize. Whoever sends one has called MPI_Session_init itself.
 */
void xm_pipeline_send_no_more(void);

/* Does that rank of MPI_COMM_WORLD take a message of so many bytes in pieces? */
bool xm_pipeline_takes(int world_rank, uint64_t bytes);
/* For the pieces, by their tags; its ranks are those of MPI_COMM_WORLD. Errors return. */
MPI_Comm xm_pipeline_comm(void);

/* Number and tag of a message of this process, or -1: there are too many. And the tag back. */
int  xm_pipeline_take_tag(uint64_t *number_p);
void xm_pipeline_give_tag(int tag);
/* What the receiver is to get in its place. */
void xm_pipeline_describe(struct xm_descriptor *d, int tag, uint64_t number, uint64_t bytes);

/* A descriptor of such a message that nobody took yet? */
bool xm_pipeline_is_open(const struct xm_descriptor *d);
/* Take it; once. */
bool xm_pipeline_take(const struct xm_descriptor *d);

/*
 * What a receiver answers to a descriptor: it has memory for the first pieces, and has given them
 * to MPI; or it has no room for the message.
 */
struct xm_answer {
    uint64_t number;
    int32_t  tag, takes;
};
/* Begin to send it. MPI's code. */
int xm_pipeline_answer(const struct xm_answer *answer, int rank, MPI_Request *request);
/* Has the answer come to this message of this process? Asks MPI now and then. */
bool xm_pipeline_answered(int tag, bool *takes_p);

/*
 * So few messages in each direction are under way at a time. A sender takes a place when the
 * receiver is ready for the pieces, so no message waits for one that may come later.
 */
bool xm_pipeline_enter(bool sends);
void xm_pipeline_leave(bool sends);

#endif
