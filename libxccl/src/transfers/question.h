/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When the driver is asked for a copy by an engine: from begin until it is no longer in progress.
 */
#ifndef XM_TRANSFERS_QUESTION_H
#define XM_TRANSFERS_QUESTION_H

#include "transfers/rendezvous.h"

void         xm_question_begin(struct xm_rendezvous *r);
xcclResult_t xm_question_ask(struct xm_rendezvous *r, const struct xc_device_ops *dev, void *event);

#endif
