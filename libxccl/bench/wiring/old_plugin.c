/* SPDX-License-Identifier: BSD-3-Clause */
/* A network plugin of an interface that no NCCL of today speaks: the symbol is there, and nothing
 * behind it. */
const void *const ncclNetPlugin_v2[16] = {0};
