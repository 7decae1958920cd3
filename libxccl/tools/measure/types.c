/* SPDX-License-Identifier: BSD-3-Clause */
/* Element types and operations by name. */
#include <float.h>
#include <string.h>

#include "measure/measure.h"

/* MPI's handles are no constants in every MPI, so the tables are filled at first use. */
const struct perf_type *perf_type_find(const char *name)
{
    static struct perf_type types[16];
    const struct perf_type  rows[] = {
        {"int8", 1, PERF_SIGNED, 0, MPI_INT8_T},
        {"uint8", 1, PERF_UNSIGNED, 0, MPI_UINT8_T},
        {"int16", 2, PERF_SIGNED, 0, MPI_INT16_T},
        {"uint16", 2, PERF_UNSIGNED, 0, MPI_UINT16_T},
        {"int32", 4, PERF_SIGNED, 0, MPI_INT32_T},
        {"uint32", 4, PERF_UNSIGNED, 0, MPI_UINT32_T},
        {"int64", 8, PERF_SIGNED, 0, MPI_INT64_T},
        {"uint64", 8, PERF_UNSIGNED, 0, MPI_UINT64_T},
        {"float", 4, PERF_FLOATING, FLT_EPSILON, MPI_FLOAT},
        {"double", 8, PERF_FLOATING, DBL_EPSILON, MPI_DOUBLE},
        {"cfloat", 8, PERF_COMPLEX, FLT_EPSILON, MPI_C_FLOAT_COMPLEX},
        {"cdouble", 16, PERF_COMPLEX, DBL_EPSILON, MPI_C_DOUBLE_COMPLEX},
    };
    const size_t count = sizeof(rows) / sizeof(rows[0]);

    memcpy(types, rows, sizeof(rows));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(types[i].name, name) == 0) {
            return &types[i];
        }
    }
    return NULL;
}

const char *perf_type_names(void)
{
    return "int8, uint8, int16, uint16, int32, uint32, int64, uint64, float, double, cfloat, "
           "cdouble";
}

const struct perf_op *perf_op_find(const char *name)
{
    static struct perf_op ops[PERF_NUM_OPS];
    const struct perf_op  rows[PERF_NUM_OPS] = {
        {"sum", PERF_SUM, MPI_SUM},    {"prod", PERF_PROD, MPI_PROD}, {"max", PERF_MAX, MPI_MAX},
        {"min", PERF_MIN, MPI_MIN},    {"land", PERF_LAND, MPI_LAND}, {"lor", PERF_LOR, MPI_LOR},
        {"lxor", PERF_LXOR, MPI_LXOR}, {"band", PERF_BAND, MPI_BAND}, {"bor", PERF_BOR, MPI_BOR},
        {"bxor", PERF_BXOR, MPI_BXOR},
    };

    memcpy(ops, rows, sizeof(rows));
    for (int i = 0; i < PERF_NUM_OPS; i++) {
        if (strcmp(ops[i].name, name) == 0) {
            return &ops[i];
        }
    }
    return NULL;
}

const char *perf_op_names(void)
{
    return "sum, prod, max, min, land, lor, lxor, band, bor, bxor";
}

bool perf_type_has_op(const struct perf_type *type, enum perf_op_id op)
{
    switch (type->class) {
    case PERF_COMPLEX:
        return (op == PERF_SUM) || (op == PERF_PROD);
    case PERF_FLOATING:
        return op <= PERF_MIN;
    default:
        return true;
    }
}
