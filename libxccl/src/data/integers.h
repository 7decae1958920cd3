/* SPDX-License-Identifier: BSD-3-Clause */
/* How this MPI reduces integers, found by trying it. */
#ifndef XM_DATA_INTEGERS_H
#define XM_DATA_INTEGERS_H

#include <stdint.h>

#include "kernels/operations.h"
#include "mpi/mpi.h"

/* Which values a type may have: any, a C bool's, or a Fortran logical's whoever compiled it. */
enum xm_values { XM_ANY_VALUES, XM_BOOLS, XM_LOGICALS };

/*
 * The kernels' type that gives the same results as MPI does, or XK_NUM_TYPES. A pair that MPI
 * refuses is an error, which would reach the program: the caller has asked.
 * @param[in] signed_first  Which of two types that do is the one.
 */
enum xk_type xm_integer_try(MPI_Datatype type, MPI_Count size, bool signed_first,
                            enum xm_values values, MPI_Op mpi_op, enum xk_op op);

/*
 * For a sum of elements of at most 2 bytes for which there is none: the type as which MPI adds up
 * plainly wherever no order of the operands leaves the range, or XK_NUM_TYPES.
 */
enum xk_type xm_integer_try_checked(MPI_Datatype type, MPI_Count size, bool signed_first,
                                    MPI_Op sum);

#endif
