/* SPDX-License-Identifier: BSD-3-Clause */
#include "intercept/types.h"

enum nature { OTHER, SIGNED, UNSIGNED, REAL, COMPLEX, HOLES };

/* name in mpi.h, Open MPI's variable, nature; the first ones are looked at first. */
#define XM_TYPES(X)                                                                                \
    X(MPI_FLOAT, ompi_mpi_float, REAL)                                                             \
    X(MPI_DOUBLE, ompi_mpi_double, REAL)                                                           \
    X(MPI_INT, ompi_mpi_int, SIGNED)                                                               \
    X(MPI_BYTE, ompi_mpi_byte, OTHER)                                                              \
    X(MPI_CHAR, ompi_mpi_char, OTHER)                                                              \
    X(MPI_LONG, ompi_mpi_long, SIGNED)                                                             \
    X(MPI_LONG_LONG_INT, ompi_mpi_long_long_int, SIGNED)                                           \
    X(MPI_UNSIGNED, ompi_mpi_unsigned, UNSIGNED)                                                   \
    X(MPI_UNSIGNED_LONG, ompi_mpi_unsigned_long, UNSIGNED)                                         \
    X(MPI_UNSIGNED_LONG_LONG, ompi_mpi_unsigned_long_long, UNSIGNED)                               \
    X(MPI_INT8_T, ompi_mpi_int8_t, SIGNED)                                                         \
    X(MPI_UINT8_T, ompi_mpi_uint8_t, UNSIGNED)                                                     \
    X(MPI_INT16_T, ompi_mpi_int16_t, SIGNED)                                                       \
    X(MPI_UINT16_T, ompi_mpi_uint16_t, UNSIGNED)                                                   \
    X(MPI_INT32_T, ompi_mpi_int32_t, SIGNED)                                                       \
    X(MPI_UINT32_T, ompi_mpi_uint32_t, UNSIGNED)                                                   \
    X(MPI_INT64_T, ompi_mpi_int64_t, SIGNED)                                                       \
    X(MPI_UINT64_T, ompi_mpi_uint64_t, UNSIGNED)                                                   \
    X(MPI_SIGNED_CHAR, ompi_mpi_signed_char, SIGNED)                                               \
    X(MPI_UNSIGNED_CHAR, ompi_mpi_unsigned_char, UNSIGNED)                                         \
    X(MPI_SHORT, ompi_mpi_short, SIGNED)                                                           \
    X(MPI_UNSIGNED_SHORT, ompi_mpi_unsigned_short, UNSIGNED)                                       \
    X(MPI_LONG_DOUBLE, ompi_mpi_long_double, REAL)                                                 \
    X(MPI_WCHAR, ompi_mpi_wchar, OTHER)                                                            \
    X(MPI_C_BOOL, ompi_mpi_c_bool, OTHER)                                                          \
    X(MPI_C_FLOAT_COMPLEX, ompi_mpi_c_float_complex, COMPLEX)                                      \
    X(MPI_C_DOUBLE_COMPLEX, ompi_mpi_c_double_complex, COMPLEX)                                    \
    X(MPI_C_LONG_DOUBLE_COMPLEX, ompi_mpi_c_long_double_complex, COMPLEX)                          \
    X(MPI_CXX_BOOL, ompi_mpi_cxx_bool, OTHER)                                                      \
    X(MPI_CXX_FLOAT_COMPLEX, ompi_mpi_cxx_cplex, COMPLEX)                                          \
    X(MPI_CXX_DOUBLE_COMPLEX, ompi_mpi_cxx_dblcplex, COMPLEX)                                      \
    X(MPI_CXX_LONG_DOUBLE_COMPLEX, ompi_mpi_cxx_ldblcplex, COMPLEX)                                \
    X(MPI_AINT, ompi_mpi_aint, SIGNED)                                                             \
    X(MPI_OFFSET, ompi_mpi_offset, SIGNED)                                                         \
    X(MPI_COUNT, ompi_mpi_count, SIGNED)                                                           \
    X(MPI_PACKED, ompi_mpi_packed, OTHER)                                                          \
    X(MPI_CHARACTER, ompi_mpi_character, OTHER)                                                    \
    X(MPI_LOGICAL, ompi_mpi_logical, OTHER)                                                        \
    X(MPI_INTEGER, ompi_mpi_integer, SIGNED)                                                       \
    X(MPI_INTEGER1, ompi_mpi_integer1, SIGNED)                                                     \
    X(MPI_INTEGER2, ompi_mpi_integer2, SIGNED)                                                     \
    X(MPI_INTEGER4, ompi_mpi_integer4, SIGNED)                                                     \
    X(MPI_INTEGER8, ompi_mpi_integer8, SIGNED)                                                     \
    X(MPI_REAL, ompi_mpi_real, REAL)                                                               \
    X(MPI_REAL4, ompi_mpi_real4, REAL)                                                             \
    X(MPI_REAL8, ompi_mpi_real8, REAL)                                                             \
    X(MPI_REAL16, ompi_mpi_real16, REAL)                                                           \
    X(MPI_DOUBLE_PRECISION, ompi_mpi_dblprec, REAL)                                                \
    X(MPI_COMPLEX, ompi_mpi_cplex, COMPLEX)                                                        \
    X(MPI_DOUBLE_COMPLEX, ompi_mpi_dblcplex, COMPLEX)                                              \
    X(MPI_COMPLEX8, ompi_mpi_complex8, COMPLEX)                                                    \
    X(MPI_COMPLEX16, ompi_mpi_complex16, COMPLEX)                                                  \
    X(MPI_2INT, ompi_mpi_2int, OTHER)                                                              \
    X(MPI_2INTEGER, ompi_mpi_2integer, OTHER)                                                      \
    X(MPI_2REAL, ompi_mpi_2real, OTHER)                                                            \
    X(MPI_2DOUBLE_PRECISION, ompi_mpi_2dblprec, OTHER)                                             \
    X(MPI_FLOAT_INT, ompi_mpi_float_int, OTHER)                                                    \
    X(MPI_DOUBLE_INT, ompi_mpi_double_int, HOLES)                                                  \
    X(MPI_LONG_INT, ompi_mpi_long_int, HOLES)                                                      \
    X(MPI_SHORT_INT, ompi_mpi_short_int, HOLES)                                                    \
    X(MPI_LONG_DOUBLE_INT, ompi_mpi_longdbl_int, HOLES)

