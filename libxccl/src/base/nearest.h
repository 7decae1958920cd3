/* SPDX-License-Identifier: BSD-3-Clause */
/* What a mistyped name was meant to be: variables and options of the command line. */
#ifndef XC_BASE_NEAREST_H
#define XC_BASE_NEAREST_H

#include <stddef.h>

#include "base/log.h"

/*
 * Letters to change, add or drop, and neighbours to swap, to get from typed to known, whatever
 * their case; SIZE_MAX where known is too long.
 */
XC_SHARED size_t xc_edit_distance(const char *typed, const char *known);

#endif
