/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that the sender writes, by the thread that is at the transfer. */
#ifndef XM_TRANSFERS_PUSH_H
#define XM_TRANSFERS_PUSH_H

#include "transfers/rendezvous.h"

/* What the program still has to post may decide what is done about such a message. */
bool xm_push_depends(uint64_t bytes);
/* By the receiver of what it has taken: is the sender asked to? several: copies at once. */
bool xm_push_ask(struct xm_rendezvous *r, const struct xc_device_ops *dev, bool several);
/* NOT: it is the receiver's again. */
enum xm_push { XM_PUSH_WAITS, XM_PUSH_DONE, XM_PUSH_NOT };
enum xm_push xm_push_look(struct xm_rendezvous *r);
/* By the sender, which looks at all of its offers if it has been asked; and at this one then. */
bool xm_push_attend(void);
void xm_push_begin(struct xm_rendezvous *r);
void xm_push_advance(struct xm_rendezvous *r);

#endif
