/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers and their bits, in CUDA, HIP and C. Products are rounded before anything is added to
 * them, as MPI libraries do: a compiler that made one step of both would change the result.
 */
#ifndef XK_KERNELS_NUMBERS_H
#define XK_KERNELS_NUMBERS_H

#include <stdint.h>

#if defined(__HIP__) || defined(__CUDACC__)

#define XK_UNROLL _Pragma("unroll")
#define XK_ROLLED _Pragma("unroll 1")

XK_DEVICE float xk_float(uint32_t bits)
{
    return __uint_as_float(bits);
}

XK_DEVICE uint32_t xk_float_bits(float value)
{
    return __float_as_uint(value);
}

XK_DEVICE double xk_double(uint64_t bits)
{
    return __longlong_as_double((long long)bits);
}

XK_DEVICE uint64_t xk_double_bits(double value)
{
    return (uint64_t)__double_as_longlong(value);
}

#else

#include <string.h>

#define XK_UNROLL
#define XK_ROLLED

XK_DEVICE float xk_float(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

XK_DEVICE uint32_t xk_float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

XK_DEVICE double xk_double(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

XK_DEVICE uint64_t xk_double_bits(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

#endif

/* ---- x * y - z * w and x * y + z * w, with four roundings ---- */

#if defined(__CUDACC__) && !defined(__HIP__)

XK_DEVICE float xk_cross_float(float x, float y, float z, float w)
{
    return __fadd_rn(__fmul_rn(x, y), __fmul_rn(z, w));
}

XK_DEVICE double xk_cross_double(double x, double y, double z, double w)
{
    return __dadd_rn(__dmul_rn(x, y), __dmul_rn(z, w));
}

#else

XK_DEVICE float xk_cross_float(float x, float y, float z, float w)
{
#if defined(__clang__)
#pragma clang fp contract(off)
#endif
    float xy = x * y, zw = z * w;

    return xy + zw;
}

XK_DEVICE double xk_cross_double(double x, double y, double z, double w)
{
#if defined(__clang__)
#pragma clang fp contract(off)
#endif
    double xy = x * y, zw = z * w;

    return xy + zw;
}

#endif

/* ---- half precision ---- */

#if defined(__HIP__)

XK_DEVICE float xk_half_float(uint32_t half)
{
    return (float)__builtin_bit_cast(_Float16, (uint16_t)half);
}

XK_DEVICE uint32_t xk_half_bits(float value)
{
    return __builtin_bit_cast(uint16_t, (_Float16)value);
}

#elif defined(__CUDACC__)

XK_DEVICE float xk_half_float(uint32_t half)
{
    float value;

    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"((uint16_t)half));
    return value;
}

XK_DEVICE uint32_t xk_half_bits(float value)
{
    uint16_t half;

    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
}

#else

XK_DEVICE float xk_half_float(uint32_t half)
{
    uint32_t sign = (half & 0x8000) << 16, rest = half & 0x7fff;

    if (rest >= 0x7c00) { /* infinite, or no number */
        return xk_float(sign | 0x7f800000 | rest << 13);
    }
    /* Moved to a float's place the exponent is 112 too small, also where it is 0. */
    return xk_float(sign | xk_float_bits(xk_float(rest << 13) * 0x1p112f));
}

XK_DEVICE uint32_t xk_half_bits(float value)
{
    uint32_t bits = xk_float_bits(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;

    if (rest > 0x7f800000) {
        return sign | 0x7e00 | (rest >> 13 & 0x3ff);
    }
    if (rest >= 0x477ff000) { /* 65520 and more */
        return sign | 0x7c00;
    }
    if (rest < 0x38800000) { /* below 2^-14: the sum's last place is a half's, 2^-24 */
        return sign | (xk_float_bits(xk_float(rest) + 0.5f) - 0x3f000000);
    }
    return sign | ((rest - 0x38000000 + 0xfff + (rest >> 13 & 1)) >> 13);
}

#endif

/* ---- bfloat16: the upper half of a float ---- */

XK_DEVICE float xk_bfloat_float(uint32_t bfloat)
{
    return xk_float(bfloat << 16);
}

XK_DEVICE uint32_t xk_bfloat_bits(float value)
{
    uint32_t bits = xk_float_bits(value);

    if ((bits & 0x7fffffff) > 0x7f800000) {
        return bits >> 16 | 0x40; /* rounded it might become infinite */
    }
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

#endif
