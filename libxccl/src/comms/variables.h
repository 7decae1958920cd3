/* SPDX-License-Identifier: BSD-3-Clause */
/* The variables of the environment by which a rank decides what it does together with others. */
#ifndef XM_COMMS_VARIABLES_H
#define XM_COMMS_VARIABLES_H

#include <stdint.h>

enum { XM_NUM_VARIABLES = 11 };

struct xm_variables {
    uint64_t values[XM_NUM_VARIABLES]; /* or digests of them */
};

/* This process's. */
void        xm_variables_fill(struct xm_variables *mine);
const char *xm_variable_name(int i);
/* The name of the first that differs; NULL: none does. */
const char *xm_variables_differ(const struct xm_variables *a, const struct xm_variables *b);

#endif
