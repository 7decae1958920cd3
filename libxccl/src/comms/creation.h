/* SPDX-License-Identifier: BSD-3-Clause */
/* A vendor communicator in the making. */
#ifndef XM_COMMS_CREATION_H
#define XM_COMMS_CREATION_H

#include "comms/comm.h"

/*
 * Outcomes in the order in which they prevail: the least of all ranks' is everybody's. XM_REFUSED
 * and XM_RETRY come of the ranks' devices, which all ranks see alike: where one of them prevails no
 * rank has joined.
 */
enum xm_outcome { XM_FAILED, XM_REFUSED, XM_RETRY, XM_PENDING, XM_DONE };

struct xm_creation {
    MPI_Request                 id_request, where_request;
    struct id_message          *message;
    struct where               *mine, *all;
    bool                        has_id; /* this rank has given the message its id */
    const struct xc_device_ops *dev;
    int                         device;
    struct xm_vendor_job       *job;
    enum xm_outcome             outcome; /* atomic; the rest below is of it */
    xcclResult_t                result;  /* the failure; xcclSuccess for XM_PENDING and XM_DONE */
    struct xm_vendor           *vendor;
    bool                        made;   /* vendor is new, not an idle one */
    const void                 *tester; /* the thread that tests the two requests, or NULL */
    bool                        ended;  /* meanwhile: that thread is to let go of it */
    char                        detail[512];
};

/* Post the exchange of id and devices; every rank in the same operation. */
xcclResult_t xm_creation_begin(struct xm_comm *xm, const struct xc_device_ops *dev, int device);
/* One that is over before it began: an idle vendor communicator is used again. */
void xm_creation_reuse(struct xm_comm *xm, uint64_t id);
/* XM_FAILED, unless it has an outcome already. */
void xm_creation_give_up(struct xm_comm *xm, xcclResult_t result, const char *why);
void xm_creation_end(struct xm_comm *xm);
/* No rank has joined by its id, and none will: it is for the next one. */
void xm_creation_unused(struct xm_comm *xm);
/* Until what the ranks exchange for it is there; all of them have posted their part, or will. */
void xm_creation_wait(struct xm_comm *xm);
bool xm_creation_exchanges(struct xm_comm *xm);
/* So far; by any of the program's threads. */
enum xm_outcome xm_creation_outcome(const struct xm_creation *c);

/* What making one costs, in microseconds; 0: none was made yet. */
uint64_t xm_creation_measured_us(void);
/* The same until one was made. */
extern const double xm_creation_first_guess_us;

/*
 * The vendor's path would have saved so much in this operation, by facts equal on all ranks. When
 * the sum exceeds what making a communicator costs, it is begun.
 */
void xm_comm_saved(struct xm_comm *xm, double us, const struct xc_device_ops *dev, int device);

bool xm_creation_is_under_way(const struct xm_comm *xm);
/* Move what is under way for xm. Never blocks; MPI may call the program's error handler. */
void xm_comm_advance(struct xm_comm *xm);

#endif
