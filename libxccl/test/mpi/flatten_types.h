/* SPDX-License-Identifier: BSD-3-Clause */
/* Random datatypes, made by every constructor but MPI_Type_create_darray. */
#ifndef MT_FLATTEN_TYPES_H
#define MT_FLATTEN_TYPES_H

#include <stdint.h>

#include <mpi.h>

uint64_t ft_next(uint64_t *state);

/* A type of so many constructors within each other; the caller frees it. */
MPI_Datatype ft_draw(uint64_t *state, int depth);

#endif
