/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XM_CALLS_REPLACE_H
#define XM_CALLS_REPLACE_H

#include "transfers/transfer.h"

/* Carry such a call out, where that is the better way; false: it was not. *code_p: MPI's. */
bool xm_replace_apart(enum xm_function function, int profiling, const long *args, int *code_p);

#endif
