/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernels reduce: types of elements and operations on them, for the host and the device.
 */
#ifndef XK_KERNELS_OPERATIONS_H
#define XK_KERNELS_OPERATIONS_H

#include <stdint.h>

#if defined(__HIP__)
#define XK_ANYWHERE static inline __attribute__((host)) __attribute__((device))
#elif defined(__CUDACC__)
#define XK_ANYWHERE static __host__ __device__ __forceinline__
#else
#define XK_ANYWHERE static inline
#endif

/*
 * Name, bytes of an element as it lies in memory. The integers are first: signed and unsigned by
 * turns, each size twice the one before. Complex numbers are two floats or doubles. The pairs are
 * last: a value, then its index, with 2 bytes between them in XK_SHORT_INT, and with 4 behind them
 * in XK_DOUBLE_INT and XK_LONG_INT.
 */
#define XK_TYPES(X)                                                                                \
    X(XK_INT8, 1)                                                                                  \
    X(XK_UINT8, 1)                                                                                 \
    X(XK_INT16, 2)                                                                                 \
    X(XK_UINT16, 2)                                                                                \
    X(XK_INT32, 4)                                                                                 \
    X(XK_UINT32, 4)                                                                                \
    X(XK_INT64, 8)                                                                                 \
    X(XK_UINT64, 8)                                                                                \
    X(XK_FLOAT16, 2)                                                                               \
    X(XK_BFLOAT16, 2)                                                                              \
    X(XK_FLOAT32, 4)                                                                               \
    X(XK_FLOAT64, 8)                                                                               \
    X(XK_COMPLEX32, 8)                                                                             \
    X(XK_COMPLEX64, 16)                                                                            \
    X(XK_FLOAT_INT, 8)                                                                             \
    X(XK_2INT, 8)                                                                                  \
    X(XK_SHORT_INT, 8)                                                                             \
    X(XK_2FLOAT, 8)                                                                                \
    X(XK_DOUBLE_INT, 16)                                                                           \
    X(XK_LONG_INT, 16)                                                                             \
    X(XK_2DOUBLE, 16)

/*
 * Integers have the first ten and real numbers the first four, complex ones sum and product, and
 * pairs the last two. Every other combination gives the first operand.
 */
#define XK_OPS(X)                                                                                  \
    X(XK_SUM)                                                                                      \
    X(XK_PROD)                                                                                     \
    X(XK_MIN)                                                                                      \
    X(XK_MAX)                                                                                      \
    X(XK_LAND)                                                                                     \
    X(XK_LOR)                                                                                      \
    X(XK_LXOR)                                                                                     \
    X(XK_BAND)                                                                                     \
    X(XK_BOR)                                                                                      \
    X(XK_BXOR)                                                                                     \
    X(XK_MINLOC)                                                                                   \
    X(XK_MAXLOC)

enum xk_type {
#define XK_NAME(name, bytes) name,
    XK_TYPES(XK_NAME)
#undef XK_NAME
        XK_NUM_TYPES
};

enum xk_op {
#define XK_NAME(name) name,
    XK_OPS(XK_NAME)
#undef XK_NAME
        XK_NUM_OPS,
    /*
     * No operation of MPI's: a sum of XK_INT8, XK_UINT8, XK_INT16 or XK_UINT16 that is right where
     * it cannot leave the type's range in any order of the ranks, and noticed where it may.
     */
    XK_SUM_CHECKED = XK_NUM_OPS
};

/* A type and an operation in one word, the `what` of the kernels, and back. */
#define XK_REDUCES(type, op) ((uint32_t)(type) | (uint32_t)(op) << 8)
#define XK_TYPE_OF(what) ((what) & 0xff)
#define XK_OP_OF(what) ((what) >> 8)

/* 0 for none of them. */
XK_ANYWHERE uint32_t xk_type_bytes(uint32_t type)
{
    switch (type) {
#define XK_CASE(name, bytes)                                                                       \
    case name:                                                                                     \
        return bytes;
        XK_TYPES(XK_CASE)
#undef XK_CASE
    default:
        return 0;
    }
}

#endif
