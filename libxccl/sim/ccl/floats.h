/* SPDX-License-Identifier: BSD-3-Clause */
/* The small floating-point formats: to float and back, rounding to nearest even. */
#ifndef XS_CCL_FLOATS_H
#define XS_CCL_FLOATS_H

#include <stdint.h>

struct xs_format {
    int      mantissa; /* bits */
    int      bias;
    uint32_t top;      /* largest finite code without sign */
    uint32_t overflow; /* code of what is larger: infinity, or top where the format saturates */
    uint32_t nan;
};

extern const struct xs_format xs_half, xs_bfloat16, xs_e4m3, xs_e5m2;

float    xs_decode(const struct xs_format *format, uint32_t code, int bits);
uint32_t xs_encode(const struct xs_format *format, float value, int bits);

#endif
