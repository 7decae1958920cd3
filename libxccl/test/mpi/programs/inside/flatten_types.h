/* SPDX-License-Identifier: BSD-3-Clause */
/* Random datatypes, made by every constructor but MPI_Type_create_darray. */
#ifndef MT_FLATTEN_TYPES_H
#define MT_FLATTEN_TYPES_H

#include <stdint.h>

#include <mpi.h>

/* A type of so many constructors within each other; the caller frees it. */
MPI_Datatype ft_draw(uint64_t *state, int depth);

/* Start MPI and, without a device, what is looked at from inside: "PROGRAM none SEED TYPES". */
void ft_begin(int argc, char **argv);

/* Have TYPES random types checked, committed, from SEED; salt: more that is random. */
typedef void ft_check(MPI_Datatype type, int number, uint64_t salt, const char *what);
void         ft_check_random(char **argv, ft_check *check);

#endif
