/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XCCL_TOOLS_SORT_H
#define XCCL_TOOLS_SORT_H

#include <stddef.h>

/* The least first. */
void sort_doubles(double *values, size_t count);

#endif
