/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/types.h"

#include <string.h>

#include "data/flatten.h"

/* name in mpi.h, Open MPI's variable, nature; the first ones are looked at first. */
#define XM_TYPES(X)                                                                                \
    X(MPI_FLOAT, ompi_mpi_float, XM_REAL)                                                          \
    X(MPI_DOUBLE, ompi_mpi_double, XM_REAL)                                                        \
    X(MPI_INT, ompi_mpi_int, XM_SIGNED)                                                            \
    X(MPI_BYTE, ompi_mpi_byte, XM_OTHER)                                                           \
    X(MPI_CHAR, ompi_mpi_char, XM_CHARACTER)                                                       \
    X(MPI_LONG, ompi_mpi_long, XM_SIGNED)                                                          \
    X(MPI_LONG_LONG_INT, ompi_mpi_long_long_int, XM_SIGNED)                                        \
    X(MPI_UNSIGNED, ompi_mpi_unsigned, XM_UNSIGNED)                                                \
    X(MPI_UNSIGNED_LONG, ompi_mpi_unsigned_long, XM_UNSIGNED)                                      \
    X(MPI_UNSIGNED_LONG_LONG, ompi_mpi_unsigned_long_long, XM_UNSIGNED)                            \
    X(MPI_INT8_T, ompi_mpi_int8_t, XM_SIGNED)                                                      \
    X(MPI_UINT8_T, ompi_mpi_uint8_t, XM_UNSIGNED)                                                  \
    X(MPI_INT16_T, ompi_mpi_int16_t, XM_SIGNED)                                                    \
    X(MPI_UINT16_T, ompi_mpi_uint16_t, XM_UNSIGNED)                                                \
    X(MPI_INT32_T, ompi_mpi_int32_t, XM_SIGNED)                                                    \
    X(MPI_UINT32_T, ompi_mpi_uint32_t, XM_UNSIGNED)                                                \
    X(MPI_INT64_T, ompi_mpi_int64_t, XM_SIGNED)                                                    \
    X(MPI_UINT64_T, ompi_mpi_uint64_t, XM_UNSIGNED)                                                \
    X(MPI_SIGNED_CHAR, ompi_mpi_signed_char, XM_SIGNED)                                            \
    X(MPI_UNSIGNED_CHAR, ompi_mpi_unsigned_char, XM_UNSIGNED)                                      \
    X(MPI_SHORT, ompi_mpi_short, XM_SIGNED)                                                        \
    X(MPI_UNSIGNED_SHORT, ompi_mpi_unsigned_short, XM_UNSIGNED)                                    \
    X(MPI_LONG_DOUBLE, ompi_mpi_long_double, XM_REAL)                                              \
    X(MPI_WCHAR, ompi_mpi_wchar, XM_OTHER)                                                         \
    X(MPI_C_BOOL, ompi_mpi_c_bool, XM_OTHER)                                                       \
    X(MPI_C_FLOAT_COMPLEX, ompi_mpi_c_float_complex, XM_COMPLEX)                                   \
    X(MPI_C_DOUBLE_COMPLEX, ompi_mpi_c_double_complex, XM_COMPLEX)                                 \
    X(MPI_C_LONG_DOUBLE_COMPLEX, ompi_mpi_c_long_double_complex, XM_COMPLEX)                       \
    X(MPI_CXX_BOOL, ompi_mpi_cxx_bool, XM_OTHER)                                                   \
    X(MPI_CXX_FLOAT_COMPLEX, ompi_mpi_cxx_cplex, XM_COMPLEX)                                       \
    X(MPI_CXX_DOUBLE_COMPLEX, ompi_mpi_cxx_dblcplex, XM_COMPLEX)                                   \
    X(MPI_CXX_LONG_DOUBLE_COMPLEX, ompi_mpi_cxx_ldblcplex, XM_COMPLEX)                             \
    X(MPI_AINT, ompi_mpi_aint, XM_SIGNED)                                                          \
    X(MPI_OFFSET, ompi_mpi_offset, XM_SIGNED)                                                      \
    X(MPI_COUNT, ompi_mpi_count, XM_SIGNED)                                                        \
    X(MPI_PACKED, ompi_mpi_packed, XM_OTHER)                                                       \
    X(MPI_CHARACTER, ompi_mpi_character, XM_OTHER)                                                 \
    X(MPI_LOGICAL, ompi_mpi_logical, XM_OTHER)                                                     \
    X(MPI_INTEGER, ompi_mpi_integer, XM_SIGNED)                                                    \
    X(MPI_INTEGER1, ompi_mpi_integer1, XM_SIGNED)                                                  \
    X(MPI_INTEGER2, ompi_mpi_integer2, XM_SIGNED)                                                  \
    X(MPI_INTEGER4, ompi_mpi_integer4, XM_SIGNED)                                                  \
    X(MPI_INTEGER8, ompi_mpi_integer8, XM_SIGNED)                                                  \
    X(MPI_REAL, ompi_mpi_real, XM_REAL)                                                            \
    X(MPI_REAL4, ompi_mpi_real4, XM_REAL)                                                          \
    X(MPI_REAL8, ompi_mpi_real8, XM_REAL)                                                          \
    X(MPI_REAL16, ompi_mpi_real16, XM_REAL)                                                        \
    X(MPI_DOUBLE_PRECISION, ompi_mpi_dblprec, XM_REAL)                                             \
    X(MPI_COMPLEX, ompi_mpi_cplex, XM_COMPLEX)                                                     \
    X(MPI_DOUBLE_COMPLEX, ompi_mpi_dblcplex, XM_COMPLEX)                                           \
    X(MPI_COMPLEX8, ompi_mpi_complex8, XM_COMPLEX)                                                 \
    X(MPI_COMPLEX16, ompi_mpi_complex16, XM_COMPLEX)                                               \
    X(MPI_2INT, ompi_mpi_2int, XM_OTHER)                                                           \
    X(MPI_2INTEGER, ompi_mpi_2integer, XM_OTHER)                                                   \
    X(MPI_2REAL, ompi_mpi_2real, XM_OTHER)                                                         \
    X(MPI_2DOUBLE_PRECISION, ompi_mpi_2dblprec, XM_OTHER)                                          \
    X(MPI_FLOAT_INT, ompi_mpi_float_int, XM_OTHER)                                                 \
    X(MPI_DOUBLE_INT, ompi_mpi_double_int, XM_HOLES)                                               \
    X(MPI_LONG_INT, ompi_mpi_long_int, XM_HOLES)                                                   \
    X(MPI_SHORT_INT, ompi_mpi_short_int, XM_HOLES)                                                 \
    X(MPI_LONG_DOUBLE_INT, ompi_mpi_longdbl_int, XM_HOLES)

