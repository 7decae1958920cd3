/* SPDX-License-Identifier: BSD-3-Clause */
/* What the device's compiler made of kernels.cu, in a library of its own: no host code is in it. */
#include "kernels/kernels.h"

__asm__(".pushsection .rodata\n"
        ".balign 4096\n" /* as runtimes expect it of a file */
        ".type xk_image_bytes, @object\n"
        "xk_image_bytes:\n"
        ".incbin \"" XK_IMAGE_FILE "\"\n"
        ".byte 0\n"
        ".size xk_image_bytes, . - xk_image_bytes\n"
        ".popsection\n");

extern const char            xk_image_bytes[] __attribute__((visibility("hidden")));
extern const struct xk_image xccl_direct_image;
__attribute__((visibility("default")))
const struct xk_image xccl_direct_image = {XK_VERSION, 0, xk_image_bytes};
