/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table of all predefined types, made once: what each operation of MPI on them is to the kernels.
 * Only what MPI defines is in it, and MPI_CHAR, which some MPIs reduce; integers are tried out. A
 * pair that MPI does not define is not even tried: an MPI told not to check arguments would crash.
 */
#include "data/kernel_reduction.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "data/integers.h"
#include "data/types.h"

enum { MAX_TYPES = 96 };

enum {
    ADDITION = 1 << XK_SUM | 1 << XK_PROD,
    ORDER = 1 << XK_MIN | 1 << XK_MAX,
    LOGIC = 1 << XK_LAND | 1 << XK_LOR | 1 << XK_LXOR,
    BITS = 1 << XK_BAND | 1 << XK_BOR | 1 << XK_BXOR,
    PLACE = 1 << XK_MINLOC | 1 << XK_MAXLOC,
};

/* What a name says that a type's nature does not. Without a kernels' type it is tried out. */
static const struct special {
    const char    *name;
    enum xk_type   type;
    uint32_t       ops;
    enum xm_values values;
} specials[] = {
    {"MPI_BYTE", XK_NUM_TYPES, BITS, XM_ANY_VALUES},
    {"MPI_C_BOOL", XK_NUM_TYPES, LOGIC, XM_BOOLS},
    {"MPI_CXX_BOOL", XK_NUM_TYPES, LOGIC, XM_BOOLS},
    {"MPI_LOGICAL", XK_NUM_TYPES, LOGIC, XM_LOGICALS},
    /* No logic for Fortran's integers, nor for those of both languages. */
    {"MPI_INTEGER", XK_NUM_TYPES, ADDITION | ORDER | BITS, XM_ANY_VALUES},
    {"MPI_INTEGER1", XK_NUM_TYPES, ADDITION | ORDER | BITS, XM_ANY_VALUES},
    {"MPI_INTEGER2", XK_NUM_TYPES, ADDITION | ORDER | BITS, XM_ANY_VALUES},
    {"MPI_INTEGER4", XK_NUM_TYPES, ADDITION | ORDER | BITS, XM_ANY_VALUES},
    {"MPI_INTEGER8", XK_NUM_TYPES, ADDITION | ORDER | BITS, XM_ANY_VALUES},
    {"MPI_AINT", XK_NUM_TYPES, ADDITION | ORDER | BITS, XM_ANY_VALUES},
    {"MPI_OFFSET", XK_NUM_TYPES, ADDITION | ORDER | BITS, XM_ANY_VALUES},
    {"MPI_COUNT", XK_NUM_TYPES, ADDITION | ORDER | BITS, XM_ANY_VALUES},
    {"MPI_FLOAT_INT", XK_FLOAT_INT, PLACE, XM_ANY_VALUES},
    {"MPI_DOUBLE_INT", XK_DOUBLE_INT, PLACE, XM_ANY_VALUES},
    {"MPI_LONG_INT", XK_LONG_INT, PLACE, XM_ANY_VALUES},
    {"MPI_SHORT_INT", XK_SHORT_INT, PLACE, XM_ANY_VALUES},
    {"MPI_2INT", XK_2INT, PLACE, XM_ANY_VALUES},
    {"MPI_2INTEGER", XK_2INT, PLACE, XM_ANY_VALUES},
    {"MPI_2REAL", XK_2FLOAT, PLACE, XM_ANY_VALUES},
    {"MPI_2DOUBLE_PRECISION", XK_2DOUBLE, PLACE, XM_ANY_VALUES},
};

