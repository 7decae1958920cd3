/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the device's compiler made of local.cu and of collectives.cu, in a library of its own: no
 * host code is in it.
 */
#include "kernels/kernels.h"

/* Aligned as runtimes expect it of a file. */
#define BYTES_OF_FILE(name, file)                                                                  \
    __asm__(".pushsection .rodata\n"                                                               \
            ".balign 4096\n"                                                                       \
            ".type " #name ", @object\n" #name ":\n"                                               \
            ".incbin \"" file "\"\n"                                                               \
            ".byte 0\n"                                                                            \
            ".size " #name ", . - " #name "\n"                                                     \
            ".popsection\n");                                                                      \
    extern const char name[] __attribute__((visibility("hidden")))

BYTES_OF_FILE(xk_local_bytes, XK_LOCAL_FILE);
BYTES_OF_FILE(xk_collectives_bytes, XK_COLLECTIVES_FILE);

extern const struct xk_image xccl_direct_image;
__attribute__((visibility("default")))
const struct xk_image xccl_direct_image = {XK_VERSION, 0, xk_local_bytes, xk_collectives_bytes};
