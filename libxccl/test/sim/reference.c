/* SPDX-License-Identifier: BSD-3-Clause */
#include "reference.h"

#include <math.h>
#include <stdint.h>

size_t type_bytes(ncclDataType_t type)
{
    switch (type) {
    case ncclInt8:
    case ncclUint8:
    case ncclFloat8e4m3:
    case ncclFloat8e5m2:
        return 1;
    case ncclFloat16:
    case ncclBfloat16:
        return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
        return 4;
    default:
        return 8;
    }
}

double sample(int rank, size_t place, int seed)
{
    return (double)((place * 5 + (size_t)rank * 3 + (size_t)seed) % 3 + 1); /* 1, 2 or 3 */
}

struct small {
    ncclDataType_t type;
    int            exponent_bits;
    int            mantissa_bits;
    bool           infinities;
};

static const struct small *small_format(ncclDataType_t type)
{
    static const struct small formats[] = {{ncclFloat16, 5, 10, true},
                                           {ncclBfloat16, 8, 7, true},
                                           {ncclFloat8e5m2, 5, 2, true},
                                           {ncclFloat8e4m3, 4, 3, false}};

    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (formats[i].type == type) {
            return &formats[i];
        }
    }
    return NULL;
}

/* By the definition of a binary format, code by code. */
static double small_value(const struct small *format, unsigned code)
{
    int      bias = (1 << (format->exponent_bits - 1)) - 1;
    unsigned mantissa = code & ((1U << format->mantissa_bits) - 1);
    unsigned exponent = (code >> format->mantissa_bits) & ((1U << format->exponent_bits) - 1);
    bool     negative = (code >> (format->mantissa_bits + format->exponent_bits)) != 0;
    unsigned top = (1U << format->exponent_bits) - 1;
    double   value;

    if (format->infinities && (exponent == top)) {
        value = (mantissa == 0) ? INFINITY : NAN;
    } else if (!format->infinities && (exponent == top) &&
               (mantissa == (1U << format->mantissa_bits) - 1)) {
        value = NAN;
    } else if (exponent == 0) {
        value = ldexp(mantissa, 1 - bias - format->mantissa_bits);
    } else {
        value = ldexp((double)(mantissa + (1U << format->mantissa_bits)),
                      (int)exponent - bias - format->mantissa_bits);
    }
    return negative ? -value : value;
}

/* The nearest code, even on a tie; values grow with their codes. */
static unsigned small_code(const struct small *format, double number)
{
    unsigned low = 0;
    unsigned high = (1U << (format->exponent_bits + format->mantissa_bits)) - 1;

    while (!isfinite(small_value(format, high))) {
        high--;
    }
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;

        if (small_value(format, middle) <= fabs(number)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    double   below = fabs(number) - small_value(format, low);
    double   above = small_value(format, high) - fabs(number);
    unsigned code = ((below < above) || ((below == above) && (low % 2 == 0))) ? low : high;
    return code | ((number < 0) ? 1U << (format->exponent_bits + format->mantissa_bits) : 0);
}

void write_number(void *array, size_t place, ncclDataType_t type, double number)
{
    const struct small *format = small_format(type);

    if (format != NULL) {
        unsigned code = small_code(format, number);

        if (type_bytes(type) == 1) {
            ((uint8_t *)array)[place] = (uint8_t)code;
        } else {
            ((uint16_t *)array)[place] = (uint16_t)code;
        }
        return;
    }
    switch (type) {
    case ncclInt8:
        ((int8_t *)array)[place] = (int8_t)number;
        break;
    case ncclUint8:
        ((uint8_t *)array)[place] = (uint8_t)number;
        break;
    case ncclInt32:
        ((int32_t *)array)[place] = (int32_t)number;
        break;
    case ncclUint32:
        ((uint32_t *)array)[place] = (uint32_t)number;
        break;
    case ncclInt64:
        ((int64_t *)array)[place] = (int64_t)number;
        break;
    case ncclUint64:
        ((uint64_t *)array)[place] = (uint64_t)number;
        break;
    case ncclFloat32:
        ((float *)array)[place] = (float)number;
        break;
    default:
        ((double *)array)[place] = number;
        break;
    }
}

double read_number(const void *array, size_t place, ncclDataType_t type)
{
    const struct small *format = small_format(type);

    if (format != NULL) {
        return small_value(format, (type_bytes(type) == 1) ? ((const uint8_t *)array)[place]
                                                           : ((const uint16_t *)array)[place]);
    }
    switch (type) {
    case ncclInt8:
        return ((const int8_t *)array)[place];
    case ncclUint8:
        return ((const uint8_t *)array)[place];
    case ncclInt32:
        return ((const int32_t *)array)[place];
    case ncclUint32:
        return ((const uint32_t *)array)[place];
    case ncclInt64:
        return (double)((const int64_t *)array)[place];
    case ncclUint64:
        return (double)((const uint64_t *)array)[place];
    case ncclFloat32:
        return (double)((const float *)array)[place];
    default:
        return ((const double *)array)[place];
    }
}

double reduce_samples(int n, size_t place, int seed, ncclRedOp_t op)
{
    double result = sample(0, place, seed);

    for (int rank = 1; rank < n; rank++) {
        double next = sample(rank, place, seed);

        switch (op) {
        case ncclProd:
            result *= next;
            break;
        case ncclMax:
            result = fmax(result, next);
            break;
        case ncclMin:
            result = fmin(result, next);
            break;
        default:
            result += next;
            break;
        }
    }
    return (op == ncclAvg) ? result / n : result;
}

bool agrees(double got, double want, ncclDataType_t type)
{
    const struct small *format = small_format(type);

    if (format != NULL) {
        return got == small_value(format, small_code(format, want));
    }
    if (type == ncclFloat32) {
        return fabs(got - want) <= 1e-6 * fabs(want);
    }
    if (type == ncclFloat64) {
        return fabs(got - want) <= 1e-14 * fabs(want);
    }
    return got == trunc(want);
}
