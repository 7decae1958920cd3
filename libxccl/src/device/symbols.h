/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the functions of a device runtime that the program has loaded (or that a tool opens). */
#ifndef XC_DEVICE_SYMBOLS_H
#define XC_DEVICE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"

struct xc_symbol {
    const char *name;
    size_t      offset; /* of the function pointer in the table */
};

/*
 * Open the first of sonames (NULL-terminated) and fill table. With only_loaded the library must be
 * in the process already. The library stays open: its code may be running in other threads.
 * missing_p receives the name of the first symbol that is missing, or NULL if no file was found.
 */
XC_SHARED bool xc_symbols_open(const char *const *sonames, bool only_loaded,
                               const struct xc_symbol *symbols, size_t count, void *table,
                               const char **missing_p);

/*
 * A number that changes whenever the process loads a shared object: a negative "is it loaded?"
 * holds for as long as it stays the same (asking dlopen each time costs a thousand times more).
 */
unsigned long long xc_symbols_generation(void);

#endif