struct named {
    MPI_Datatype     type;
    enum nature      nature;
    struct xm_layout layout;
};

static struct named named_types[] = {
#define XM_ROW(name, variable, nature) {0, nature, {0}},
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

void xm_types_init(void)
{
    int i = 0;

    /* A type that this MPI does not have stays the null type, and is never met. */
#if XM_OPENMPI
#define XM_SET(name, variable, nature) named_types[i++].type = xm_mpi_variable(#variable);
#else
#define XM_SET(name, variable, nature) named_types[i++].type = name;
#endif
    XM_TYPES(XM_SET)
#undef XM_SET
    for (i = 0; i < NUM_NAMED; i++) {
        struct named *n = &named_types[i];
        if ((n->type == 0) || (n->type == XM_HANDLE(MPI_DATATYPE_NULL)) ||
            !ask_layout(n->type, &n->layout)) {
            n->type = XM_HANDLE(MPI_DATATYPE_NULL);
            continue;
        }
        n->layout.plain = (n->nature != HOLES) && (n->layout.size == n->layout.extent);
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

static bool is_plain(MPI_Datatype type);

/* One inner type of a constructor that keeps its elements in order and side by side. */
static bool inner_is_plain(MPI_Datatype type, int ni, int na, int nd)
{
    int          integers[4];
    MPI_Aint     addresses[4];
    MPI_Datatype inner;
    int          i2, a2, d2, combiner;

    if ((ni > 4) || (na > 4) || (nd != 1) ||
        (xm_pmpi.Type_get_contents(type, ni, na, nd, integers, addresses, &inner) != MPI_SUCCESS)) {
        return false;
    }
    bool plain = is_plain(inner);
    /* Only handles of derived types that MPI made for us are freed. */
    if ((xm_pmpi.Type_get_envelope(inner, &i2, &a2, &d2, &combiner) == MPI_SUCCESS) &&
        (combiner != MPI_COMBINER_NAMED)) {
        xm_pmpi.Type_free(&inner);
    }
    return plain;
}

/*
 * Equal size and extent do not suffice: an indexed type may permute its elements. So a derived type
 * is plain only if its constructors say so; other types are packed, which is always right.
 */
static bool is_plain(MPI_Datatype type)
{
    struct xm_layout    layout;
    const struct named *named = find_named(type);
    int                 ni, na, nd, combiner;

    if (named != NULL) {
        return named->layout.plain;
    }
    if (!ask_layout(type, &layout) || (layout.lb != 0) || (layout.true_lb != 0) ||
        (layout.size != layout.extent) || (layout.size != layout.true_extent) ||
        (xm_pmpi.Type_get_envelope(type, &ni, &na, &nd, &combiner) != MPI_SUCCESS)) {
        return false;
    }
    switch (combiner) {
    case MPI_COMBINER_NAMED:
        return true;
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_CONTIGUOUS:
    case MPI_COMBINER_VECTOR:  /* strides without holes, as the sizes are equal, */
    case MPI_COMBINER_HVECTOR: /* and forwards, as the lower bound is 0: see below */
    case MPI_COMBINER_RESIZED:
        break;
    default:
        return false;
    }
    /* A vector of stride -1 could only have lower bound 0 with a single block. */
    return inner_is_plain(type, ni, na, nd);
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
    layout_p->plain = is_plain(type);
    return true;
}

static bool vendor_type(enum nature nature, MPI_Count size, xcclDataType_t *type_p)
{
    switch (nature) {
    case SIGNED:
        *type_p = (size == 1) ? xcclInt8 : (size == 4) ? xcclInt32 : xcclInt64;
        return (size == 1) || (size == 4) || (size == 8);
    case UNSIGNED:
        *type_p = (size == 1) ? xcclUint8 : (size == 4) ? xcclUint32 : xcclUint64;
        return (size == 1) || (size == 4) || (size == 8);
    case REAL:
        *type_p = (size == 4) ? xcclFloat32 : xcclFloat64;
        return (size == 4) || (size == 8);
    case COMPLEX:
        *type_p = (size == 8) ? xcclFloat32 : xcclFloat64;
        return (size == 8) || (size == 16);
    default:
        return false;
    }
}

const char *xm_reduction_of(MPI_Datatype type, MPI_Op op, struct xm_reduction *reduction_p)
{
    const struct named *named = find_named(type);

    if (op == XM_HANDLE(MPI_SUM)) {
        reduction_p->op = xcclSum;
    } else if (op == XM_HANDLE(MPI_PROD)) {
        reduction_p->op = xcclProd;
    } else if (op == XM_HANDLE(MPI_MAX)) {
        reduction_p->op = xcclMax;
    } else if (op == XM_HANDLE(MPI_MIN)) {
        reduction_p->op = xcclMin;
    } else {
        return "user-defined operation, or one that the vendors' libraries lack";
    }
    if ((named == NULL) || (named->type == XM_HANDLE(MPI_DATATYPE_NULL)) ||
        !vendor_type(named->nature, named->layout.size, &reduction_p->type)) {
        return "type that the vendors' libraries do not reduce";
    }
    reduction_p->factor = 1;
    if (named->nature == COMPLEX) {
        if (op != XM_HANDLE(MPI_SUM)) {
            return "product of complex numbers";
        }
        reduction_p->factor = 2;
    }
    return NULL;
}