struct named {
    const char      *name;
    MPI_Datatype     type;
    enum xm_nature   nature;
    struct xm_layout layout;
};

static struct named named_types[] = {
#define XM_ROW(name, variable, nature) {#name, 0, nature, {0}},
    XM_TYPES(XM_ROW)
#undef XM_ROW
};

enum { NUM_NAMED = sizeof(named_types) / sizeof(named_types[0]) };

static bool ask_layout(MPI_Datatype type, struct xm_layout *layout)
{
    return (xm_pmpi.Type_size_x(type, &layout->size) == MPI_SUCCESS) &&
           (xm_pmpi.Type_get_extent_x(type, &layout->lb, &layout->extent) == MPI_SUCCESS) &&
           (xm_pmpi.Type_get_true_extent_x(type, &layout->true_lb, &layout->true_extent) ==
            MPI_SUCCESS) &&
           (layout->size != MPI_UNDEFINED);
}

/* Types of other languages and kinds, which an MPI need not have. */
static bool is_optional(const char *name)
{
    static const char *const begins[] = {"MPI_CXX_",
                                         "MPI_CHARACTER",
                                         "MPI_LOGICAL",
                                         "MPI_INTEGER",
                                         "MPI_REAL",
                                         "MPI_DOUBLE_PRECISION",
                                         "MPI_COMPLEX",
                                         "MPI_DOUBLE_COMPLEX",
                                         "MPI_2INTEGER",
                                         "MPI_2REAL",
                                         "MPI_2DOUBLE_PRECISION"};

    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
        if (strncmp(name, begins[i], strlen(begins[i])) == 0) {
            return true;
        }
    }
    return false;
}

/*
 * In the standard ABI a type that MPI does not have is no null type: only a question about it
 * tells, by an error. Without a communicator for that nobody asks: such a type is then treated as
 * one that is not known.
 */
static bool has_type(const struct named *n, MPI_Comm self)
{
    int size;

    if ((n->type == 0) || (n->type == XM_HANDLE(MPI_DATATYPE_NULL))) {
        return false;
    }
    if (!XM_STANDARD_ABI || !is_optional(n->name)) {
        return true;
    }
    return (self != XM_HANDLE(MPI_COMM_NULL)) &&
           (xm_pmpi.Pack_size(1, n->type, self, &size) == MPI_SUCCESS);
}

