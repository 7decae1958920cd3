/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernels' arithmetic on integers and pairs, against numbers of 128 bits and an element at a
 * time; and what every type has in common. Floating point is test_floating.c's.
 */
#include <stddef.h>

#include "check.h"
#include "vectors.h"

enum { VECTORS = 2000, MOST_RANKS = 8 };

static const char *const type_names[] = {
#define XT_NAME(name, bytes) #name,
    XK_TYPES(XT_NAME)
#undef XT_NAME
};
static const char *const op_names[] = {
#define XT_NAME(name) #name,
    XK_OPS(XT_NAME)
#undef XT_NAME
};

/* ---- integers ---- */

/* Any bits; often small numbers, ends of the range and zeros, in elements of any size. */
static struct xk_16 draw(void)
{
    static const uint8_t bytes[] = {0, 0, 1, 0xff, 0x7f, 0x80, 2, 0xfe};
    struct xk_16         v = {random_word(), random_word()};

    if (random_word() % 2 == 0) {
        for (unsigned i = 0; i < 16; i++) {
            put(&v, i, &bytes[random_word() % 8], 1);
        }
    }
    return v;
}

static __int128 integer(const struct xk_16 *v, unsigned i, size_t bytes, int is_signed)
{
    uint64_t bits = 0;
    int      shift = 64 - 8 * (int)bytes;

    memcpy(&bits, (const char *)v + i * bytes, bytes);
    return is_signed ? (__int128)((int64_t)(bits << shift) >> shift) : (__int128)bits;
}

static __int128 exact(__int128 a, __int128 b, uint32_t op)
{
    switch (op) {
    case XK_SUM:
        return a + b;
    case XK_PROD:
        return (__int128)((unsigned __int128)a * (unsigned __int128)b);
    case XK_MIN:
        return (b < a) ? b : a;
    case XK_MAX:
        return (a < b) ? b : a;
    case XK_LAND:
        return a && b;
    case XK_LOR:
        return a || b;
    case XK_LXOR:
        return !a != !b;
    case XK_BAND:
        return a & b;
    case XK_BOR:
        return a | b;
    default:
        return a ^ b;
    }
}

static void check_integer(uint32_t type, uint32_t op)
{
    size_t bytes = xk_type_bytes(type);
    int    is_signed = (type % 2 == XK_INT8 % 2), wrong = 0;

    for (int n = 0; n < VECTORS; n++) {
        struct xk_16 a = draw(), b = draw(), want;
        for (unsigned i = 0; i < 16 / bytes; i++) {
            __int128 r =
                exact(integer(&a, i, bytes, is_signed), integer(&b, i, bytes, is_signed), op);
            uint64_t low = (uint64_t)r;
            put(&want, i, &low, bytes);
        }
        wrong += !same(xk_combine(a, b, XK_REDUCES(type, op)), want);
    }
    CHECK(wrong == 0, "%s of %s: %d vectors", op_names[op], type_names[type], wrong);
}

static void check_integers(void)
{
    for (uint32_t type = XK_INT8; type <= XK_UINT64; type++) {
        for (uint32_t op = XK_SUM; op <= XK_BXOR; op++) {
            check_integer(type, op);
        }
    }
}

/* ---- checked sums: the same bits, and what might have left the range is noticed ---- */

static __int128 largest(uint32_t type)
{
    return ((__int128)1 << (8 * xk_type_bytes(type) - (type % 2 == XK_INT8 % 2))) - 1;
}

/* Element i of each rank, so that the absolute values add up to so much. */
static void share_out(struct xk_16 *v, int ranks, unsigned i, uint32_t type, __int128 sum)
{
    size_t   bytes = xk_type_bytes(type);
    int      is_signed = (type % 2 == XK_INT8 % 2);
    __int128 most = largest(type) + is_signed;

    for (int r = 0; r < ranks; r++) {
        __int128 high = (sum < most) ? sum : most, low = sum - most * (ranks - 1 - r);
        low = (low < 0) ? 0 : (low > high) ? high : low;
        __int128 mine = low + (__int128)(random_word() % (uint64_t)(high - low + 1));
        uint64_t value = (uint64_t)mine;
        /* The least number of all has no positive one beside it. */
        if (is_signed && ((random_word() % 2 == 0) || (mine == most))) {
            value = (uint64_t)-mine;
        }
        put(&v[r], i, &value, bytes);
        sum -= mine;
    }
}

static int leaves_range(const struct xk_16 *v, int ranks, uint32_t type)
{
    size_t bytes = xk_type_bytes(type);

    for (unsigned i = 0; i < 16 / bytes; i++) {
        __int128 sum = 0;
        for (int r = 0; r < ranks; r++) {
            __int128 value = integer(&v[r], i, bytes, type % 2 == XK_INT8 % 2);
            sum += (value < 0) ? -value : value;
        }
        if (sum > largest(type)) {
            return 1;
        }
    }
    return 0;
}