static struct row {
    MPI_Datatype type;
    size_t       element;
    bool         tried;
    uint8_t      as[XK_NUM_OPS]; /* enum xk_type; XK_NUM_TYPES: left to MPI */
    bool         checked;        /* its sum is XK_SUM_CHECKED */
} rows[MAX_TYPES];
static int            num_rows;
static MPI_Op         ops[XK_NUM_OPS];
static uint64_t       arithmetic;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void name_ops(void)
{
    ops[XK_SUM] = XM_HANDLE(MPI_SUM);
    ops[XK_PROD] = XM_HANDLE(MPI_PROD);
    ops[XK_MIN] = XM_HANDLE(MPI_MIN);
    ops[XK_MAX] = XM_HANDLE(MPI_MAX);
    ops[XK_LAND] = XM_HANDLE(MPI_LAND);
    ops[XK_LOR] = XM_HANDLE(MPI_LOR);
    ops[XK_LXOR] = XM_HANDLE(MPI_LXOR);
    ops[XK_BAND] = XM_HANDLE(MPI_BAND);
    ops[XK_BOR] = XM_HANDLE(MPI_BOR);
    ops[XK_BXOR] = XM_HANDLE(MPI_BXOR);
    ops[XK_MINLOC] = XM_HANDLE(MPI_MINLOC);
    ops[XK_MAXLOC] = XM_HANDLE(MPI_MAXLOC);
}

static struct special special_of(const char *name, enum xm_nature nature, MPI_Count size)
{
    for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++) {
        if (strcmp(name, specials[i].name) == 0) {
            return specials[i];
        }
    }
    switch (nature) {
    case XM_REAL:
        return (struct special){name, (size == 4) ? XK_FLOAT32 : XK_FLOAT64, ADDITION | ORDER, 0};
    case XM_COMPLEX:
        return (struct special){name, (size == 8) ? XK_COMPLEX32 : XK_COMPLEX64, ADDITION, 0};
    case XM_CHARACTER:
    case XM_SIGNED:
    case XM_UNSIGNED:
        return (struct special){name, XK_NUM_TYPES, ADDITION | ORDER | LOGIC | BITS, 0};
    default:
        return (struct special){name, XK_NUM_TYPES, 0, 0};
    }
}

/* Not asked of MPI_Reduce_local, whose errors come to the program's handlers. */
static bool is_reduced(MPI_Datatype type, MPI_Op op, MPI_Comm self)
{
    uint64_t in[2] = {0, 0}, out[2];

    return xm_pmpi.Allreduce(in, out, 1, type, op, self) == MPI_SUCCESS;
}

/* An MPI may be built to look at no arguments: then it says nothing of what it reduces. */
static bool refuses_bits_of_floats(MPI_Comm self)
{
    MPI_Datatype type;
    int          i = 0;

    while (xm_type_at(i, &type) && (strcmp(xm_type_name(type), "MPI_FLOAT") != 0)) {
        i++;
    }
    return xm_type_at(i, &type) && !is_reduced(type, ops[XK_BAND], self);
}

static void try_out(struct row *row, MPI_Count size, bool signed_first, enum xm_values values,
                    uint32_t op, MPI_Comm self)
{
    row->as[op] = XK_NUM_TYPES;
    if (!is_reduced(row->type, ops[op], self)) {
        return;
    }
    enum xk_type as =
        xm_integer_try(row->type, size, signed_first, values, ops[op], (enum xk_op)op);

    if ((as == XK_NUM_TYPES) && (op == XK_SUM)) {
        as = xm_integer_try_checked(row->type, size, signed_first, ops[op]);
        row->checked = (as != XK_NUM_TYPES);
    }
    row->as[op] = (uint8_t)as;
}

/* MPICH 5.0 ends the process, by a wrong assertion, when truth values of Fortran are reduced. */
static bool ends_at_logicals(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int  n = 0, major = 0;

    return !XM_OPENMPI && (xm_pmpi.Get_library_version(text, &n) == MPI_SUCCESS) &&
           (sscanf(text, "MPICH Version: %d", &major) == 1) && (major >= 5);
}

