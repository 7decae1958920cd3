/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ranks of a communicator agree on; see agree.c. */
#ifndef XM_COMMS_AGREE_H
#define XM_COMMS_AGREE_H

#include "comms/comm.h"

/*
 * Before operation number xm->device_calls (just counted) of a communicator: take in what the ranks
 * have agreed on by now, and ask for more. Every rank calls it for the same operations. blocking:
 * may it wait for the other ranks to come to this operation? saving_us: what this rank would save
 * in it if it were not staged; the ranks need not say the same. A failure is equal on all ranks.
 */
xcclResult_t xm_comm_agree(struct xm_comm *xm, enum xm_coll coll, bool blocking, double saving_us,
                           const struct xc_device_ops *dev, int device);

/*
 * Before this rank asks the others anything because of a variable of its own, in a blocking
 * collective: do all run with the same? A communicator pays for it once.
 */
xcclResult_t xm_comm_compare(struct xm_comm *xm);
/*
 * The greatest of what the ranks say, in a blocking collective. One that runs with another variable
 * may never come: unlike in MPI's own call, that is found out.
 */
xcclResult_t xm_comm_greatest(struct xm_comm *xm, int mine, int *all_p);
/* The same of bits: those that any rank says. */
xcclResult_t xm_comm_any(struct xm_comm *xm, int mine, int *all_p);
/* So many bytes of each rank, in their order; for xm_guarded_free(). The wait has a limit, too. */
xcclResult_t xm_comm_collect(struct xm_comm *xm, const void *mine, int bytes, void **all_p);

/* In a blocking collective on host memory: take in what the ranks were asked before. */
void xm_comm_settle(struct xm_comm *xm);

/*
 * Before MPI frees or disconnects the communicator, which all ranks do: wait for what was posted on
 * it. MPICH waits until nobody holds such a request; collectives of Open MPI use the communicator
 * to their end, whether it is still there or not. False: a rank that has given up the communicator
 * did not come in some seconds, and never will.
 */
bool xm_comm_end_agreements(struct xm_comm *xm);
/* Did an operation end early for such a rank, and what the ranks were asked then is still on? */
bool xm_comm_has_given_up(const struct xm_comm *xm);
/* Would that wait for nobody? */
bool xm_comm_agreements_over(struct xm_comm *xm);

/*
 * All that an agreement can make, at once: the direct path and, unless switched off, a vendor
 * communicator. Collective and blocking.
 */
xcclResult_t xm_comm_agree_now(struct xm_comm *xm, const struct xc_device_ops *dev, int device);

/* Free what agree.c keeps for xm. */
void xm_comm_forget(struct xm_comm *xm);

/* A communicator for the program itself, of all ranks of comm. Collective and blocking. */
xcclResult_t xm_comm_create(MPI_Comm comm, const struct xc_device_ops *dev, int device,
                            xcclComm_t *xcomm_p);

/*
 * How the direct path, which lies above, joins the ranks of a communicator: each says what it has
 * (fill), and all judge alike what all said, in the same operation; xm->worth_us is then the most
 * that any of them would save. LATER and FULL: asked again within that time, or some operations
 * later; where FULL, what others use must be freed before. spent: they have to join
 * anew. leave: what they have joined is left, or the communicator is gone.
 */
enum xm_joining { XM_JOINED, XM_JOIN_LATER, XM_JOIN_FULL, XM_JOIN_NEVER };
struct xm_join {
    size_t bytes; /* of what a rank says */
    bool (*wanted)(const struct xm_comm *xm);
    void (*fill)(struct xm_comm *xm, const struct xc_device_ops *dev, int device, void *mine);
    enum xm_joining (*judge)(struct xm_comm *xm, const void *all);
    bool (*spent)(const struct xm_comm *xm);
    void (*leave)(struct xm_comm *xm);
};
extern const struct xm_join *xm_comm_join; /* set before the first call; NULL: there is none */

#endif
