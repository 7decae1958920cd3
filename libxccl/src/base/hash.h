/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * FNV-1a of 64 bits: equal inputs give equal numbers on all ranks. It is no protection against
 * intent. Begin with XC_HASH_BEGIN.
 */
#ifndef XC_BASE_HASH_H
#define XC_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define XC_HASH_BEGIN 14695981039346656037u

/* A word at a time: quicker, and another number than that of the word's bytes. */
static inline uint64_t xc_hash_word(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * 1099511628211u;
}

static inline uint64_t xc_hash_bytes(uint64_t hash, const void *data, size_t len)
{
    const unsigned char *p = (const unsigned char *)data;

    for (size_t i = 0; i < len; i++) {
        hash = xc_hash_word(hash, p[i]);
    }
    return hash;
}

/* NULL is as an empty one. */
static inline uint64_t xc_hash_text(uint64_t hash, const char *text)
{
    for (; (text != NULL) && (*text != '\0'); text++) {
        hash = xc_hash_word(hash, (unsigned char)*text);
    }
    return hash;
}

#endif
