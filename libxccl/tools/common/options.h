/* SPDX-License-Identifier: BSD-3-Clause */
/* What the command lines of the tools share. */
#ifndef XCCL_TOOLS_OPTIONS_H
#define XCCL_TOOLS_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

/* The whole text is a number from low to high; false if not. */
bool options_integer(const char *text, long low, long high, long *value_p);
bool options_real(const char *text, double low, double high, double *value_p);

/* Why word, which is none of these options or an argument too many, is refused: with the option
 * that was most likely meant, or where to look. */
void options_unknown(const char *tool, const char *word, const struct option *known, char *text,
                     size_t len);

#endif
