/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of an agreement between the ranks of a communicator; see agree.c. */
#ifndef XM_COMMS_AGREEMENT_H
#define XM_COMMS_AGREEMENT_H

#include "comms/comm.h"

/* What a rank says of itself at the first operation on device memory (peer_info.c). */
struct xm_peer_info;
size_t xm_peer_info_bytes(void);
void   xm_peer_info_fill(struct xm_comm *xm, const struct xc_device_ops *dev, int device,
                         struct xm_peer_info *mine);
/* Judge what all ranks say of themselves, alike on every rank and in the same operation. */
xcclResult_t xm_peer_info_apply(struct xm_comm *xm, const struct xm_peer_info *all, bool blocking);
/* In a blocking operation, once for a communicator: has every rank the slots of all? */
xcclResult_t xm_seats_agree(struct xm_comm *xm);
/* The answer to that, however it was found: the same on all ranks, in the same operation. */
void xm_seats_apply(struct xm_comm *xm, bool all_see);

/* Of it, what tuning tables ask for (setting.c). */
struct xm_peer_setting {
    char     gpu[96];
    uint64_t tables; /* digest of the files that were read */
    int32_t  fabric, gpu_aware;
};
void xm_setting_fill(const struct xc_device_ops *dev, int device, struct xm_peer_setting *mine);
/* Before the ranks have agreed. */
void xm_setting_begin(struct xm_setting *setting, int nranks);
/* hosts: a number of each rank's node, which is sorted; setting_of: finds a rank's part. */
void xm_setting_agree(struct xm_comm *xm, uint64_t *hosts,
                      const struct xm_peer_setting *(*setting_of)(const void *all, int rank),
                      const void *all);

/*
 * How the direct path, which lies above, joins the ranks of a communicator: each says what it has
 * (fill), and all judge alike what all said, in the same operation. LATER and FULL: asked again
 * some operations later; where
 * FULL, what others use must be freed before. spent: they have to join anew.
 * leave: what they have joined is left, or the communicator is gone.
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

/* Outcomes in the order in which they prevail: the least of all ranks' is everybody's. */
enum xm_outcome { XM_FAILED, XM_RETRY, XM_PENDING, XM_DONE };

/* A vendor communicator in the making (creation.c). */
struct xm_creation {
    MPI_Request                 id_request, where_request;
    struct id_message          *message;
    struct where               *mine, *all;
    const struct xc_device_ops *dev;
    int                         device;
    struct xm_vendor_job       *job;
    enum xm_outcome             outcome; /* atomic; the rest below is of it */
    struct xm_vendor           *vendor;
    bool                        made; /* vendor is new, not an idle one */
    char                        detail[512];
};

/* Post the exchange of id and devices; every rank in the same operation. */
xcclResult_t xm_creation_begin(struct xm_comm *xm, const struct xc_device_ops *dev, int device);
/* One that is over before it began: an idle vendor communicator is used again. */
void xm_creation_reuse(struct xm_comm *xm, uint64_t id);
/* XM_FAILED, unless it has an outcome already. */
void xm_creation_give_up(struct xm_comm *xm, const char *why);
void xm_creation_end(struct xm_comm *xm);
/* Until what the ranks exchange for it is there; all of them have posted their part, or will. */
void xm_creation_wait(struct xm_comm *xm);
/* So far; by any of the program's threads. */
enum xm_outcome xm_creation_outcome(const struct xm_creation *c);

/* What making one costs, in microseconds; 0: none was made yet. */
uint64_t xm_creation_measured_us(void);
/* The same until one was made. */
extern const double xm_creation_first_guess_us;

/* Leave a request and the memory that it uses to itself; in MPI_Finalize it is over at the latest.
 */
void xm_leave_request(MPI_Request request, void *first, void *second);
void xm_sweep_requests(void);

/*
 * Why rank `who` failed, into text on every rank: own is its cause there. Where waiting is allowed
 * (blocking, on all ranks) everyone gets the cause; else the others only learn which rank it was.
 */
void xm_share_cause(struct xm_comm *xm, int who, bool blocking, const char *own, char *text,
                    size_t len);
/* The vendor's path is not offered; the rank `speaker`, which knows the cause, warns. */
void         xm_comm_fail(struct xm_comm *xm, int speaker, const char *text);
xcclResult_t xm_agreement_failed(const char *what);

#endif