void xm_types_init(void)
{
    MPI_Comm self = XM_HANDLE(MPI_COMM_NULL);
    int      i = 0;

    /* A type that this MPI does not have stays the null type, and is never met. */
#if XM_OPENMPI
#define XM_SET(name, variable, nature) named_types[i++].type = xm_mpi_variable(#variable);
#else
#define XM_SET(name, variable, nature) named_types[i++].type = name;
#endif
    XM_TYPES(XM_SET)
#undef XM_SET
    bool made = XM_STANDARD_ABI && xm_mpi_make_self(&self);
    for (i = 0; i < NUM_NAMED; i++) {
        struct named *n = &named_types[i];
        if (!has_type(n, self) || !ask_layout(n->type, &n->layout)) {
            n->type = XM_HANDLE(MPI_DATATYPE_NULL);
            continue;
        }
        n->layout.plain = (n->nature != XM_HOLES) && (n->layout.size == n->layout.extent);
    }
    if (made) {
        xm_pmpi.Comm_free(&self);
    }
}

static const struct named *find_named(MPI_Datatype type)
{
    for (int i = 0; i < NUM_NAMED; i++) {
        if (named_types[i].type == type) {
            return &named_types[i];
        }
    }
    return NULL;
}

/*
 * Equal size and extent do not suffice: an indexed type may permute its elements. So a derived type
 * is plain only if its constructors say so; other types are packed, which is always right.
 */
static bool is_plain(MPI_Datatype type, const struct xm_layout *layout)
{
    if ((layout->lb != 0) || (layout->true_lb != 0) || (layout->size != layout->extent) ||
        (layout->size != layout->true_extent)) {
        return false;
    }
    const struct xm_flat *flat = xm_flat_get(type);
    bool                  plain =
        (flat != NULL) && (flat->runs.count == 1) && (xm_runs_at(&flat->runs, 0).levels == 0);
    xm_flat_put(flat);
    return plain;
}

bool xm_layout_of(MPI_Datatype type, struct xm_layout *layout_p)
{
    const struct named *named = find_named(type);

    if (type == XM_HANDLE(MPI_DATATYPE_NULL)) {
        return false;
    }
    if (named != NULL) {
        *layout_p = named->layout;
        return true;
    }
    if (!ask_layout(type, layout_p)) {
        return false;
    }
    layout_p->derived = true;
    layout_p->flat = NULL;
    layout_p->held = false;
    layout_p->plain = is_plain(type, layout_p);
    return true;
}

bool xm_type_named(MPI_Datatype type, enum xm_nature *nature_p, MPI_Count *size_p)
{
    const struct named *named = find_named(type);

    if ((named == NULL) || (named->type == XM_HANDLE(MPI_DATATYPE_NULL))) {
        return false;
    }
    *nature_p = named->nature;
    *size_p = named->layout.size;
    return true;
}

const char *xm_type_name(MPI_Datatype type)
{
    const struct named *named = find_named(type);

    if ((type == 0) || (type == XM_HANDLE(MPI_DATATYPE_NULL))) {
        return NULL;
    }
    return (named != NULL) ? named->name : "derived";
}

bool xm_type_at(int i, MPI_Datatype *type_p)
{
    for (int at = 0; at < NUM_NAMED; at++) {
        if ((named_types[at].type != XM_HANDLE(MPI_DATATYPE_NULL)) && (i-- == 0)) {
            *type_p = named_types[at].type;
            return true;
        }
    }
    return false;
}

const char *xm_op_name(MPI_Op op)
{
    static const char *const names[] = {"MPI_SUM",    "MPI_PROD",   "MPI_MAX",  "MPI_MIN",
                                        "MPI_MAXLOC", "MPI_MINLOC", "MPI_BAND", "MPI_BOR",
                                        "MPI_BXOR",   "MPI_LAND",   "MPI_LOR",  "MPI_LXOR"};
    const MPI_Op ops[] = {XM_HANDLE(MPI_SUM),  XM_HANDLE(MPI_PROD),   XM_HANDLE(MPI_MAX),
                          XM_HANDLE(MPI_MIN),  XM_HANDLE(MPI_MAXLOC), XM_HANDLE(MPI_MINLOC),
                          XM_HANDLE(MPI_BAND), XM_HANDLE(MPI_BOR),    XM_HANDLE(MPI_BXOR),
                          XM_HANDLE(MPI_LAND), XM_HANDLE(MPI_LOR),    XM_HANDLE(MPI_LXOR)};

    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        if (op == ops[i]) {
            return names[i];
        }
    }
    return NULL;
}
