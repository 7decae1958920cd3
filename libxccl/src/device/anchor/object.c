/* SPDX-License-Identifier: BSD-3-Clause */
/* Nothing: a shared object to be the last one of the process. See device/anchor.h. */
const char xccl_anchor = 0;
