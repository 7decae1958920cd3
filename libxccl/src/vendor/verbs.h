/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XC_VENDOR_VERBS_H
#define XC_VENDOR_VERBS_H

#include <stdbool.h>

#define XC_VERBS_FOLDER "/sys/class/infiniband"

/*
 * Has a device of the folder a port that NCCL and RCCL take: active, InfiniBand or Ethernet, and
 * one that wanted, the value of NCCL_IB_HCA, does not leave out? Amazon's EFA, which is neither of
 * both, takes a plugin.
 */
bool xc_verbs_usable(const char *folder, const char *wanted);

#endif
