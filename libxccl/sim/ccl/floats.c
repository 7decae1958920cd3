/* SPDX-License-Identifier: BSD-3-Clause */
#include "ccl/floats.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

/* float8 saturates, as the vendors' conversions do. */
const struct xs_format xs_half = {10, 15, 0x7bff, 0x7c00, 0x7e00};
const struct xs_format xs_bfloat16 = {7, 127, 0x7f7f, 0x7f80, 0x7fc0};
const struct xs_format xs_e4m3 = {3, 7, 0x7e, 0x7e, 0x7f};
const struct xs_format xs_e5m2 = {2, 15, 0x7b, 0x7b, 0x7e};

static float from_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint32_t to_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

float xs_decode(const struct xs_format *format, uint32_t code, int bits)
{
    uint32_t sign = (code >> (bits - 1)) << 31;
    uint32_t magnitude = code & ((1U << (bits - 1)) - 1);
    int      shift = 23 - format->mantissa;

    if (magnitude > format->top) {
        /* e5m2 saturates but has an infinity, right behind its largest number */
        bool infinite = (magnitude == format->top + 1) && (magnitude != format->nan);

        return from_bits(sign | (infinite ? 0x7f800000U : 0x7fc00000U));
    }
    if ((magnitude >> format->mantissa) == 0) {
        float value = ldexpf((float)magnitude, 1 - format->bias - format->mantissa);

        return (sign != 0) ? -value : value;
    }
    return from_bits(sign | ((magnitude << shift) + ((uint32_t)(127 - format->bias) << 23)));
}

uint32_t xs_encode(const struct xs_format *format, float value, int bits)
{
    uint32_t raw = to_bits(value);
    uint32_t sign = (raw >> 31) << (bits - 1);
    uint32_t magnitude = raw & 0x7fffffffU;
    int      shift = 23 - format->mantissa;
    uint32_t code;

    if (magnitude > 0x7f800000U) {
        return sign | format->nan;
    }
    if ((int)(magnitude >> 23) <= 127 - format->bias) {
        /* Too small for a normal number: count in units of the smallest one. */
        code = (uint32_t)rintf(ldexpf(from_bits(magnitude), format->bias - 1 + format->mantissa));
    } else {
        uint32_t half = (1U << (shift - 1)) - 1 + ((magnitude >> shift) & 1);

        code = ((magnitude + half) >> shift) - ((uint32_t)(127 - format->bias) << format->mantissa);
    }
    return sign | ((code > format->top) ? format->overflow : code);
}
