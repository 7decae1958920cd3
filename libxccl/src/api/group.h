/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XC_API_GROUP_H
#define XC_API_GROUP_H

#include <stdbool.h>

#include <xccl/xccl.h>

/* A call failed: if the thread has a group open, its end shall say so too. Returns rc. */
xcclResult_t xc_group_note(xcclResult_t rc);

#endif
