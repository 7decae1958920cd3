/* SPDX-License-Identifier: BSD-3-Clause */
/* What the command lines of the tools share. */
#ifndef XCCL_TOOLS_OPTIONS_H
#define XCCL_TOOLS_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

/* Before anything is refused. Of many ranks one speaks. */
void options_begin(const char *tool, const struct option *known, bool speaking);

/* An option of other tools that this one lacks, and what there is here instead. */
void options_elsewhere(const char *name, const char *instead);

/* False, and the message. */
bool options_refuse(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* An option that is not known, with the one that was most likely meant, or an argument too many. */
bool options_refuse_word(const char *word);
/* A value that is none of the names, which end with NULL. */
bool options_refuse_name(const char *option, const char *what, const char *word, size_t len,
                         const char *const names[]);
/* The one of the names, which end with NULL, that was most likely meant, or NULL. */
const char *options_nearest(const char *word, const char *const names[]);
/* An option without its value. */
bool options_refuse_missing(const char *option);

/* The whole text is a number from low to high; false if not. */
bool options_integer(const char *text, long low, long high, long *value_p);
bool options_real(const char *text, double low, double high, double *value_p);

#endif