/* What is wrong: 1 the sum, 2 that it was noticed or not. */
static int check_sum(const struct xk_16 *v, int ranks, uint32_t type)
{
    struct xk_sum s;
    uint32_t      what = XK_REDUCES(type, XK_SUM_CHECKED);

    xk_sum_begin(&s, v[0], what);
    for (int r = 1; r < ranks; r++) {
        xk_sum_add(&s, v[r], what);
    }
    struct xk_16 plain = accumulate(v, ranks, XK_REDUCES(type, XK_SUM));
    return (same(xk_sum_end(&s, what), plain) ? 0 : 1) |
           ((xk_sum_overflowed(&s, what) == leaves_range(v, ranks, type)) ? 0 : 2);
}

/* One element at, just below or just above the border, the others anywhere below it. */
static void check_border(uint32_t type, int ranks, __int128 beyond)
{
    struct xk_16 v[MOST_RANKS];
    unsigned     lanes = 16 / (unsigned)xk_type_bytes(type);
    int          wrong = 0, left = 0;

    for (int n = 0; n < VECTORS; n++) {
        unsigned one = (unsigned)n % lanes;
        for (unsigned i = 0; i < lanes; i++) {
            __int128 sum = (__int128)(random_word() % (uint64_t)(largest(type) + 1));
            share_out(v, ranks, i, type, (i == one) ? largest(type) + beyond : sum);
        }
        wrong |= check_sum(v, ranks, type);
        left += leaves_range(v, ranks, type);
    }
    CHECK(wrong == 0, "%s, %d ranks, %d beyond: %d", type_names[type], ranks, (int)beyond, wrong);
    /* One unsigned number cannot be beyond it. */
    int possible = (ranks > 1) || ((type % 2 == XK_INT8 % 2) && (beyond == 1));
    CHECK(left == (((beyond > 0) && possible) ? VECTORS : 0), "%d of %s left the range", left,
          type_names[type]);
}

static void check_checked(uint32_t type)
{
    struct xk_16 v[MOST_RANKS];

    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
        int wrong = 0;
        for (__int128 beyond = -2; beyond <= 2; beyond++) {
            if ((beyond <= 0) || (ranks > 1) || (beyond == 1)) {
                check_border(type, ranks, beyond);
            }
        }
        for (int n = 0; n < VECTORS; n++) {
            for (int r = 0; r < ranks; r++) {
                v[r] = draw();
            }
            wrong |= check_sum(v, ranks, type);
        }
        CHECK(wrong == 0, "%s, any values of %d ranks: %d", type_names[type], ranks, wrong);
    }
}

/* ---- pairs ---- */

enum kind { REAL32, REAL64, SIGNED16, SIGNED32, SIGNED64 };

static const struct pair {
    uint32_t  type;
    enum kind value, index;
    size_t    index_at;
    size_t    hole_at, hole;
} pairs[] = {
    {XK_FLOAT_INT, REAL32, SIGNED32, 4, 0, 0},   {XK_2INT, SIGNED32, SIGNED32, 4, 0, 0},
    {XK_SHORT_INT, SIGNED16, SIGNED32, 4, 2, 2}, {XK_2FLOAT, REAL32, REAL32, 4, 0, 0},
    {XK_DOUBLE_INT, REAL64, SIGNED32, 8, 12, 4}, {XK_LONG_INT, SIGNED64, SIGNED32, 8, 12, 4},
    {XK_2DOUBLE, REAL64, REAL64, 8, 0, 0},
};

static long double number(const char *at, enum kind kind)
{
    float   f;
    double  d;
    int16_t s;
    int32_t i;
    int64_t l;

    switch (kind) {
    case REAL32:
        memcpy(&f, at, sizeof(f));
        return f;
    case REAL64:
        memcpy(&d, at, sizeof(d));
        return d;
    case SIGNED16:
        memcpy(&s, at, sizeof(s));
        return s;
    case SIGNED32:
        memcpy(&i, at, sizeof(i));
        return i;
    default:
        memcpy(&l, at, sizeof(l));
        return (long double)l;
    }
}

static void set_number(char *at, enum kind kind, int value)
{
    float   f = (float)value;
    double  d = value;
    int16_t s = (int16_t)value;
    int64_t l = value;

    switch (kind) {
    case REAL32:
        memcpy(at, &f, sizeof(f));
        break;
    case REAL64:
        memcpy(at, &d, sizeof(d));
        break;
    case SIGNED16:
        memcpy(at, &s, sizeof(s));
        break;
    case SIGNED32:
        memcpy(at, &value, sizeof(value));
        break;
    default:
        memcpy(at, &l, sizeof(l));
        break;
    }
}

/* Few different values and indices, so that many are equal; or any bits, also of no number. */
static struct xk_16 draw_pairs(const struct pair *p)
{
    struct xk_16 v = {random_word(), random_word()};
    size_t       bytes = xk_type_bytes(p->type);

    if (random_word() % 4 == 0) {
        return v;
    }
    for (size_t at = 0; at < 16; at += bytes) {
        set_number((char *)&v + at, p->value, (int)(random_word() % 3) - 1);
        set_number((char *)&v + at + p->index_at, p->index, (int)(random_word() % 4) - 2);
    }
    return v;
}

