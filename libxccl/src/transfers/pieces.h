/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message in pieces. Its receiver has matched the descriptor, and answers once it has memory for
 * the first pieces and has given them to MPI. So no piece waits in MPI for a receive, and no pinned
 * memory for a message that nobody receives yet. Then both sides move a few pieces at a time: one
 * is copied from or to the device while MPI carries others. All of it is done in steps that never
 * wait, by whoever is at the transfer: the program's thread, or the watcher's, which calls MPI
 * here. So it needs MPI_THREAD_MULTIPLE.
 */
#ifndef XM_TRANSFERS_PIECES_H
#define XM_TRANSFERS_PIECES_H

#include "transfers/pipeline.h"
#include "transfers/rendezvous.h"

enum { XM_PIECES_AT_ONCE = 4 };

struct xm_pieces {
    int      peer, tag;
    uint64_t number, bytes, piece, count; /* of the message; bytes of a piece, and how many */
    bool     begun, answered; /* of a receive: the answer is given to MPI, and has gone */
    bool     refused, broken; /* the receiver has no room; the pieces are of no use any more */
    struct xm_answer answer;
    MPI_Request      answer_request;

    /*
     * Pieces so far, in three steps. Of a send: copied from the device, given to MPI, gone. Of a
     * receive: given to MPI, come, copied to where they belong.
     */
    uint64_t    first, second, third;
    unsigned    at_once;
    MPI_Request requests[XM_PIECES_AT_ONCE];
    void       *events[XM_PIECES_AT_ONCE]; /* of copies; NULL: there is none */

    bool              placed, sends;
    struct xm_scratch scratch;
    char             *pinned; /* for pieces from or to a device */
    int               device;
    xcclStream_t      stream;

    /* Of a receive: host memory that the pieces come to, or NULL; all of it apart, or NULL. */
    char *to, *whole;
    char *head; /* the first piece, while MPI may still write where it belongs */
};

/* Send the bytes at r->sent so; r->out is to be sent. False: they go otherwise. */
bool xm_pieces_offer(struct xm_rendezvous *r, uint64_t bytes);
/* Has it gone? */
bool xm_pieces_send(struct xm_rendezvous *r);
/* MPI refused to send the descriptor; or (sent) nobody waits for the end any longer. */
void xm_pieces_drop(struct xm_rendezvous *r, bool sent);

/* With the descriptor in r->got, and taken. */
void xm_pieces_receive(struct xm_transfer *t);
/* Is it there? */
bool xm_pieces_advance(struct xm_transfer *t);

/*
 * Of both. A place, and unless the pieces come to host memory some that is pinned: for fewer at
 * once where there is little. False: not yet.
 */
bool xm_pieces_place(struct xm_pieces *p, int device);
void xm_pieces_free(struct xm_pieces *p);
/* Bytes of piece number i, and where it begins. */
size_t xm_pieces_bytes(const struct xm_pieces *p, uint64_t i);
/* The message ends with the first failure; the pieces that are left go on, empty. */
void xm_pieces_fail(struct xm_rendezvous *r, struct xm_pieces *p, xcclResult_t res);
void xm_pieces_fail_in_mpi(struct xm_rendezvous *r, struct xm_pieces *p);
/* Copy one, with an event; MPI says that a request is complete; so does an event. */
xcclResult_t xm_pieces_copy(struct xm_pieces *p, uint64_t i, void *to, const void *from,
                            size_t bytes);
bool         xm_pieces_copied(struct xm_pieces *p, uint64_t i, xcclResult_t *res_p);

#endif