/* The type as each operation has it. self: if it is none, what is to be tried stays with MPI. */
static void fill_row(struct row *row, MPI_Comm self)
{
    bool             can_try = (self != XM_HANDLE(MPI_COMM_NULL));
    enum xm_nature   nature = XM_OTHER;
    MPI_Count        size = 0;
    struct xm_layout layout;

    (void)xm_type_named(row->type, &nature, &size);
    struct special what = special_of(xm_type_name(row->type), nature, size);
    row->tried = (what.type == XK_NUM_TYPES) && (what.ops != 0);
    can_try = can_try && ((what.values != XM_LOGICALS) || !ends_at_logicals());
    row->element = row->tried ? (size_t)size : xk_type_bytes(what.type);
    bool usable = xm_layout_of(row->type, &layout) && (layout.lb == 0) &&
                  (layout.extent == (MPI_Count)row->element) && (!row->tried || can_try);
    for (uint32_t op = 0; op < XK_NUM_OPS; op++) {
        row->as[op] = (uint8_t)what.type;
        if (!usable || ((what.ops >> op & 1) == 0)) {
            row->as[op] = XK_NUM_TYPES;
        } else if (row->tried) {
            try_out(row, size, nature != XM_UNSIGNED, what.values, op, self);
        }
    }
}

static void fill_rows(MPI_Comm self)
{
    arithmetic = XC_HASH_BEGIN;
    while ((num_rows < MAX_TYPES) && xm_type_at(num_rows, &rows[num_rows].type)) {
        struct row *row = &rows[num_rows++];
        fill_row(row, self);
        for (int op = 0; row->tried && (op < XK_NUM_OPS); op++) {
            arithmetic = xc_hash_word(arithmetic, row->as[op]);
        }
        arithmetic = xc_hash_word(arithmetic, row->checked);
    }
}

/* With sessions alone there is no such communicator, and integers stay with MPI. */
static void look(void)
{
    MPI_Comm self;

    name_ops();
    bool made = xm_mpi_make_self(&self);
    bool asks = made && refuses_bits_of_floats(self);
    fill_rows(asks ? self : XM_HANDLE(MPI_COMM_NULL));
    if (made) {
        xm_pmpi.Comm_free(&self);
    }
}

uint64_t xm_kernel_reduction_arithmetic(void)
{
    pthread_once(&once, look);
    return arithmetic;
}

static const char *find(MPI_Datatype type, MPI_Op op, struct xm_kernel_reduction *reduction_p)
{
    uint32_t at = 0;
    int      row = 0;

    pthread_once(&once, look);
    while ((at < XK_NUM_OPS) && (op != ops[at])) {
        at++;
    }
    if (at == XK_NUM_OPS) {
        return "user-defined operation, or none that reduces";
    }
    while ((row < num_rows) && (rows[row].type != type)) {
        row++;
    }
    if (row == num_rows) {
        return "type that MPI does not predefine";
    }
    if (rows[row].as[at] == XK_NUM_TYPES) {
        return rows[row].tried ? "operation that this MPI carries out otherwise, or not at all"
                               : "operation that MPI does not define, or type without a kernel";
    }
    bool checked = (at == XK_SUM) && rows[row].checked;
    reduction_p->what = XK_REDUCES(rows[row].as[at], checked ? XK_SUM_CHECKED : at);
    reduction_p->element = rows[row].element;
    reduction_p->tried = rows[row].tried;
    return NULL;
}

/*
 * A program that reduces does it again: the last pair is kept. Handles of predefined types and
 * operations never come to mean anything else, and those of others mean nothing here at any time.
 */
const char *xm_kernel_reduction_of(MPI_Datatype type, MPI_Op op,
                                   struct xm_kernel_reduction *reduction_p)
{
    static __thread struct {
        bool                       known;
        MPI_Datatype               type;
        MPI_Op                     op;
        const char                *reason;
        struct xm_kernel_reduction reduction;
    } last;

    if (!last.known || (last.type != type) || (last.op != op)) {
        last.reason = find(type, op, &last.reduction);
        last.type = type;
        last.op = op;
        last.known = true;
    }
    if (last.reason == NULL) {
        *reduction_p = last.reduction;
    }
    return last.reason;
}
