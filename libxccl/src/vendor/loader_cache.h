/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XC_VENDOR_LOADER_CACHE_H
#define XC_VENDOR_LOADER_CACHE_H

#include <stdbool.h>

#define XC_LOADER_CACHE "/etc/ld.so.cache"

/* Does the loader's cache, as ldconfig of glibc writes it, lead from this name to a file? */
bool xc_loader_cache_has(const char *cache, const char *name);

#endif