static struct xk_16 expected_pairs(const struct pair *p, struct xk_16 a, struct xk_16 b,
                                   uint32_t op)
{
    size_t       bytes = xk_type_bytes(p->type);
    struct xk_16 r = a;

    for (size_t at = 0; at < 16; at += bytes) {
        const char *pa = (const char *)&a + at, *pb = (const char *)&b + at;
        char       *pr = (char *)&r + at;
        long double va = number(pa, p->value), vb = number(pb, p->value);
        long double ia = number(pa + p->index_at, p->index);
        long double ib = number(pb + p->index_at, p->index);
        int         beyond = (op == XK_MINLOC) ? (vb < va) : (va < vb);
        if (beyond || ((va == vb) && (ib < ia))) {
            memcpy(pr, pb, bytes);
            memcpy(pr + p->hole_at, pa + p->hole_at, p->hole);
        }
    }
    return r;
}

static void check_pairs(void)
{
    for (size_t p = 0; p < sizeof(pairs) / sizeof(pairs[0]); p++) {
        for (uint32_t op = XK_MINLOC; op <= XK_MAXLOC; op++) {
            int wrong = 0;
            for (int n = 0; n < VECTORS; n++) {
                struct xk_16 a = draw_pairs(&pairs[p]), b = draw_pairs(&pairs[p]);
                wrong += !same(xk_combine(a, b, XK_REDUCES(pairs[p].type, op)),
                               expected_pairs(&pairs[p], a, b, op));
            }
            CHECK(wrong == 0, "%s of %s: %d vectors", op_names[op], type_names[pairs[p].type],
                  wrong);
        }
    }
}

/* A tie by hand: the smaller index, whoever has it, and the lower rank's hole. */
static void check_tie(void)
{
    struct xk_16 a = {0x4000000000000000u, 0xaaaaaaaa00000007u}; /* 2.0, 7 */
    struct xk_16 b = {0x4000000000000000u, 0xbbbbbbbb00000003u};

    struct xk_16 ab = xk_combine(a, b, XK_REDUCES(XK_DOUBLE_INT, XK_MAXLOC));
    struct xk_16 ba = xk_combine(b, a, XK_REDUCES(XK_DOUBLE_INT, XK_MINLOC));
    CHECK((ab.x == a.x) && (ab.y == 0xaaaaaaaa00000003u), "%llx", (unsigned long long)ab.y);
    CHECK(same(ba, b), "%llx", (unsigned long long)ba.y);
}

/* ---- all types ---- */

static int is_defined(uint32_t type, uint32_t op)
{
    if (type <= XK_UINT64) {
        return op <= XK_BXOR;
    }
    if (type <= XK_FLOAT64) {
        return op <= XK_MAX;
    }
    return (type <= XK_COMPLEX64) ? (op <= XK_PROD) : (op >= XK_MINLOC);
}

static void check_undefined(uint32_t type, uint32_t op)
{
    for (int n = 0; n < 100; n++) {
        struct xk_16 a = draw(), b = draw();
        /* A 16-bit number that is none may become another that is none. */
        if ((type != XK_FLOAT16) && (type != XK_BFLOAT16)) {
            CHECK(same(xk_combine(a, b, XK_REDUCES(type, op)), a), "%s of %s", op_names[op],
                  type_names[type]);
        }
    }
}

/* The accumulator does what one step after another does; of 16-bit sums it does better. */
static void check_accumulator(uint32_t type, uint32_t op)
{
    struct xk_16 v[MOST_RANKS];
    uint32_t     what = XK_REDUCES(type, op);

    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
        for (int r = 0; r < ranks; r++) {
            v[r] = draw();
        }
        struct xk_16 want = v[0];
        for (int r = 1; r < ranks; r++) {
            want = xk_combine(want, v[r], what);
        }
        CHECK(xk_sum_is_wide(what) || same(accumulate(v, ranks, what), want), "%s of %s, %d ranks",
              op_names[op], type_names[type], ranks);
    }
}

int main(void)
{
    check_integers();
    for (uint32_t type = XK_INT8; type <= XK_UINT16; type++) {
        check_checked(type);
    }
    check_pairs();
    check_tie();
    for (uint32_t type = 0; type < XK_NUM_TYPES; type++) {
        CHECK((16 % xk_type_bytes(type)) == 0, "%s", type_names[type]);
        for (uint32_t op = 0; op < XK_NUM_OPS; op++) {
            CHECK(XK_TYPE_OF(XK_REDUCES(type, op)) == type, "%u", type);
            CHECK(XK_OP_OF(XK_REDUCES(type, op)) == op, "%u", op);
            check_accumulator(type, op);
            if (!is_defined(type, op)) {
                check_undefined(type, op);
            }
        }
    }
    CHECK(xk_type_bytes(XK_NUM_TYPES) == 0, "no type");
    return xt_done("arithmetic");
}
