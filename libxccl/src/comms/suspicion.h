/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that never come to what another one waits for: they pass host memory where that passes
 * device memory, and so leave the call to MPI, or they run with other variables.
 */
#ifndef XM_COMMS_SUSPICION_H
#define XM_COMMS_SUSPICION_H

#include "comms/comm.h"

/*
 * Say on the board, before it, that this rank makes call number xm->calls with host memory. That
 * stays true, so nobody has to see it in time; and it costs a few ns, whoever waits for the call.
 */
void xm_suspicion_say_host(const struct xm_comm *xm, enum xm_coll coll);
/* The same of a blocking call, while this rank is in it; until xm_board_idle(). */
void xm_suspicion_say_busy(const struct xm_comm *xm, enum xm_coll coll);
/*
 * Does this rank count its calls, as where a device could be used? Asked once: it counts from the
 * first on, whenever it comes to use its device.
 */
bool xm_suspicion_counts(void);
/* This rank has not counted a call as the others have: it says and finds nothing from here on. */
void xm_suspicion_give_up(void);

/* A call of a communicator in one word, which is never 0; and its number among them. */
uint64_t xm_suspicion_call(uint64_t number, enum xm_coll coll);
uint64_t xm_suspicion_number(uint64_t call);

/* The error that names a rank with host memory and the one here with device memory; of: whose
 * ranks. */
xcclResult_t xm_suspicion_mixed(int rank, int mine, const char *of, enum xm_coll coll);

/*
 * An error that names the rank of this node that has said so of a call, xm_suspicion_call(), to
 * which this one passed device memory; looked for now and then, since it is costly. xcclSuccess:
 * none is known of.
 */
xcclResult_t xm_suspicion_find_host(struct xm_comm *xm, uint64_t call, uint64_t now);
/* The same at once, of the call in which the agreement under way was posted. */
xcclResult_t xm_suspicion_find_asked(const struct xm_comm *xm);

/* What a wait for an agreement has seen. */
struct xm_suspicion {
    uint64_t begun, last;
    int      rank;
};
#define XM_NO_SUSPICION                                                                            \
    (struct xm_suspicion)                                                                          \
    {                                                                                              \
        0, 0, -1                                                                                   \
    }

/*
 * Why does it take so long? From time to time; whole: in a call on device memory, which is compared
 * with what the others are in.
 */
xcclResult_t xm_suspicion_look(const struct xm_comm *xm, bool whole, struct xm_suspicion *s);

#endif
